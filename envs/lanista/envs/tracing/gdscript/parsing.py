"""The functions and classes of a GDScript source, and where each function's body begins.

One structural parser on top of this package's own tokens is the base, and public parsers only
check it. It reads declarations and skips over statements, so that what trips full grammars
(lambdas on one line that hold ``if``, chained comparisons, raw line ends in strings, a byte-order
mark, syntax newer than they are) cannot stop it, and it works in byte offsets, so that a place in
the file is exact. A grammar for the whole language would say more, but what is wanted is only the
first token of each body, and that follows from brackets, colons and indentation alone.

Where a file has something that no declaration begins with, or an unindent that matches nothing,
the engine refuses it too: it is reported with line and reason, and no function of it is returned.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lanista.envs.tracing.gdscript.oracles import confirm
from lanista.envs.tracing.gdscript.tokens import (
    LineNumbers,
    LogicalLine,
    SourceError,
    Token,
    logical_lines,
)

FunctionKind = Literal["function", "static", "accessor", "lambda", "abstract"]
"""``accessor`` is a property's getter or setter written in place."""

LAMBDA_NAME = "<anonymous lambda>"
"""How the engine calls a lambda without a name."""

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


@dataclass(frozen=True, slots=True)
class ScriptFunction:
    """One function as it is written.

    Attributes:
        name: As the engine names it: ``@speed_setter`` for an accessor of ``speed``.
        owners: Inner classes around it, from the outermost; empty in the script's own class.
        line: Line of ``func``, ``set`` or ``get``, from 1.
        kind: What it is.
        offset: Byte offset of the first statement of its body, an annotation of that statement
            included; -1 for an abstract function.
        static: Whether it has no ``self``; lambdas are what the function around them is.
        inside: Name of the function around a lambda; empty elsewhere.
    """

    name: str
    owners: tuple[str, ...]
    line: int
    kind: FunctionKind
    offset: int
    static: bool = False
    inside: str = ""

    @property
    def qualname(self) -> str:
        """Its name after the inner classes around it, with dots; a lambda follows its function."""
        return ".".join((*self.owners, *((self.inside,) if self.inside else ()), self.name))


@dataclass(frozen=True, slots=True)
class ScriptClass:
    """One class of a script.

    Attributes:
        owners: Its name after those of the classes around it; empty for the script's own class.
        extends: What it extends, as written without spaces (a quoted path keeps its quotes);
            empty if it does not say, which means ``RefCounted``.
        line: Line of its declaration, from 1.
        abstract: Whether it is marked ``@abstract``.
    """

    owners: tuple[str, ...]
    extends: str
    line: int
    abstract: bool


class Problem(NamedTuple):
    """Why a file was left alone.

    Attributes:
        line: From 1.
        why: A clause without a full stop.
    """

    line: int
    why: str


@dataclass(frozen=True)
class ParsedScript:
    """What a script declares.

    Attributes:
        functions: By their place in the file, lambdas included; empty if there is a problem.
        classes: The script's own class first, then inner ones in the order of the file.
        class_name: Its global name, else empty.
        tool: Whether it runs in the editor (``@tool``).
        threads: Names it uses that can call script code from another thread.
        parser: Who agrees on the functions: ``lanista``, ``lanista+tree-sitter`` or
            ``lanista+gdtoolkit``.
        problems: Why it cannot be rewritten; empty if it can.
        unseen: Functions it seems to have, if there is a problem; else 0.
    """

    functions: tuple[ScriptFunction, ...]
    classes: tuple[ScriptClass, ...]
    class_name: str
    tool: bool
    threads: tuple[str, ...]
    parser: str
    problems: tuple[Problem, ...]
    unseen: int = 0

    @property
    def extends(self) -> str:
        """What the script's own class extends, as written; empty if it does not say."""
        return self.classes[0].extends


def parse_script(source: bytes | str, *, check: bool = True) -> ParsedScript:
    """Read the declarations of a script.

    Args:
        source: Text of the file; offsets count bytes of its UTF-8 form.
        check: Whether a second parser must agree where one can read the file.

    Returns:
        What it declares, or a problem and nothing else. Never raises for any input.
    """
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    numbers = LineNumbers(data)
    try:
        data.decode("utf-8")
        lines = logical_lines(data)
        _check_indentation(lines)
        reader = _Reader(lines, numbers)
        reader.read()
    except UnicodeDecodeError as error:
        return _refused(data, Problem(numbers.at(error.start), "the file is not UTF-8"))
    except SourceError as problem:
        return _refused(data, Problem(numbers.at(problem.offset), problem.why))
    except RecursionError:
        return _refused(data, Problem(1, "its classes are nested too deeply"))
    functions = tuple(sorted(reader.functions, key=lambda item: (item.offset, item.line)))
    parser = "lanista"
    if check:
        bodies = frozenset(item.offset for item in functions if item.offset >= 0)
        answer = confirm(data, bodies)
        if answer.disputed_offset is not None:
            line = numbers.at(answer.disputed_offset)
            why = f"{answer.oracle} reads the function there in another way"
            return _refused(data, Problem(line, why))
        if answer.oracle:
            parser = f"lanista+{answer.oracle}"
    return ParsedScript(
        functions=functions,
        classes=tuple(item.finished() for item in reader.classes),
        class_name=reader.class_name,
        tool=reader.tool,
        threads=reader.threads(),
        parser=parser,
        problems=(),
    )


