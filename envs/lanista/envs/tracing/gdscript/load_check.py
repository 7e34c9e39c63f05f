"""The load check: what the engine makes of every script, asked inside the running project.

Checking a script by itself (``--check-only``) knows no autoloads, and refuses half of the scripts
of real projects untouched. So a scene of ours runs in the copy, loads every script, and reads the
engine's own list of each class's methods.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lanista.envs.errors import RunError
from lanista.envs.godot.bridge_files import FOLDER
from lanista.envs.godot.engine import Engine, run_engine
from lanista.envs.tracing.gdscript.inventory import Script
from lanista.envs.tracing.gdscript.runtime import engine_file

_FILES = ("load_check.gd", "load_check.tscn")
_FRAMES = 300
"""The scene ends the engine in its first frame; this ends one that keeps it from doing so."""
_FAILED = re.compile(r'Failed to load script "res://(?P<path>[^"\n]+)"')
_ERROR = re.compile(
    r"SCRIPT ERROR: (?P<why>(?:Parse|Compile) Error: [^\n]*)\n\s*at: [^\n(]*\(res://(?P<path>[^\n]*):"
    r"(?P<line>\d+)\)"
)
# The engine lists these beside what the author wrote.
_IMPLICIT = re.compile(r"@(?:implicit|static)")


@dataclass(frozen=True)
class Difference:
    """A class whose functions the engine lists otherwise than they were read.

    Attributes:
        file: The script's key.
        owner: The inner class, empty for the script's own.
        missing: Read in the source, and not listed by the engine.
        unexpected: Listed by the engine, and not read in the source.
    """

    file: str
    owner: str
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


@dataclass(frozen=True)
class LoadReport:
    """What loaded.

    Attributes:
        failing: Keys of the scripts that do not load, with the engine's first reason.
        methods: By script and inner class: the names that the engine lists, sorted.
    """

    failing: dict[str, str]
    methods: dict[tuple[str, str], tuple[str, ...]]


def load_scripts(
    engine: Engine, copy: Path, scripts: Iterable[Script], *, timeout_s: float = 300.0
) -> LoadReport:
    """Load every script inside the project and say what the engine found.

    Args:
        engine: The engine.
        copy: A copy of the project, imported; a few files are put into it for as long as it takes.
        scripts: The scripts to load.
        timeout_s: Seconds after which it is given up.

    Raises:
        RunError: If the project ends or hangs before all are loaded; the text ends in what the
            engine printed last.
    """
    asked = list(scripts)
    folder = copy / FOLDER
    existed = folder.exists()
    folder.mkdir(exist_ok=True)
    request = [
        {
            "path": f"res://{script.key}",
            "classes": [".".join(item.owners) for item in script.parsed.classes],
        }
        for script in asked
    ]
    request_file, found_file = folder / "load_check.json", folder / "load_check_found.json"
    written = [request_file, found_file, *(folder / name for name in _FILES)]
    try:
        request_file.write_text(json.dumps(request), encoding="utf-8")
        for name in _FILES:
            (folder / name).write_bytes(engine_file(name))
        finished = run_engine(
            engine.command,
            [
                *("--headless", "--path", str(copy), "--quit-after", str(_FRAMES)),
                f"res://{FOLDER}/load_check.tscn",
            ],
            timeout_s=timeout_s,
        )
        if found_file.is_file():
            found = json.loads(found_file.read_text(encoding="utf-8"))
            return _report(found, finished.output)
    finally:
        for path in written:
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".uid").unlink(missing_ok=True)
        if not existed:
            with suppress(OSError):
                folder.rmdir()
    raise RunError(
        f"The project ended before its scripts were loaded (status {finished.code}); the engine "
        f"printed last: {finished.last_lines or 'nothing'}."
    )


def differences(report: LoadReport, scripts: Iterable[Script]) -> list[Difference]:
    """Compare the functions read with the engine's lists, of the scripts that load."""
    found: list[Difference] = []
    for script in scripts:
        if script.key in report.failing or script.parsed.problems:
            continue
        for item in script.parsed.classes:
            owner = ".".join(item.owners)
            read = Counter(
                function.name
                for function in script.parsed.functions
                if function.owners == item.owners and function.kind != "lambda"
            )
            listed = Counter(report.methods.get((script.key, owner), ()))
            missing = tuple(sorted((read - listed).elements()))
            unexpected = tuple(
                name for name in sorted((listed - read).elements()) if not _IMPLICIT.match(name)
            )
            if missing or unexpected:
                found.append(Difference(script.key, owner, missing, unexpected))
    return found


def _report(found: dict[str, dict[str, object]], output: str) -> LoadReport:
    reasons: dict[str, str] = {}
    for match in _ERROR.finditer(output):
        reasons.setdefault(match["path"], f"line {match['line']}: {match['why']}")
    said = {match["path"] for match in _FAILED.finditer(output)}
    failing: dict[str, str] = {}
    methods: dict[tuple[str, str], tuple[str, ...]] = {}
    for path, item in found.items():
        key = path.removeprefix("res://")
        if not item["loaded"] or key in said:
            failing[key] = reasons.get(key, "the engine does not load it")
        listed = item["methods"]
        assert isinstance(listed, dict)
        for owner, names in listed.items():
            methods[key, owner] = tuple(sorted(names or ()))
    return LoadReport(failing, methods)
