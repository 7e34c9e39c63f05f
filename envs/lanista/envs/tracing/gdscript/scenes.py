"""Scripts that stand inside text scenes and resources (``.tscn``, ``.tres``).

Such a script is the value of ``script/source`` in a section of type ``GDScript``: a string, with
quotes and backslashes escaped. It is read out, given to the caller, and what the caller puts into
it is escaped and put in at the same place; every other byte of the file stays as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lanista.envs.tracing.gdscript.rewriting import Insertion, Rewritten, insert
from lanista.envs.tracing.gdscript.tokens import LineNumbers

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PART = re.compile(
    rb"(?P<string>" + _STRING + rb")|(?P<comment>;[^\n]*+)|(?P<newline>\n)|(?P<open>[\[({])"
    rb"|(?P<close>[\])}])|(?P<plain>[^\"\n\[\](){};]++)|(?P<other>.)",
    re.DOTALL,
)
_HEADER = re.compile(rb"\[\s*(?P<tag>\w+)\b(?P<fields>.*)\]", re.DOTALL)
_FIELD = re.compile(
    rb"(?P<name>\w+)\s*=\s*(?:(?P<text>" + _STRING + rb")|(?P<word>[\w.+-]+))", re.DOTALL
)
_SOURCE = re.compile(rb"script/source\s*=\s*(?P<text>" + _STRING + rb")", re.DOTALL)
_ESCAPE = re.compile(
    rb"\\(?:u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{6})|(?P<one>.))", re.DOTALL
)
_ESCAPED = {b"b": b"\b", b"t": b"\t", b"n": b"\n", b"f": b"\f", b"r": b"\r"}
_THREAD_GROUP = re.compile(rb"(?m)^process_thread_group\s*=\s*[12]\b")


class EmbeddedScript(NamedTuple):
    """A script inside a scene.

    Attributes:
        identifier: The ``id`` of its section (``GDScript_ab3x``), empty for a file's own resource.
        line: Line of the scene on which its text begins, from 1.
        source: Its text.
    """

    identifier: str
    line: int
    source: bytes


class RewrittenScript(NamedTuple):
    """An embedded script and what was done to it."""

    script: EmbeddedScript
    rewritten: Rewritten


@dataclass(frozen=True)
class RewrittenScene:
    """A scene with hooks in its scripts.

    Attributes:
        source: The new file.
        scripts: Its scripts, in the order of the file.
    """

    source: bytes
    scripts: tuple[RewrittenScript, ...]


class _Place(NamedTuple):
    script: EmbeddedScript
    inside: int
    """Offset of the first byte after the opening quote."""
    text: bytes
    """As escaped."""


def embedded_scripts(source: bytes) -> tuple[EmbeddedScript, ...]:
    """Return the scripts inside a text scene or resource, in the order of the file."""
    return tuple(place.script for place in _places(source))


def rewrite_scene(source: bytes, rewrite: Callable[[EmbeddedScript], Rewritten]) -> RewrittenScene:
    """Rewrite the scripts inside a text scene or resource.

    Args:
        source: The file as it is.
        rewrite: Gives what to put into a script, usually by ``rewrite_script(script.source, …)``.

    Returns:
        The new file; scripts that could not be read are unchanged in it.
    """
    insertions: list[Insertion] = []
    scripts: list[RewrittenScript] = []
    for place in _places(source):
        rewritten = rewrite(place.script)
        scripts.append(RewrittenScript(place.script, rewritten))
        if rewritten.insertions:
            _, plain, escaped = _unescaped(place.text)
            for offset, text in rewritten.insertions:
                at = bisect_right(plain, offset) - 1
                where = place.inside + escaped[at] + offset - plain[at]
                insertions.append(Insertion(where, _escape(text)))
    return RewrittenScene(insert(source, insertions), tuple(scripts))


def scene_uses_threads(source: bytes) -> bool:
    """Say whether a node of a text scene runs its callbacks in another thread."""
    return bool(_THREAD_GROUP.search(source))


def _places(source: bytes) -> Iterator[_Place]:
    numbers = LineNumbers(source)
    tag, fields = b"", dict[bytes, bytes]()
    file_type = b""
    for start, end in _statements(source):
        statement = source[start:end]
        header = _HEADER.fullmatch(statement.strip())
        if header:
            tag = header["tag"]
            fields = {
                item["name"]: item["text"] or item["word"]
                for item in _FIELD.finditer(header["fields"])
            }
            if tag == b"gd_resource":
                file_type = fields.get(b"type", b"")
            continue
        kind = file_type if tag == b"resource" else fields.get(b"type", b"")
        if tag not in {b"resource", b"sub_resource"} or kind != b'"GDScript"':
            continue
        found = _SOURCE.fullmatch(statement.strip())
        if found:
            lead = len(statement) - len(statement.lstrip())
            inside = start + lead + found.start("text") + 1
            text = found["text"][1:-1]
            identifier = fields.get(b"id", b"").strip(b'"').decode("utf-8", "replace")
            script = EmbeddedScript(identifier, numbers.at(inside), _unescaped(text)[0])
            yield _Place(script, inside, text)


def _statements(source: bytes) -> Iterator[tuple[int, int]]:
    """Yield the extent of each header and each assignment of a text resource."""
    start = depth = 0
    for part in _PART.finditer(source):
        kind = part.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "comment" and not source[start : part.start()].strip():
            start = part.end()
        elif kind == "newline" and depth <= 0:
            if source[start : part.start()].strip():
                yield start, part.start()
            start, depth = part.end(), 0
    if source[start:].strip():
        yield start, len(source)


def _unescaped(text: bytes) -> tuple[bytes, list[int], list[int]]:
    """Return a string without escapes, and where its stretches begin without and with them."""
    parts: list[bytes] = []
    plain, escaped = [0], [0]
    length = position = 0
    for match in _ESCAPE.finditer(text):
        before = text[position : match.start()]
        code = match["short"] or match["long"]
        meant = _character(code) if code else _ESCAPED.get(match["one"], match["one"])
        parts.extend((before, meant))
        plain.append(length + len(before))
        escaped.append(match.start())
        length += len(before) + len(meant)
        position = match.end()
        plain.append(length)
        escaped.append(position)
    parts.append(text[position:])
    return b"".join(parts), plain, escaped


def _character(code: bytes) -> bytes:
    number = int(code, 16)
    return chr(number).encode("utf-8", "replace") if number <= 0x10FFFF else b"?"


def _escape(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
