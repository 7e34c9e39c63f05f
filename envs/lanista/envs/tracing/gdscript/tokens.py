"""The tokens and logical lines of a GDScript source, with exact byte offsets.

The engine's own rules, read off its behaviour: brackets join lines, so does a backslash (and blank
or comment lines after it are skipped); any string may hold line ends; a tab counts four columns;
comment lines have no indentation. The source stays bytes throughout, so an offset is a place in
the file whatever its line ends, byte-order mark or alphabet; every byte from 0x80 on counts as part
of a name, as no such character is an operator or a space outside strings and comments.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TAB_COLUMNS = 4

Kind = Literal["name", "member", "string", "number", "annotation", "operator"]
"""What a token is; ``member`` is a name after ``.``, ``$`` or ``%``, where no keyword counts."""

_DOUBLE = rb'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""|"(?!"")[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(
    rb"(?P<space>[ \t\r]+)"
    rb"|(?P<newline>\n)"
    rb"|(?P<comment>\#[^\n]*+)"
    rb"|(?P<joined>\\\r?\n(?:[ \t]*+(?:\#[^\n]*+)?\r?\n)*+)"
    rb"|(?P<string>(?:[r&^](?=[\"']))?(?:" + _DOUBLE + rb"|" + _DOUBLE.replace(b'"', b"'") + rb"))"
    rb"|(?P<annotation>@[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*+)"
    rb"|(?P<number>[0-9][A-Za-z0-9_]*+(?:\.(?!\.)[A-Za-z0-9_]*+)?|\.[0-9][A-Za-z0-9_]*+)"
    rb"|(?P<name>[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*+)"
    rb"|(?P<operator>->|\.\.\.?|&&|\|\||.)",
    re.DOTALL,
)
_OPENING = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSING = frozenset(_OPENING.values())
_BLANKS = re.compile(rb"(?:[ \t\r\n]|\#[^\n]*+)*+")


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: What it is.
        start: Offset of its first byte in the file.
        end: Offset after its last byte.
        text: Its bytes.
        depth: Number of brackets open around it; a bracket itself has that of its outside.
    """

    kind: Kind
    start: int
    end: int
    text: bytes
    depth: int


class LogicalLine(NamedTuple):
    """Tokens up to a line end that the parser would see.

    Attributes:
        indent: Columns before the first token.
        tokens: At least one.
        first: Index of the first token among all of the source.
    """

    indent: int
    tokens: list[Token]
    first: int


class SourceError(Exception):
    """A place in a source that makes no sense.

    Attributes:
        offset: Byte offset in the file.
        why: A clause without a full stop.
    """

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


class LineNumbers:
    """Line numbers, from 1, of byte offsets; only a line feed ends a line, as in the engine."""

    def __init__(self, source: bytes) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]

    def at(self, offset: int) -> int:
        """Return the number of the line that holds a byte."""
        return bisect_right(self._starts, offset)

    def start(self, offset: int) -> int:
        """Return where the line of a byte starts."""
        return self._starts[self.at(offset) - 1]


def logical_lines(source: bytes) -> list[LogicalLine]:
    """Split a source into logical lines.

    Raises:
        SourceError: If a string or bracket is not closed, or closed without being open.
    """
    lines: list[LogicalLine] = []
    tokens: list[Token] = []
    open_brackets: list[tuple[bytes, int]] = []
    count = 0
    line_start = len(BYTE_ORDER_MARK) if source.startswith(BYTE_ORDER_MARK) else 0
    path = _NodePath()
    previous = b""
    for match in _TOKEN.finditer(source, line_start):
        kind = match.lastgroup
        if kind in {"space", "comment", "joined"}:
            continue
        start = match.start()
        if kind == "newline":
            if open_brackets or (tokens and _goes_on(tokens, source, start)):
                continue
            if tokens:
                lines.append(LogicalLine(_indent(source, line_start, tokens[0]), tokens, count))
                count += len(tokens)
                tokens = []
            line_start = match.end()
            path, previous = _NodePath(), b""
            continue
        text = match.group()
        if kind == "operator" and text in _CLOSING:
            if not open_brackets or _OPENING[open_brackets[-1][0]] != text:
                raise SourceError(start, f"“{text.decode()}” closes no bracket")
            open_brackets.pop()
        if kind == "operator" and text in {b'"', b"'"}:
            raise SourceError(start, "the string is not closed")
        if kind == "operator" and text == b"\0":
            raise SourceError(start, "the file is not text")
        if kind == "name" and (path.expects_name or previous == b"."):
            kind = "member"
        tokens.append(Token(kind, start, match.end(), text, len(open_brackets)))  # type: ignore[arg-type]
        if kind == "operator" and text in _OPENING:
            open_brackets.append((text, start))
        path.see(text, kind, source[match.end() : match.end() + 1])
        previous = text
    if open_brackets:
        raise SourceError(open_brackets[-1][1], "the bracket is not closed")
    if tokens:
        lines.append(LogicalLine(_indent(source, line_start, tokens[0]), tokens, count))
    return lines


class _NodePath:
    """Follows node paths such as ``$Body/class``, in which a keyword is only a name."""

    def __init__(self) -> None:
        self.expects_name = False
        self._had_name = False

    def see(self, text: bytes, kind: str | None, following: bytes) -> None:
        """Take the next token and the byte that follows it."""
        named = self.expects_name and kind in {"member", "string"}
        if text == b"$":
            expects = True
        elif text == b"%":
            # A space follows the operator by custom; no expression begins with a keyword that
            # could stand directly after it.
            expects = self.expects_name or not following.isspace()
        else:
            expects = self._had_name and text == b"/"
        self.expects_name, self._had_name = expects, named


def _goes_on(tokens: Sequence[Token], source: bytes, offset: int) -> bool:
    """Say whether a line end is skipped: ``enum State`` and ``func go`` wait for their bracket."""
    last = tokens[-1]
    heads = {b"enum": b"{", b"func": b"("}
    wanted = heads.get(last.text) if last.kind == "name" else None
    if wanted is None and len(tokens) > 1 and last.kind == "name" and tokens[-2].kind == "name":
        wanted = heads.get(tokens[-2].text)
    if wanted is None:
        return False
    blanks = _BLANKS.match(source, offset)
    assert blanks is not None
    return source[blanks.end() : blanks.end() + 1] == wanted


def _indent(source: bytes, line_start: int, token: Token) -> int:
    blank = source[line_start : token.start]
    return blank.count(b"\t") * TAB_COLUMNS + blank.count(b" ")
