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
from collections.abc import Sequence
from dataclasses import dataclass

from lanista.envs.tracing.gdscript.declarations import (
    LAMBDA_NAME,
    FunctionKind,
    Problem,
    ScriptClass,
    ScriptFunction,
)
from lanista.envs.tracing.gdscript.oracles import confirm
from lanista.envs.tracing.gdscript.reading import DeclarationReader
from lanista.envs.tracing.gdscript.tokens import (
    LineNumbers,
    LogicalLine,
    SourceError,
    logical_lines,
)

__all__ = [
    "LAMBDA_NAME",
    "FunctionKind",
    "ParsedScript",
    "Problem",
    "ScriptClass",
    "ScriptFunction",
    "parse_script",
]


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
        reader = DeclarationReader(lines, numbers)
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
        classes=reader.classes(),
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
