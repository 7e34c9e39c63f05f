"""Putting a hook at the entry of every function of a GDScript file.

A hook is one statement, put in front of the first statement of a body on that statement's own
line, and in front of an annotation that belongs to it (``@warning_ignore`` would otherwise cover
the hook alone). Nothing else of the file changes: no line is added, and taking the insertions out
again gives back the original bytes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lanista.envs.tracing.gdscript.parsing import (
    ParsedScript,
    Problem,
    ScriptFunction,
    parse_script,
)

Hook = Callable[[ScriptFunction], str | None]
"""Gives the statement to put at the entry of a function, or ``None`` to leave it alone."""

_LINE_END = re.compile(r"[\r\n#]")


class Insertion(NamedTuple):
    """A text put into a file.

    Attributes:
        offset: Where, in bytes of the original.
        text: What.
    """

    offset: int
    text: bytes


@dataclass(frozen=True)
class Rewritten:
    """A file with hooks.

    Attributes:
        source: The new file; the original if there is a problem.
        functions: Those that have a hook, by their place in the file.
        skipped: Why the file was left alone, with lines; empty if it was not.
        insertions: What was put in, by offset.
        script: All that the file declares.
    """

    source: bytes
    functions: tuple[ScriptFunction, ...]
    skipped: tuple[Problem, ...]
    insertions: tuple[Insertion, ...]
    script: ParsedScript


def rewrite_script(
    source: bytes, hook: Hook, *, lambdas: bool = False, check: bool = True
) -> Rewritten:
    """Put a hook at the entry of the functions of a script.

    Args:
        source: The file as it is.
        hook: Called once for each function that has a body, in the order of the file. Its answer
            is one statement on one line, with or without a semicolon at the end. It should be a
            call that returns nothing, as a project may turn discarded results into errors.
        lambdas: Whether lambdas are asked about too.
        check: Whether a second parser must agree on the functions where one can read the file.

    Returns:
        The new file. A file that cannot be read safely comes back unchanged with the reason.

    Raises:
        ValueError: If a hook is empty or has a line end or a comment in it.
    """
    script = parse_script(source, check=check)
    hooked: list[ScriptFunction] = []
    insertions: list[Insertion] = []
    for function in script.functions:
        if function.offset < 0 or (function.kind == "lambda" and not lambdas):
            continue
        statement = hook(function)
        if statement is not None:
            hooked.append(function)
            insertions.append(Insertion(function.offset, _statement(statement)))
    return Rewritten(
        source=insert(source, insertions),
        functions=tuple(hooked),
        skipped=script.problems,
        insertions=tuple(insertions),
        script=script,
    )


def insert(source: bytes, insertions: Sequence[Insertion]) -> bytes:
    """Put texts into a file; those at one offset stay in their order."""
    parts: list[bytes] = []
    position = 0
    for offset, text in sorted(insertions, key=lambda item: item.offset):
        parts.extend((source[position:offset], text))
        position = offset
    parts.append(source[position:])
    return b"".join(parts)


def remove(source: bytes, insertions: Sequence[Insertion]) -> bytes:
    """Take texts out of a file that :func:`insert` put into it."""
    parts: list[bytes] = []
    position = shift = 0
    for offset, text in sorted(insertions, key=lambda item: item.offset):
        parts.append(source[position : offset + shift])
        shift += len(text)
        position = offset + shift
    parts.append(source[position:])
    return b"".join(parts)


def _statement(hook: str) -> bytes:
    text = hook.strip().rstrip(";").rstrip()
    if not text or _LINE_END.search(text):
        raise ValueError(f"a hook is one statement on one line, this is {hook!r}")
    return f"{text}; ".encode()
