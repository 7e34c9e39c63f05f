"""Third-party packages that know nothing of Lanista, recorded as the interpreter sees them."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer

TOOL = 2


def use_sorted_list() -> Any:
    from sortedcontainers import SortedDict, SortedList, SortedSet

    numbers = SortedList(range(500, 0, -3), key=lambda item: item % 7)
    numbers.update(range(40))
    numbers.discard(12)
    names = SortedDict({"b": 1, "a": 2})
    names.setdefault("c", 3)
    return list(numbers), names.peekitem(0), list(SortedSet([3, 1, 2]) | {9}), numbers.bisect(3)


def use_pyparsing() -> Any:
    import pyparsing as pp

    number = pp.Word(pp.nums).set_parse_action(lambda tokens: int(tokens[0]))
    expression = pp.infix_notation(number, [("*", 2, pp.OpAssoc.LEFT), ("+", 2, pp.OpAssoc.LEFT)])
    return expression.parse_string("1+2*(3+4)", parse_all=True).as_list()


def use_jinja() -> Any:
    import jinja2

    template = jinja2.Environment().from_string("{% for x in y|sort %}{{ x + 1 }},{% endfor %}")
    return template.render(y=[3, 1, 2])


@pytest.mark.parametrize(
    ("package", "use"),
    [("sortedcontainers", use_sorted_list), ("pyparsing", use_pyparsing), ("jinja2", use_jinja)],
)
def test_a_package_is_recorded_as_the_interpreter_sees_it(
    package: str, use: Callable[[], Any]
) -> None:
    expected_result = use()
    folder = Path(str(importlib.import_module(package).__file__)).parent
    calls: list[tuple[str, str, int]] = []

    def started(code: CodeType, _: int) -> None:
        path = Path(code.co_filename)
        comprehension = code.co_name in {"<listcomp>", "<setcomp>", "<dictcomp>"}
        if path.is_relative_to(folder) and code.co_flags & 1 and not comprehension:
            file = path.relative_to(folder.parent).as_posix()
            calls.append((file, code.co_qualname, code.co_firstlineno))

    with Tracer(Scope((package,)), "definition") as tracer:
        sys.monitoring.use_tool_id(TOOL, "test")
        sys.monitoring.register_callback(TOOL, sys.monitoring.events.PY_START, started)
        sys.monitoring.set_events(TOOL, sys.monitoring.events.PY_START)
        try:
            result = use()
        finally:
            sys.monitoring.set_events(TOOL, 0)
            sys.monitoring.free_tool_id(TOOL)
        functions = [tracer.catalogue.functions[call] for call in tracer.drain().ids]
    assert result == expected_result
    assert len(calls) > 100
    got = [
        (item.file, re.sub(r"#\d+$|\.setter$", "", item.name.split(":")[1]), item.line)
        for item in functions
    ]
    assert got == calls


def test_modules_that_python_cannot_read_do_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "half_broken"
    package.mkdir()
    (package / "__init__.py").write_text("def good():\n    return 1\n")
    (package / "syntax.py").write_text("def bad(:\n")
    (package / "encoding.py").write_bytes(b'def latin():\n    return "\xe9"\n')
    (package / "nul.py").write_bytes(b"\0\0")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("half_broken")
    with Tracer(Scope(("half_broken",)), "class") as tracer:
        module.good()
        trace = tracer.drain()
    assert [item.name for item in tracer.catalogue.functions] == ["half_broken:good"]
    assert len(trace) == 1
