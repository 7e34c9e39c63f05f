"""Walking a GDScript source from declaration to declaration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lanista.envs.tracing.gdscript.declarations import (
    LAMBDA_NAME,
    FunctionKind,
    ScriptClass,
    ScriptFunction,
)
from lanista.envs.tracing.gdscript.tokens import LineNumbers, LogicalLine, SourceError, Token

_THREAD_NAMES = frozenset(
    {
        b"Thread",
        b"WorkerThreadPool",
        b"process_thread_group",
        b"set_process_thread_group",
        b"load_threaded_request",
        b"set_use_threads",
        b"use_threads",
    }
)


@dataclass
class _Class:
    owners: tuple[str, ...]
    line: int
    abstract: bool = False
    extends: str = ""


@dataclass
class _Region:
    """A stretch of the file that belongs to a class or a function."""

    start: int
    end: int
    owners: tuple[str, ...]
    function: ScriptFunction | None = None
    static: bool = False


@dataclass
class _Member:
    """What stands before a declaration."""

    annotations: set[bytes] = field(default_factory=set)
    static: bool = False


class DeclarationReader:
    """Walks the logical lines of a script from declaration to declaration.

    Attributes:
        functions: Those found so far, in no particular order.
        class_name: Global name of the script, empty if it has none.
        tool: Whether it runs in the editor.
    """

    def __init__(self, lines: Sequence[LogicalLine], numbers: LineNumbers) -> None:
        self._lines = lines
        self._numbers = numbers
        self._tokens = [token for line in lines for token in line.tokens]
        self._index = 0
        self.functions: list[ScriptFunction] = []
        self._classes = [_Class((), 1)]
        self.class_name = ""
        self.tool = False
        self._heads: set[int] = set()
        self._regions: list[_Region] = []

    def read(self) -> None:
        """Read the whole script.

        Raises:
            SourceError: At the first thing that is no declaration.
        """
        self._class_body(self._classes[0], 0)
        if self._index < len(self._lines):
            raise SourceError(self._lines[self._index].tokens[0].start, "unexpected indentation")
        self._lambdas()

    def classes(self) -> tuple[ScriptClass, ...]:
        """Return the classes, the script's own first, then in the order of the file."""
        return tuple(
            ScriptClass(item.owners, item.extends, item.line, item.abstract)
            for item in self._classes
        )

    def threads(self) -> tuple[str, ...]:
        """Return the names it uses that can call script code from another thread."""
        used = {
            token.text
            for token in self._tokens
            if token.text in _THREAD_NAMES and token.kind in {"name", "member"}
        }
        return tuple(sorted(text.decode() for text in used))

    def _class_body(self, owner: _Class, indent: int) -> None:
        pending = _Member()
        while self._index < len(self._lines) and self._lines[self._index].indent >= indent:
            line = self._lines[self._index]
            if line.indent > indent:
                raise SourceError(line.tokens[0].start, "unexpected indentation")
            pending = self._members(line, owner, pending)

    def _members(self, line: LogicalLine, owner: _Class, pending: _Member) -> _Member:
        """Read the declarations of a line and the blocks below it; leave the index after them."""
        self._index += 1
        position = 0
        while position < len(line.tokens):
            position, pending = self._member(line, position, owner, pending)
        return pending

    def _member(
        self, line: LogicalLine, position: int, owner: _Class, pending: _Member
    ) -> tuple[int, _Member]:
        """Read one declaration; return where the next begins and what is said of it already."""
        tokens = line.tokens
        token = tokens[position]
        if token.kind == "annotation":
            pending.annotations.add(token.text)
            if token.text == b"@tool":
                self.tool = True
            return self._after_arguments(tokens, position + 1), pending
        if token.kind == "string" or token.text in {b";", b"pass"}:
            return position + 1, _Member()
        keyword = token.text if token.kind == "name" else b""
        if keyword == b"static":
            pending.static = True
            return position + 1, pending
        if keyword == b"func":
            return self._function(line, position, owner, pending), _Member()
        if keyword == b"var":
            return self._variable(line, position, owner, pending), _Member()
        if keyword == b"class":
            return self._inner_class(line, position, owner, pending)
        if keyword == b"class_name":
            if position + 1 < len(tokens):
                self.class_name = tokens[position + 1].text.decode()
            owner.abstract = owner.abstract or b"@abstract" in pending.annotations
            after = position + 2
            if after < len(tokens) and tokens[after].text == b",":
                after += 2
            return after, _Member()
        if keyword == b"extends":
            owner.abstract = owner.abstract or b"@abstract" in pending.annotations
            return self._extends(tokens, position + 1, owner), _Member()
        if keyword in {b"const", b"signal", b"enum"}:
            return self._end(tokens, position), _Member()
        raise SourceError(token.start, f"“{_shown(token)}” begins no declaration")

    def _function(self, line: LogicalLine, position: int, owner: _Class, pending: _Member) -> int:
        tokens = line.tokens
        head = tokens[position]
        self._heads.add(head.start)
        if position + 1 >= len(tokens) or tokens[position + 1].kind != "name":
            raise SourceError(head.start, "the function has no name")
        name = tokens[position + 1].text.decode()
        colon = self._colon(tokens, self._parameters(tokens, position + 2, head))
        if colon is None:
            if b"@abstract" not in pending.annotations:
                raise SourceError(head.start, "the function has no body")
            line_number = self._numbers.at(head.start)
            self.functions.append(
                ScriptFunction(name, owner.owners, line_number, "abstract", -1, pending.static)
            )
            return self._end(tokens, position)
        kind: FunctionKind = "static" if pending.static else "function"
        self._body(line, colon, head, name, kind, owner, static=pending.static)
        return len(tokens)

    def _body(
        self,
        line: LogicalLine,
        colon: int,
        head: Token,
        name: str,
        kind: FunctionKind,
        owner: _Class,
        *,
        static: bool,
    ) -> None:
        """Take the rest of a line and the deeper lines below it as the body of a function."""
        block = self._block(line.indent)
        if colon + 1 < len(line.tokens):
            first = line.tokens[colon + 1]
        elif block:
            first = block[0].tokens[0]
        else:
            raise SourceError(head.start, "the function has no body")
        last = block[-1].tokens[-1] if block else line.tokens[-1]
        line_number = self._numbers.at(head.start)
        function = ScriptFunction(name, owner.owners, line_number, kind, first.start, static)
        self.functions.append(function)
        self._regions.append(_Region(head.start, last.end, owner.owners, function, static))

    def _block(self, indent: int) -> Sequence[LogicalLine]:
        """Take the lines from the index on that are deeper than an indentation."""
        start = self._index
        while self._index < len(self._lines) and self._lines[self._index].indent > indent:
            self._index += 1
        return self._lines[start : self._index]

    def _variable(self, line: LogicalLine, position: int, owner: _Class, pending: _Member) -> int:
        end = self._variable_end(line, position, owner, pending)
        if pending.static:
            last = self._lines[self._index - 1] if end == len(line.tokens) else line
            region_end = last.tokens[-1 if end == len(line.tokens) else end - 1].end
            start = line.tokens[position].start
            self._regions.append(_Region(start, region_end, owner.owners, static=True))
        return end

    def _variable_end(
        self, line: LogicalLine, position: int, owner: _Class, pending: _Member
    ) -> int:
        tokens = line.tokens
        if position + 1 >= len(tokens) or tokens[position + 1].kind != "name":
            raise SourceError(tokens[position].start, "the variable has no name")
        name = tokens[position + 1].text.decode()
        deeper = self._index < len(self._lines) and self._lines[self._index].indent > line.indent
        has_lambda = False
        end = position + 2
        while end < len(tokens):
            token = tokens[end]
            if token.depth == 0:
                if token.kind == "name" and token.text == b"func":
                    has_lambda = True
                elif token.text == b";" and not has_lambda:
                    # A lambda on the same line would take what follows for its body.
                    return end
            end += 1
        if not deeper:
            return end
        opens = tokens[-1].text == b":" and tokens[-1].depth == 0
        if opens and (not has_lambda or _is_accessor(self._lines[self._index].tokens)):
            self._accessors(line, name, owner, static=pending.static)
        elif has_lambda:
            self._block(line.indent)
        return end

    def _accessors(self, line: LogicalLine, variable: str, owner: _Class, *, static: bool) -> None:
        indent = self._lines[self._index].indent
        while self._index < len(self._lines) and self._lines[self._index].indent > line.indent:
            accessor = self._lines[self._index]
            tokens = accessor.tokens
            if accessor.indent != indent or not _is_accessor(tokens):
                raise SourceError(tokens[0].start, "a property holds only “get” and “set”")
            self._index += 1
            if tokens[1].text == b"=":
                continue
            head = tokens[0]
            colon = self._colon(tokens, self._after_arguments(tokens, 1))
            if colon is None:
                raise SourceError(head.start, "the accessor has no body")
            role = "setter" if head.text == b"set" else "getter"
            engine_name = f"@{variable}_{role}"
            self._body(accessor, colon, head, engine_name, "accessor", owner, static=static)

    def _inner_class(
        self, line: LogicalLine, position: int, owner: _Class, pending: _Member
    ) -> tuple[int, _Member]:
        tokens = line.tokens
        head = tokens[position]
        if position + 1 >= len(tokens) or tokens[position + 1].kind != "name":
            raise SourceError(head.start, "the class has no name")
        owners = (*owner.owners, tokens[position + 1].text.decode())
        abstract = b"@abstract" in pending.annotations
        inner = _Class(owners, self._numbers.at(head.start), abstract)
        self._classes.append(inner)
        after = position + 2
        if after < len(tokens) and tokens[after].text == b"extends":
            after = self._extends(tokens, after + 1, inner)
        if after >= len(tokens) or tokens[after].text != b":":
            raise SourceError(head.start, "the class has no body")
        after += 1
        left = _Member()
        if after < len(tokens):
            if tokens[after].text == b"extends":
                after = self._extends(tokens, after + 1, inner)
            # The engine ends a class on one line after one step, and “static” is a step, so that
            # what follows it belongs to the class around.
            if after < len(tokens):
                after, left = self._member(line, after, inner, left)
        else:
            block_start = self._index
            if block_start < len(self._lines) and self._lines[block_start].indent > line.indent:
                self._class_body(inner, self._lines[block_start].indent)
        last = self._lines[self._index - 1].tokens[-1]
        self._regions.append(_Region(head.start, last.end, owners))
        return after, left

    def _extends(self, tokens: Sequence[Token], position: int, owner: _Class) -> int:
        end = position
        while end < len(tokens) and tokens[end].text not in {b";", b":"}:
            if end > position and tokens[end].kind in {"name", "annotation"}:
                break
            end += 1
        owner.extends = b"".join(token.text for token in tokens[position:end]).decode()
        return end

    def _parameters(self, tokens: Sequence[Token], position: int, head: Token) -> int:
        if position >= len(tokens) or tokens[position].text != b"(":
            raise SourceError(head.start, "the function has no list of parameters")
        return self._after_arguments(tokens, position)

    @staticmethod
    def _after_arguments(tokens: Sequence[Token], position: int) -> int:
        """Return the position after a bracketed list, if there is one at a position."""
        if position >= len(tokens) or tokens[position].text != b"(":
            return position
        depth = tokens[position].depth
        while not (tokens[position].text == b")" and tokens[position].depth == depth):
            position += 1
        return position + 1

    @staticmethod
    def _colon(tokens: Sequence[Token], position: int) -> int | None:
        """Return where the colon of a header is, from the end of its parameters on."""
        while position < len(tokens):
            token = tokens[position]
            if token.depth == 0 and token.text == b":":
                return position
            if token.depth == 0 and token.text == b";":
                return None
            position += 1
        return None

    @staticmethod
    def _end(tokens: Sequence[Token], position: int) -> int:
        while position < len(tokens):
            if tokens[position].depth == 0 and tokens[position].text == b";":
                return position
            position += 1
        return position

    def _lambdas(self) -> None:
        """Find every ``func`` that begins no declaration."""
        tokens = self._tokens
        regions = sorted(self._regions, key=lambda region: region.start)
        open_regions: list[_Region] = []
        following = 0
        for index, token in enumerate(tokens):
            if token.kind != "name" or token.text != b"func" or token.start in self._heads:
                continue
            while following < len(regions) and regions[following].start <= token.start:
                open_regions.append(regions[following])
                following += 1
            while open_regions and open_regions[-1].end <= token.start:
                open_regions.pop()
            self._lambda(index, [item for item in open_regions if item.end > token.start])

    def _lambda(self, index: int, around: Sequence[_Region]) -> None:
        tokens = self._tokens
        head = tokens[index]
        position = index + 1
        name = LAMBDA_NAME
        if position < len(tokens) and tokens[position].kind == "name":
            name = tokens[position].text.decode()
            position += 1
        if position >= len(tokens) or tokens[position].text != b"(":
            raise SourceError(head.start, "the function has no list of parameters")
        position = self._after_arguments(tokens, position)
        while position < len(tokens) and tokens[position].text != b":":
            if tokens[position].kind == "string" or tokens[position].depth < head.depth:
                raise SourceError(head.start, "the function has no body")
            position += 1
        if position + 1 >= len(tokens):
            raise SourceError(head.start, "the function has no body")
        innermost = around[-1] if around else _Region(0, 0, ())
        function = innermost.function
        self.functions.append(
            ScriptFunction(
                name,
                innermost.owners,
                self._numbers.at(head.start),
                "lambda",
                tokens[position + 1].start,
                static=innermost.static,
                inside=function.name if function else "",
            )
        )


def _is_accessor(tokens: Iterable[Token]) -> bool:
    """Say whether a line begins as a getter or setter does."""
    texts = [token.text for token in tokens][:6]
    if len(texts) < 2 or texts[0] not in {b"get", b"set"}:
        return False
    if texts[1] in {b":", b"="}:
        return True
    return texts[1] == b"(" and b":" in texts


def _shown(token: Token) -> str:
    return token.text[:40].decode("utf-8", "replace").split("\n")[0]
