"""The syntax-tree hook: one append of a function's id at its entry.

Each chosen definition gets one statement at its start, written as a comparison of two placeholder
constants, ``SINK is ID``. After compiling, the placeholders become the list that records and the
id, and the one instruction ``IS_OP`` becomes ``LIST_APPEND``: both take the two topmost values
off the stack and leave one, so nothing else in the code moves. That costs three instructions and
no call. Where the concrete class of ``self`` matters, the id is looked up by it.

A generator expression has no place for a statement. Its outermost iterable is zipped with one that
records when it is first asked for, so that the record is made at the expression's first step,
where ``sys.monitoring`` sees its start too.
"""

import ast
import dis
import itertools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lanista.envs.tracing.definitions import first_parameter, function_codes, read_tree
from lanista.envs.tracing.modules import Module
from lanista.envs.tracing.plan import Rule
from lanista.envs.tracing.record import Piece, Sink

_MARK = "\0lanista "
_SINK = f"{_MARK}sink"
_APPEND = f"{_MARK}append"
_NAME = "_lanista_entry"
_SHARED: dict[str, Any] = {
    f"{_MARK}type": type,
    f"{_MARK}zip": zip,
    f"{_MARK}chain": itertools.chain,
    f"{_MARK}filter": filter,
    f"{_MARK}forever": itertools.repeat(None),
}


class ClassTable(dict[type, Piece]):
    """The piece of a function for each concrete class; for others, of their nearest base."""

    __slots__ = ("default",)
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, default: Piece) -> None:
        super().__init__()
        self.default = default

    def __eq__(self, other: object) -> bool:
        return self is other

    def __missing__(self, key: type) -> Piece:
        found = self.default
        for base in getattr(key, "__mro__", ()):
            if base in self:
                found = self[base]
                break
        # A game may make classes without end; those beyond a bound are looked up each time.
        if len(self) < 4096:
            self[key] = found
        return found


@dataclass(frozen=True)
class CodePair:
    """A function's code as it was and as it records.

    Attributes:
        original: As the compiler made it of the untouched source.
        recording: With the record at its entry, or a function inside it that has one.
    """

    original: CodeType
    recording: CodeType


class Template:
    """A module's functions with placeholders at their entries, to be bound to what they record.

    Attributes:
        indices: The definitions that it holds an entry for.
        failed: Those whose entry could not be rewritten.
    """

    def __init__(self, module: Module, rules: Mapping[int, Rule], filename: str | None) -> None:
        """Compile the module.

        Args:
            module: A module with source.
            rules: What to record, by index of the definition.
            filename: What tracebacks call the file.
        """
        assert module.source is not None
        filename = filename or module.spec.origin or module.file
        plain_tree, tree = ast.parse(module.source), ast.parse(module.source)
        nodes = read_tree(module.name, tree, is_package=module.is_package).nodes
        tree = _Hook(nodes, rules).visit(tree)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._plain = compile(plain_tree, filename, "exec", dont_inherit=True)
            self._hooked = compile(tree, filename, "exec", dont_inherit=True)
        self.indices = frozenset(rules)
        self.failed: frozenset[int] = frozenset()

    def bind(
        self, sink: Sink, pieces: Mapping[int, Piece], tables: Mapping[int, ClassTable]
    ) -> tuple[CodePair, ...]:
        """Return the code objects that changed, recording.

        Args:
            sink: The list to append to.
            pieces: The piece of each definition that has just one.
            tables: The encoded ids of the others.
        """
        values: dict[str, Any] = dict(_SHARED) | {_SINK: sink, _APPEND: sink.append}
        for index, piece in pieces.items():
            values[_mark("id", index)] = piece
            values[_mark("once", index)] = (piece,)
        # Calling the bound method is quicker than a subscript, specialised for plain dicts alone.
        values |= {_mark("table", index): table.__getitem__ for index, table in tables.items()}
        pairs: list[CodePair] = []
        recorded: set[str] = set()
        _bind(self._plain, self._hooked, values, pairs, recorded)
        self.failed = frozenset(
            index
            for index in self.indices
            if not recorded & {_mark(kind, index) for kind in ("id", "once", "table")}
        )
        return tuple(pairs)


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_codes(constant)