def _refused(data: bytes, problem: Problem) -> ParsedScript:
    unseen = len(re.findall(rb"(?m)^[^#\n]*?\bfunc[ \t]+\S+?[ \t]*\(", data))
    nothing = ScriptClass((), "", 1, abstract=False)
    return ParsedScript(
        functions=(),
        classes=(nothing,),
        class_name="",
        tool=False,
        threads=(),
        parser="",
        problems=(problem,),
        unseen=unseen,
    )


def _check_indentation(lines: Sequence[LogicalLine]) -> None:
    levels = [0]
    for line in lines:
        if line.indent > levels[-1]:
            levels.append(line.indent)
            continue
        while line.indent < levels[-1]:
            levels.pop()
        if line.indent != levels[-1]:
            raise SourceError(
                line.tokens[0].start, "the indentation matches that of no line before"
            )


@dataclass
class _Class:
    owners: tuple[str, ...]
    line: int
    abstract: bool = False
    extends: str = ""

    def finished(self) -> ScriptClass:
        return ScriptClass(self.owners, self.extends, self.line, self.abstract)


@dataclass
class _Region:
    """A stretch of the file that belongs to a class or a function."""

    start: int
    end: int
    owners: tuple[str, ...]
    function: ScriptFunction | None = None


@dataclass
class _Member:
    """What stands before a declaration."""

    annotations: set[bytes] = field(default_factory=set)
    static: bool = False


class _Reader:
    """Walks the logical lines of a script from declaration to declaration."""

    def __init__(self, lines: Sequence[LogicalLine], numbers: LineNumbers) -> None:
        self.lines = lines
        self.numbers = numbers
        self.tokens = [token for line in lines for token in line.tokens]
        self.index = 0
        self.functions: list[ScriptFunction] = []
        self.classes = [_Class((), 1)]
        self.class_name = ""
        self.tool = False
        self._heads: set[int] = set()
        self._regions: list[_Region] = []

    def read(self) -> None:
        """Read the whole script.

        Raises:
            SourceError: At the first thing that is no declaration.
        """
        self._class_body(self.classes[0], 0)
        if self.index < len(self.lines):
            raise SourceError(self.lines[self.index].tokens[0].start, "unexpected indentation")
        self._lambdas()

    def threads(self) -> tuple[str, ...]:
        """Return the names it uses that can call script code from another thread."""
        used = {
            token.text
            for token in self.tokens
            if token.text in _THREAD_NAMES and token.kind in {"name", "member"}
        }
        return tuple(sorted(text.decode() for text in used))

    def _class_body(self, owner: _Class, indent: int) -> None:
        pending = _Member()
        while self.index < len(self.lines) and self.lines[self.index].indent >= indent:
            line = self.lines[self.index]
            if line.indent > indent:
                raise SourceError(line.tokens[0].start, "unexpected indentation")
            pending = self._members(line, owner, pending)

    def _members(self, line: LogicalLine, owner: _Class, pending: _Member) -> _Member:
        """Read the declarations of a line and the blocks below it; leave the index after them."""
        self.index += 1
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
            line_number = self.numbers.at(head.start)
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
        line_number = self.numbers.at(head.start)
        function = ScriptFunction(name, owner.owners, line_number, kind, first.start, static)
        self.functions.append(function)
        self._regions.append(_Region(head.start, last.end, owner.owners, function))

    def _block(self, indent: int) -> Sequence[LogicalLine]:
        """Take the lines from the index on that are deeper than an indentation."""
        start = self.index
        while self.index < len(self.lines) and self.lines[self.index].indent > indent:
            self.index += 1
        return self.lines[start : self.index]

    def _variable(self, line: LogicalLine, position: int, owner: _Class, pending: _Member) -> int:
        tokens = line.tokens
        if position + 1 >= len(tokens) or tokens[position + 1].kind != "name":
            raise SourceError(tokens[position].start, "the variable has no name")
        name = tokens[position + 1].text.decode()
        deeper = self.index < len(self.lines) and self.lines[self.index].indent > line.indent
        has_lambda = False
        end = position + 2
        while end < len(tokens):
            token = tokens[end]
            if token.depth == 0:
                if token.kind == "name" and token.text == b"func":
                    has_lambda = True
                elif token.text == b";" and not has_lambda:
                    return end
            end += 1
        if not deeper:
            return end
        opens = tokens[-1].text == b":" and tokens[-1].depth == 0
        if opens and (not has_lambda or _is_accessor(self.lines[self.index].tokens)):
            self._accessors(line, name, owner, static=pending.static)
        elif has_lambda:
            self._block(line.indent)
        return end

    def _accessors(self, line: LogicalLine, variable: str, owner: _Class, *, static: bool) -> None:
        indent = self.lines[self.index].indent
        while self.index < len(self.lines) and self.lines[self.index].indent > line.indent:
            accessor = self.lines[self.index]
            tokens = accessor.tokens
            if accessor.indent != indent or not _is_accessor(tokens):
                raise SourceError(tokens[0].start, "a property holds only “get” and “set”")
            self.index += 1
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
        inner = _Class(owners, self.numbers.at(head.start), abstract)
        self.classes.append(inner)
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
            block_start = self.index
            if block_start < len(self.lines) and self.lines[block_start].indent > line.indent:
                self._class_body(inner, self.lines[block_start].indent)
        last = self.lines[self.index - 1].tokens[-1]
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
        tokens = self.tokens
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
        tokens = self.tokens
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
                self.numbers.at(head.start),
                "lambda",
                tokens[position + 1].start,
                static=function.static if function else False,
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
