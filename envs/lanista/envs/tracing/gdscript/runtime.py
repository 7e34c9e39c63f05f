"""What a traced copy holds besides the project: the hooks' text and the files that they need.

Cost decides the text of a hook. In Godot 4.6 a call with its share of the drain takes 70 ns where
it appends to an Array that the compiler has found in a preloaded resource (140 ns for a static
variable of another script); 230 ns in a static function that looks at the thread; 460 ns under the
class of the object in place, and 750 ns in a static function. An Array's append returns nothing, so
that it stands where discarded results are errors.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

from lanista.envs.godot.bridge_files import FOLDER
from lanista.envs.tracing.gdscript.copying import write_file
from lanista.envs.tracing.gdscript.inventory import ClassKey
from lanista.envs.tracing.gdscript.plan import Plan, Rule

CATALOGUE_FILE = f"{FOLDER}/catalogue.json"
"""The catalogue of a copy, relative to it."""

_CALLS = f'preload("res://{FOLDER}/calls.tres")'
_ROWS = f'preload("res://{FOLDER}/rows.tres")'
_SCRIPT = f'preload("res://{FOLDER}/trace.gd")'
_WARNING_AS_ERROR = re.compile(r"(?m)^gdscript/warnings/\w+=2\s*$")
_WARNINGS_ENABLED = re.compile(r"(?m)^gdscript/warnings/enable=\w+\r?\n")
_DEBUG_HEADING = re.compile(r"(?m)^\[debug\][ \t]*\r?\n")
_RUNTIME_FILES = ("calls.tres", "sink.gd", "rows.tres", "rows.gd", "trace.gd")


def hook_text(plan: Plan, rule: Rule, *, threads: bool) -> str:
    """Return the statement that a function with this rule begins with.

    Args:
        plan: The plan that the rule belongs to.
        rule: What to append.
        threads: Whether calls may come from other threads: appending to one array from several
            aborts the engine, so that only those of the main thread are taken.
    """
    if rule.varies:
        row = plan.row(rule)
        if threads or not rule.always:
            return f"{_SCRIPT}.enter_as({row}, self)"
        ids = f"{_ROWS}.events[{row}]"
        found = f"{ids}[get_script()] if {ids}.has(get_script())"
        return f"{_CALLS}.events.append({found} else {_SCRIPT}.find({row}, get_script()))"
    assert rule.default is not None
    if threads:
        return f"{_SCRIPT}.enter({rule.default})"
    return f"{_CALLS}.events.append({rule.default})"


def write_runtime(copy: Path, plan: Plan) -> None:
    """Put the files that the hooks need into a copy, and its catalogue."""
    folder = copy / FOLDER
    folder.mkdir(exist_ok=True)
    for name, content in runtime_sources().items():
        (folder / name).write_bytes(content)
    (folder / "tables.gd").write_text(_tables(plan), encoding="utf-8")
    catalogue = json.dumps(plan.catalogue.to_json(), indent=1, ensure_ascii=False)
    (copy / CATALOGUE_FILE).write_text(catalogue + "\n", encoding="utf-8")


def allow_warnings(copy: Path) -> None:
    """Turn warnings off in a copy of a project that treats some of them as errors.

    Hooks raise none, but the bridge is written to the engine's defaults.
    """
    for name in ("project.godot", "override.cfg"):
        path = copy / name
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        if _WARNING_AS_ERROR.search(text):
            text = _WARNINGS_ENABLED.sub("", text)
            off = "\ngdscript/warnings/enable=false\n"
            text = _DEBUG_HEADING.sub(r"\g<0>" + off, text, count=1)
            write_file(path, text.encode("utf-8", "surrogateescape"))


def add_autoload(copy: Path, name: str, script: str) -> None:
    """Make a script an autoload of a copy that has the bridge, the last of them."""
    settings = copy / "project.godot"
    text = settings.read_bytes().decode("utf-8", "surrogateescape")
    head, heading, tail = text.partition("[autoload]")
    entries, bracket, rest = tail.partition("\n[")
    added = f'{head}{heading}{entries.rstrip()}\n{name}="*{script}"\n{bracket}{rest}'
    write_file(settings, added.encode("utf-8", "surrogateescape"))


def runtime_sources() -> dict[str, bytes]:
    """Return the files that every copy holds, by name: part of what a copy depends on."""
    return {name: engine_file(name) for name in _RUNTIME_FILES}


def engine_file(name: str) -> bytes:
    """Return a file that this package puts into a copy."""
    folder = files("lanista.envs.tracing.gdscript").joinpath("engine_files")
    return folder.joinpath(name).read_bytes()


def class_path(key: ClassKey) -> str:
    """Return how trace.gd names a class: ``res://a.gd`` or ``res://a.gd>Outer.Inner``."""
    return f"res://{key[0]}" + (f">{'.'.join(key[1])}" if key[1] else "")


def _tables(plan: Plan) -> str:
    rows = [
        {
            "id": -1 if rule.default is None else rule.default,
            "classes": {
                class_path(key): -1 if number is None else number
                for key, number in sorted(rule.by_class.items())
            },
        }
        for rule in plan.rows
    ]
    # In a script, as an exported game holds no files of data.
    lines = ",\n".join(f"\t{json.dumps(row, ensure_ascii=False)}" for row in rows)
    return (
        "@tool\nextends RefCounted\n"
        "## The ids of inherited functions by the class of the object; made by Lanista.\n\n"
        f"const ROWS: Array = [\n{lines}\n]\n"
    )