def definition_codes(module: Module) -> dict[CodeType, int]:
    """Return the index of the definition that each untouched code object of a module is of."""
    if module.tree is None:
        assert module.code is not None
        return {code: index for index, code in enumerate(function_codes(module.code))}
    assert module.source is not None
    tree = ast.parse(module.source)
    definitions = read_tree(module.name, tree, is_package=module.is_package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(tree, module.spec.origin or module.file, "exec", dont_inherit=True)
    groups: dict[tuple[str, int], list[CodeType]] = {}
    for inner in function_codes(code):
        groups.setdefault((inner.co_name, inner.co_firstlineno), []).append(inner)
    wanted: dict[tuple[str, int], list[int]] = {}
    for definition in definitions.functions:
        place = (definition.name, definition.line)
        wanted.setdefault(place, []).append(definition.index)
    found: dict[CodeType, int] = {}
    for place, indices in wanted.items():
        codes = sorted(groups.get(place, []), key=_first_position)
        if len(codes) == len(indices):
            found |= dict(zip(codes, indices, strict=True))
    return found


def _first_position(code: CodeType) -> tuple[int, int]:
    return min(
        (line, column)
        for line, _, column, _ in code.co_positions()
        if line is not None and column is not None
    )


def _mark(kind: str, index: int) -> str:
    return f"{_MARK}{kind} {index}"


class _Hook(ast.NodeTransformer):
    def __init__(self, nodes: Mapping[int, int], rules: Mapping[int, Rule]) -> None:
        self.nodes = nodes
        self.rules = rules

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        index = self.nodes.get(id(node))
        self.generic_visit(node)
        if index in self.rules:
            pair = ast.Tuple([_record(_constant("id", index)), node.body], ast.Load())
            chosen = ast.Subscript(pair, ast.Constant(1), ast.Load())
            node.body = _place(chosen, node.body)
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        index = self.nodes.get(id(node))
        self.generic_visit(node)
        if index not in self.rules:
            return node
        first = node.generators[0]
        if first.is_async:
            pair = ast.Tuple([first.iter, _record(_constant("id", index))], ast.Load())
            first.iter = _place(ast.Subscript(pair, ast.Constant(0), ast.Load()), first.iter)
            return node
        entry = _call(
            "chain",
            _call("filter", ast.Constant(_APPEND), _constant("once", index)),
            ast.Constant(f"{_MARK}forever"),
        )
        first.iter = _place(_call("zip", entry, first.iter), first.iter)
        both = ast.Tuple([ast.Name(_NAME, ast.Store()), first.target], ast.Store())
        first.target = _place(both, first.target)
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        index = self.nodes.get(id(node))
        self.generic_visit(node)
        if index is None or index not in self.rules:
            return node
        rule = self.rules[index]
        value: ast.expr
        if rule.varies:
            argument: ast.expr = ast.Name(first_parameter(node), ast.Load())
            if rule.binding == "instance":
                argument = _call("type", argument)
            value = ast.Call(_constant("table", index), [argument], [])
        else:
            value = _constant("id", index)
        documented = ast.get_docstring(node, clean=False) is not None
        following = node.body[1 if documented and len(node.body) > 1 else 0]
        statement = _place(ast.Expr(_record(value)), following)
        node.body.insert(1 if documented else 0, statement)
        return node


def _record(value: ast.expr) -> ast.expr:
    return ast.Compare(ast.Constant(_SINK), [ast.Is()], [value])


def _constant(kind: str, index: int | None) -> ast.expr:
    assert index is not None
    return ast.Constant(_mark(kind, index))


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Constant(f"{_MARK}{name}"), list(arguments), [])


def _place[N: ast.AST](node: N, at: ast.AST) -> N:
    """Give a new node, and what is new inside it, the place of another in the source."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr | ast.stmt) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, at)
    return node


def _bind(
    plain: CodeType,
    hooked: CodeType,
    values: Mapping[str, Any],
    pairs: list[CodePair],
    recorded: set[str],
) -> CodeType:
    """Return the code that records; append each code object that changed to ``pairs``."""
    inner_plain = [item for item in plain.co_consts if isinstance(item, CodeType)]
    inner_hooked = [item for item in hooked.co_consts if isinstance(item, CodeType)]
    if [item.co_name for item in inner_plain] != [item.co_name for item in inner_hooked]:
        return plain
    bytecode = _append_instead(hooked)
    if bytecode is None:
        return plain
    if hooked == plain:
        return plain
    bound = {
        id(new): _bind(old, new, values, pairs, recorded)
        for old, new in zip(inner_plain, inner_hooked, strict=True)
    }
    marks = {item for item in hooked.co_consts if isinstance(item, str) and item in values}
    recorded |= marks
    constants = tuple(
        bound[id(item)]
        if isinstance(item, CodeType)
        else values.get(item, item)
        if isinstance(item, str)
        else item
        for item in hooked.co_consts
    )
    recording = hooked.replace(co_code=bytecode, co_consts=constants)
    pairs.append(CodePair(plain, recording))
    return recording


def _append_instead(code: CodeType) -> bytes | None:
    """Turn each comparison with the sink into an append, or return ``None`` if one looks unlike."""
    bytecode = bytearray(code.co_code)
    waiting = False
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_CONST" and instruction.argval == _SINK:
            if waiting:
                return None
            waiting = True
        elif waiting and instruction.opname == "IS_OP":
            if instruction.arg != 0:
                return None
            bytecode[instruction.offset] = dis.opmap["LIST_APPEND"]
            bytecode[instruction.offset + 1] = 1
            waiting = False
    return None if waiting else bytes(bytecode)
