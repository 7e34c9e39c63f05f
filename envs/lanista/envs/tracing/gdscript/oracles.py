"""Two public parsers that check where this package's own one sees the bodies of functions.

Neither reads all that the engine accepts, so silence of both decides nothing. tree-sitter takes a
few milliseconds for a file and is asked first; gdtoolkit is slower by far and is asked only where
the first cannot read a file or says something else.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from lanista.envs.tracing.gdscript.tokens import BYTE_ORDER_MARK

_BODIES = frozenset(
    {
        "function_definition",
        "constructor_definition",
        "lambda",
        "set_body",
        "get_body",
    }
)
_GDTOOLKIT_FUNCTIONS = frozenset(
    {"func_def", "lambda", "property_custom_getter", "property_custom_setter"}
)
_GDTOOLKIT_HEADERS = frozenset({"func_header", "lambda_header", "property_setter_args"})


class Confirmation(NamedTuple):
    """What other parsers say.

    Attributes:
        oracle: The parser that decided, empty if none can read the file.
        disputed_offset: A place where it sees the body of a function and this package does not, or
            the other way round; ``None`` if they agree.
    """

    oracle: str
    disputed_offset: int | None


def confirm(source: bytes, bodies: frozenset[int]) -> Confirmation:
    """Compare the offsets of the first statements of all functions with what others see.

    Args:
        source: The file.
        bodies: Offsets to confirm, of lambdas and accessors too.
    """
    disputed: Confirmation | None = None
    for name, read in (("tree-sitter", by_tree_sitter), ("gdtoolkit", by_gdtoolkit)):
        seen = read(source)
        if seen is None:
            continue
        if seen == bodies:
            return Confirmation(name, None)
        disputed = disputed or Confirmation(name, min(seen ^ bodies))
    return disputed or Confirmation("", None)


def by_tree_sitter(source: bytes) -> frozenset[int] | None:
    """Return the offsets of first statements as tree-sitter sees them, ``None`` if it cannot."""
    new_parser = _tree_sitter()
    if new_parser is None:
        return None
    tree = new_parser().parse(source)
    if tree.root_node.has_error:
        return None
    offsets = set()
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        nodes.extend(node.named_children)
        if node.type not in _BODIES:
            continue
        body = node.child_by_field_name("body")
        if body is None:
            continue
        statements = [item for item in body.named_children if item.type != "comment"]
        if not statements:
            # It takes a comment at the margin for the end of a body, which then is empty.
            return None
        offsets.add(statements[0].start_byte)
    return frozenset(offsets)


@functools.cache
def _tree_sitter() -> Callable[[], Any] | None:
    try:
        import tree_sitter
        import tree_sitter_gdscript
    except ImportError:
        return None
    language = tree_sitter.Language(tree_sitter_gdscript.language())
    return lambda: tree_sitter.Parser(language)


def by_gdtoolkit(source: bytes) -> frozenset[int] | None:
    """Return the offsets of first statements as gdtoolkit sees them, ``None`` if it cannot."""
    parse = _gdtoolkit()
    text = source.removeprefix(BYTE_ORDER_MARK).decode("utf-8").replace("\r\n", "\n")
    root = parse(text) if parse else None
    if root is None:
        return None
    lines = source.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    offsets = set()
    for node in root.iter_subtrees():
        if node.data not in _GDTOOLKIT_FUNCTIONS:
            continue
        trees = [child for child in node.children if hasattr(child, "data")]
        first = next((tree for tree in trees if tree.data not in _GDTOOLKIT_HEADERS), None)
        if first is None:
            continue
        line, column = first.meta.line - 1, first.meta.column - 1
        mark = len(BYTE_ORDER_MARK) if line == 0 and source.startswith(BYTE_ORDER_MARK) else 0
        before = lines[line][mark:].decode("utf-8")[:column]
        offsets.add(starts[line] + mark + len(before.encode("utf-8")))
    return frozenset(offsets)


@functools.cache
def _gdtoolkit() -> Callable[[str], Any] | None:
    try:
        from gdtoolkit.parser import parser
        from lark.exceptions import LarkError
    except ImportError:
        return None

    def parse(text: str) -> Any:
        try:
            return parser.parse(text, gather_metadata=True)
        except (LarkError, IndexError, KeyError, AssertionError, RecursionError):
            return None

    return parse
