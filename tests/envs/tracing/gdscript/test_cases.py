"""Scripts that are easy to get wrong: what the real engine makes of them with hooks."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.tracing.gdscript.parsing import ScriptFunction
from lanista.envs.tracing.gdscript.rewriting import Rewritten, remove, rewrite_script

HERE = Path(__file__).parent
ANONYMOUS = "<anonymous lambda>"
VISIBLE = {"␉": "\t", "␠": " ", "§": "\u2028\u0085\u00a0"}
TRACE = """extends RefCounted
static var calls := PackedInt32Array()
static func hit(id: int) -> void:
	calls.append(id)
"""


@dataclass(frozen=True)
class Case:
    """A script and the calls that its ``run()`` makes."""

    name: str
    source: bytes
    calls: list[str]
    with_lambdas: list[str]


def read_cases() -> list[Case]:
    sections = (HERE / "cases.txt").read_text(encoding="utf-8").split("\n===== ")[1:]
    return [read_case(section) for section in sections]


def read_case(section: str) -> Case:
    header, text = section.split("\n", 1)
    name, _, rest = header.partition(": ")
    calls, *options = rest.split(" | ")
    said = dict(option.split(": ") for option in options)
    made = said.get("made", "").split()
    text = text.rstrip("\n") + "\n"
    for symbol, meant in VISIBLE.items():
        text = text.replace(symbol, meant)
    if "unterminated" in made:
        text = text.rstrip("\n")
    if "crlf" in made:
        text = text.replace("\n", "\r\n")
    if "marked" in made:
        text = "\ufeff" + text
    with_lambdas = said.get("lambdas", calls).split()
    with_lambdas = [ANONYMOUS if item == "<>" else item for item in with_lambdas]
    return Case(name, text.encode("utf-8"), calls.split(), with_lambdas)


CASES = read_cases()
FORMS = ("plain", "hooked", "lambdas")


class Recorder:
    """Gives each function a hook with a number of its own."""

    def __init__(self) -> None:
        self.functions: list[ScriptFunction] = []

    def __call__(self, function: ScriptFunction) -> str:
        self.functions.append(function)
        return f'preload("res://trace.gd").hit({len(self.functions) - 1});'

    def names(self, calls: Sequence[float]) -> list[str]:
        """Return the names of recorded calls."""
        return [self.functions[int(call)].name for call in calls]


@dataclass(frozen=True)
class Played:
    """What became of a case in the engine."""

    rewritten: Rewritten
    loaded: bool
    returned: str
    calls: list[str]
    methods: list[tuple[tuple[str, ...], str]]


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, run_engine: Callable[..., str]
) -> dict[tuple[str, str], Played]:
    """Play every case as it is, with hooks, and with hooks in lambdas too, in one engine."""
    project = tmp_path_factory.mktemp("cases")
    (project / "project.godot").write_text("config_version=5\n", encoding="utf-8")
    (project / "trace.gd").write_text(TRACE, encoding="utf-8")
    for name in ("runner.gd", "methods.gd"):
        shutil.copy(HERE / name, project)
    recorder = Recorder()
    rewritten: dict[tuple[str, str], Rewritten] = {}
    global_classes = []
    for form in FORMS:
        (project / form).mkdir()
        for case in CASES:
            # The three forms stand in one project, in which a global name is one script's.
            source = case.source.replace(b"LanistaCase", f"LanistaCase{form}".encode())
            hook = recorder if form != "plain" else lambda function: None
            result = rewrite_script(source, hook, lambdas=form == "lambdas")
            rewritten[form, case.name] = result
            path = f"{form}/{case.name}.gd"
            (project / path).write_bytes(result.source)
            if result.script.class_name:
                global_classes.append(_global_class(result.script.class_name, path))
    (project / ".godot").mkdir()
    listing = f"list=[{', '.join(global_classes)}]\n"
    cache = project / ".godot" / "global_script_class_cache.cfg"
    cache.write_text(listing, encoding="utf-8")
    printed = run_engine(project, "--script", "res://runner.gd")
    results: dict[tuple[str, str], Played] = {}
    for line in read_lines(printed):
        key = (line["form"], line["name"])
        results[key] = Played(
            rewritten=rewritten[key],
            loaded=line["loaded"],
            returned=line.get("returned", ""),
            calls=recorder.names(line["calls"]),
            methods=[(tuple(chain), name) for chain, name in line.get("methods", [])],
        )
    assert len(results) == 3 * len(CASES), printed
    return results


def _global_class(name: str, path: str) -> str:
    fields = f'"base": &"RefCounted", "class": &"{name}", "icon": "", "path": "res://{path}"'
    flags = '"is_abstract": false, "is_tool": false, "language": &"GDScript"'
    return f"{{{fields}, {flags}}}"


def read_lines(printed: str) -> list[dict[str, Any]]:
    """Return the results that ``runner.gd`` printed."""
    return [json.loads(match) for match in re.findall(r"(?m)^CASE (.*)$", printed)]


every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@every_case
def test_the_engine_loads_it_and_it_returns_the_same(
    played: dict[tuple[str, str], Played], case: Case
):
    plain, hooked, lambdas = (played[form, case.name] for form in FORMS)
    assert plain.loaded
    assert hooked.loaded
    assert lambdas.loaded
    assert plain.returned == hooked.returned == lambdas.returned


@every_case
def test_calls_are_recorded_in_order(played: dict[tuple[str, str], Played], case: Case):
    plain, hooked, lambdas = (played[form, case.name] for form in FORMS)
    assert plain.calls == []
    assert hooked.calls == case.calls
    assert lambdas.calls == case.with_lambdas


@every_case
def test_functions_are_those_that_the_engine_lists(
    played: dict[tuple[str, str], Played], case: Case
):
    hooked = played["hooked", case.name]
    found = hooked.rewritten.script.functions
    named = sorted((item.owners, item.name) for item in found if item.kind != "lambda")
    assert named == sorted(hooked.methods)
    abstract = [item for item in found if item.kind == "abstract"]
    lambdas = [item for item in found if item.kind == "lambda"]
    assert len(hooked.rewritten.functions) == len(found) - len(abstract) - len(lambdas)


@every_case
def test_only_hooks_are_added_and_no_line_moves(played: dict[tuple[str, str], Played], case: Case):
    result = rewrite_script(case.source, lambda function: "hit(9)", lambdas=True)
    assert result.skipped == ()
    assert remove(result.source, result.insertions) == case.source
    assert result.source.replace(b"hit(9); ", b"") == case.source
    assert result.source.count(b"hit(9); ") == len(result.functions)
    before, after = case.source.split(b"\n"), result.source.split(b"\n")
    assert len(before) == len(after)
    for function in result.functions:
        assert b"func" in before[function.line - 1] or function.kind == "accessor"


@every_case
def test_static_functions_are_told_apart(case: Case):
    script = rewrite_script(case.source, lambda function: None).script
    text = case.source.decode("utf-8-sig").split("\n")
    for function in script.functions:
        if function.kind in {"function", "static", "abstract"}:
            said = bool(re.search(rf"static func\s+{function.name}\b", text[function.line - 1]))
            assert function.static == said == (function.kind == "static"), function
