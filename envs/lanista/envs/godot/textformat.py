"""Godot's text format: project settings, scenes and resources.

A file is a list of tags (``[node name="A" type="Node"]``) with assignments under them
(``script = ExtResource("1")``). Only what is asked for is turned into values: scenes hold megabytes
of mesh data that nobody here reads. The format is the engine's ``VariantParser``'s.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

type Value = bool | int | float | str | list["Value"] | dict["Value", "Value"] | Call | None

_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[({]|[\])}]|;[^\n]*|\n|"', re.DOTALL)
_SPACE = re.compile(r"(?:\s|;[^\n]*)*")
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COLOUR = re.compile(r"#[0-9A-Fa-f]+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{6}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": ""}
_WORDS: Mapping[str, "Value"] = {
    "true": True,
    "false": False,
    "null": None,
    "nil": None,
    "inf": math.inf,
    "inf_neg": -math.inf,
    "nan": math.nan,
}
_OPENING, _CLOSING = "[({", "])}"
_DEEPEST = 200


class FormatError(ValueError):
    """The text is not in Godot's format; ``line`` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"line {line}: {what}")
        self.what = what
        self.line = line


@dataclass(frozen=True)
class Call:
    """A value written as a call: ``PackedStringArray("4.4")``, ``ExtResource("1")``.

    Attributes:
        name: What is called.
        arguments: Its values; of ``"name": value`` inside ``Object(…)`` the value.
    """

    name: str
    arguments: tuple["Value", ...]


@dataclass(frozen=True)
class Tag:
    """A tag and the assignments under it; values are read when asked for.

    Attributes:
        text: What stands between the brackets.
        line: Line it begins on, from 1; 0 for what comes before the first tag.
        assignments: Name to the text of its value and the line that the value begins on.
    """

    text: str
    line: int
    assignments: dict[str, tuple[str, int]] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """First word of the tag."""
        return self.text.split(maxsplit=1)[0] if self.text.strip() else ""

    @cached_property
    def attributes(self) -> dict[str, Value]:
        """Values in the tag itself.

        Raises:
            FormatError: If they cannot be read.
        """
        reader = _Reader(self.text, self.line)
        reader.at = len(self.text) - len(self.text.lstrip()) + len(self.name)
        found: dict[str, Value] = {}
        while not reader.ended:
            name = reader.match(_NAME, "a name")
            reader.expect("=")
            found[name] = reader.value()
        return found

    def value(self, name: str, default: Value = None) -> Value:
        """Read what is assigned to a name.

        Raises:
            FormatError: If it cannot be read.
        """
        if name not in self.assignments:
            return default
        text, line = self.assignments[name]
        reader = _Reader(text, line)
        value = reader.value()
        if not reader.ended:
            raise reader.error(f"something follows the value of {name}")
        return value


def read_tags(text: str) -> list[Tag]:
    """Split a text into tags and assignments; the first one holds what precedes every tag.

    Raises:
        FormatError: If a string or bracket is never closed, or a line is neither.
    """
    tags = [Tag("", 0)]
    at = 0
    line = 1
    text = text.removeprefix("\ufeff")
    while True:
        space = _SPACE.match(text, at)
        assert space is not None
        line += text.count("\n", at, space.end())
        at = space.end()
        if at >= len(text):
            return tags
        end = _end_of_entry(text, at, line)
        entry = text[at:end]
        if entry.startswith("["):
            tags.append(Tag(entry[1:-1], line))
        else:
            _assign(tags[-1], entry, line)
        line += entry.count("\n")
        at = end


def _end_of_entry(text: str, start: int, line: int) -> int:
    is_tag = text[start] == "["
    depth = 0
    for found in _STRUCTURE.finditer(text, start):
        mark = found[0]
        if mark == '"':
            raise FormatError("a string is never closed", line)
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if depth < 0:
                raise FormatError(f"{mark!r} closes nothing", line)
            if is_tag and depth == 0:
                return found.end()
        elif depth == 0 and (mark == "\n" or mark.startswith(";")):
            return found.start()
    if depth:
        raise FormatError("a bracket is never closed", line)
    return len(text)


def _assign(tag: Tag, entry: str, line: int) -> None:
    quoted = _STRING.match(entry)
    name_end = entry.find("=", quoted.end() if quoted else 0)
    if name_end < 0:
        raise FormatError(
            f"{entry.splitlines()[0][:60]!r} is neither a tag nor an assignment", line
        )
    name = _unescape(quoted[1]) if quoted else entry[:name_end].strip()
    tag.assignments[name] = (entry[name_end + 1 :], line + entry.count("\n", 0, name_end + 1))


def _unescape(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[0] in "uU" and len(escaped) > 1:
            code = int(escaped[1:], 16)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
        return _ESCAPED.get(escaped, escaped)

    # Halves of a character outside the basic plane are written one after the other.
    written = _ESCAPE.sub(one, text)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Reader:
    """Reads values of one piece of text."""

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        self.at = 0
        self._depth = 0

    @property
    def ended(self) -> bool:
        self._skip_space()
        return self.at >= len(self.text)

    def error(self, what: str) -> FormatError:
        return FormatError(what, self.line + self.text.count("\n", 0, self.at))

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        self._skip_space()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.error(f"{what} is missing")
        self.at = found.end()
        return found[0]

    def expect(self, character: str) -> None:
        if not self._accept(character):
            raise self.error(f"{character!r} is missing")

    def value(self) -> Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error("values are nested too deeply")
        try:
            return self._value()
        finally:
            self._depth -= 1

    def _value(self) -> Value:
        self._skip_space()
        character = self.text[self.at : self.at + 1]
        if character in ("&", "^"):
            self.at += 1
            character = self.text[self.at : self.at + 1]
        if character == '"':
            return _unescape(self.match(_STRING, "a string")[1:-1])
        if self._accept("["):
            return list(self._items("]", self.value))
        if self._accept("{"):
            return dict(self._items("}", self._pair))
        if character == "#":
            return self.match(_COLOUR, "a colour")
        if _NUMBER.match(self.text, self.at):
            number = self.match(_NUMBER, "a number")
            return int(number) if number.lstrip("+-").isdecimal() else float(number)
        name = self.match(_NAME, "a value")
        if self._accept("["):  # Array[Type](…): the type says nothing here
            for _ in self._items("]", self._type):
                pass
        if self._accept("("):
            return Call(name, tuple(self._items(")", self._argument)))
        return _WORDS.get(name, name)

    def _items[Item](self, closing: str, read: Callable[[], Item]) -> Iterator[Item]:
        while not self._accept(closing):
            if self.ended:
                raise self.error(f"{closing!r} is missing")
            yield read()
            if not self._accept(","):
                self.expect(closing)
                return

    def _pair(self) -> tuple[Value, Value]:
        key = self.value()
        self.expect(":")
        value = self.value()
        # Keys that are lists or dictionaries are never asked for.
        return (key if isinstance(key, str | int | float | None | Call) else str(key)), value

    def _argument(self) -> Value:
        value = self.value()
        return self.value() if self._accept(":") else value

    def _type(self) -> Value:
        return self.value()

    def _accept(self, character: str) -> bool:
        self._skip_space()
        if not self.text.startswith(character, self.at):
            return False
        self.at += len(character)
        return True

    def _skip_space(self) -> None:
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
