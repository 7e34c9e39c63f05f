"""Instrumenting a Godot project: a copy whose functions append their ids when they are entered."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lanista.envs.errors import RunError
from lanista.envs.godot.bridge_files import bridge_sources, install_bridge
from lanista.envs.godot.engine import Engine
from lanista.envs.godot.project import Project, import_project, project_sha256
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.gdscript.copying import (
    MARK_FILE,
    appearing,
    check_places,
    copy_files,
    read_mark,
    write_file,
)
from lanista.envs.tracing.gdscript.inventory import Inventory, Script
from lanista.envs.tracing.gdscript.load_check import Difference, differences, load_scripts
from lanista.envs.tracing.gdscript.parsing import ScriptFunction
from lanista.envs.tracing.gdscript.plan import Plan, make_plan
from lanista.envs.tracing.gdscript.rewriting import Rewritten, rewrite_script
from lanista.envs.tracing.gdscript.runtime import (
    allow_warnings,
    hook_text,
    runtime_sources,
    write_runtime,
)
from lanista.envs.tracing.gdscript.scenes import EmbeddedScript, rewrite_scene
from lanista.envs.tracing.gdscript.scope import GodotScope

EVERYTHING = GodotScope()
"""All scripts of a project outside ``addons/``."""

_FORMAT = 3


@dataclass(frozen=True)
class Skipped:
    """A script that was left as it is, so that its calls are not seen.

    Attributes:
        file: The script, relative to the project; an embedded one as ``scene.tscn::id``.
        line: Where the reason is, from 1; 0 for the whole file.
        why: A clause without a full stop.
        functions: How many functions are not seen by that.
    """

    file: str
    line: int
    why: str
    functions: int


@dataclass(frozen=True)
class Instrumented:
    """A traced copy of a project.

    Attributes:
        path: Its folder.
        catalogue: The functions and their ids; those of skipped scripts stay in it.
        functions: How many functions have a hook.
        scripts: How many scripts have one at least.
        skipped: Scripts that are left as they are.
        threads: What may call script code from other threads; if there is anything, only calls of
            the main thread are recorded.
        checked: Whether the engine loaded every script before and after.
        unchecked: Why not: no engine was given, or the untouched project ends before that.
        failing_before: Scripts that the engine does not load as the author left them either, with
            what it says of each.
        differences: Where the engine's own lists of methods differ from the functions read.
        sha256: Hash of all that the copy is made of: the project, what is recorded, and Lanista's
            own files in it.
    """

    path: Path
    catalogue: Catalogue
    functions: int
    scripts: int
    skipped: tuple[Skipped, ...]
    threads: tuple[str, ...]
    checked: bool
    unchecked: str
    failing_before: dict[str, str]
    differences: tuple[Difference, ...]
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the result without the catalogue's functions, as JSON."""
        return {
            "path": str(self.path),
            "functions": self.functions,
            "scripts": self.scripts,
            "skipped": [asdict(item) for item in self.skipped],
            "threads": list(self.threads),
            "checked": self.checked,
            "unchecked": self.unchecked,
            "failing_before": dict(self.failing_before),
            "differences": [asdict(item) for item in self.differences],
            "catalogue_functions": len(self.catalogue),
            "catalogue_sha256": self.catalogue.sha256,
            "sha256": self.sha256,
        }


def script_catalogue(
    source: Path | str,
    scheme: Scheme = "class",
    scope: GodotScope = EVERYTHING,
    *,
    lambdas: bool = False,
) -> Catalogue:
    """Return the functions of a project and their ids, without writing or running anything.

    It is the catalogue of every copy of the project made with the same choices.

    Raises:
        InputError: If it is no project, or a pattern matches nothing.
    """
    return project_plan(Project.open(source), scheme, scope, lambdas=lambdas).catalogue


def project_plan(project: Project, scheme: Scheme, scope: GodotScope, *, lambdas: bool) -> Plan:
    """Return what is recorded of a project, and how.

    Raises:
        InputError: If a script cannot be read, or a pattern matches nothing.
    """
    return make_plan(Inventory.read(project), scope, scheme, lambdas=lambdas)


def instrument_project(
    source: Path | str,
    out: Path | str,
    *,
    scheme: Scheme = "class",
    scope: GodotScope = EVERYTHING,
    lambdas: bool = False,
    engine: Engine | None = None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> Instrumented:
    """Make a copy of a project whose functions are recorded, with the bridge in it.

    The project is only read. The copy appears whole or not at all; an earlier copy in its place is
    kept if it was made of the same, and replaced otherwise. A script that cannot be read, or that
    the engine refuses with hooks and takes without, is left as it is.

    Args:
        source: The project.
        out: Folder of the copy.
        scheme: ``definition``, or ``class``: inherited methods under the object's own class.
        scope: Which functions are recorded.
        lambdas: Whether lambdas are recorded too.
        engine: Imports the copy and loads every script in it, before and after; without one the
            copy is neither imported nor checked.
        on_stage: Told what is being done.

    Raises:
        InputError: If it is no project, the copy cannot be there, or a pattern matches nothing.
        RunError: If the engine cannot import the copy, or runs it no more once it has hooks.
    """
    project = Project.open(source)
    target = check_places(project.path, Path(out))
    inventory = Inventory.read(project)
    plan = make_plan(inventory, scope, scheme, lambdas=lambdas)
    key = _key(project, plan, lambdas=lambdas, engine=engine)
    earlier = read_mark(target)
    if earlier is not None and earlier["key"] == key:
        return _read_back(earlier, target, plan)
    with appearing(target) as copy:
        on_stage("copying")
        copy_files(project.path, copy)
        work = _Work(copy, inventory, plan)
        before, unchecked = None, "no engine was given"
        if engine is not None:
            on_stage("importing")
            import_project(engine, copy)
            on_stage("loading the scripts as they are")
            try:
                before = load_scripts(engine, copy, inventory.scripts)
            except RunError as error:
                # The project itself does not get that far, so that there is nothing to compare.
                unchecked = str(error)
        write_runtime(copy, plan)
        install_bridge(copy)
        allow_warnings(copy)
        on_stage("rewriting")
        work.rewrite()
        found: list[Difference] = []
        if engine is not None and before is not None:
            on_stage("loading the scripts with hooks")
            while True:
                after = load_scripts(engine, copy, inventory.scripts)
                worse = {
                    file: why for file, why in after.failing.items() if file not in before.failing
                }
                if not work.put_back(worse):
                    break
            if worse:
                file, why = min(worse.items())
                raise RunError(f"{file} loads in the project and not in its copy: {why}.")
            found = differences(after, inventory.scripts)
        result = Instrumented(
            path=target,
            catalogue=plan.catalogue,
            functions=sum(work.hooked.values()),
            scripts=len(work.hooked),
            skipped=tuple(sorted(work.skipped.values(), key=lambda item: item.file)),
            threads=inventory.threads,
            checked=before is not None,
            unchecked="" if before is not None else unchecked,
            failing_before=dict(sorted(before.failing.items())) if before is not None else {},
            differences=tuple(found),
            sha256=key,
        )
        mark = {"format": _FORMAT, "key": key, **result.to_json()}
        del mark["path"]
        (copy / MARK_FILE).write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
    return result


class _Work:
    """The rewriting of a copy's scripts, some of which may be put back."""

    def __init__(self, copy: Path, inventory: Inventory, plan: Plan) -> None:
        self.copy = copy
        self.inventory = inventory
        self.plan = plan
        self.hooked: dict[str, int] = {}
        self.skipped: dict[str, Skipped] = {}
        for script in inventory.scripts:
            for problem in script.parsed.problems[:1]:
                self.skipped[script.key] = Skipped(
                    script.key, problem.line, problem.why, script.parsed.unseen
                )

    def rewrite(self) -> None:
        """Rewrite every script that has something to record and is not skipped."""
        files: dict[str, list[Script]] = {}
        for script in self.inventory.scripts:
            files.setdefault(script.file, []).append(script)
        for file, scripts in files.items():
            wanted = {script.identifier: script for script in scripts if self._wants(script)}
            if not wanted:
                continue
            if file.endswith(".gd"):
                content = self._rewritten(scripts[0]).source
            else:
                content = self._scene(scripts, wanted)
            write_file(self.copy / file, content)

    def put_back(self, failing: dict[str, str]) -> bool:
        """Put the scripts named back as they were; say whether any of them had a hook."""
        changed = {key: why for key, why in failing.items() if key in self.hooked}
        for key, why in changed.items():
            reason = f"the engine takes it as it is and not with hooks ({why})"
            self.skipped[key] = Skipped(key, 0, reason, self.hooked.pop(key))
        files = {script.file for script in self.inventory.scripts if script.key in changed}
        for file in files:
            original = self.inventory.project.path / file
            write_file(self.copy / file, original.read_bytes())
        if files:
            self.rewrite()
        return bool(changed)

    def _wants(self, script: Script) -> bool:
        return script.key not in self.skipped and any(
            (script.key, function.offset) in self.plan.rules for function in script.parsed.functions
        )

    def _scene(self, scripts: list[Script], wanted: dict[str, Script]) -> bytes:
        remaining = iter(scripts)

        def rewrite(embedded: EmbeddedScript) -> Rewritten:
            script = next(remaining)
            if script.identifier in wanted:
                return self._rewritten(script)
            return rewrite_script(embedded.source, lambda _: None, check=False)

        original = (self.inventory.project.path / scripts[0].file).read_bytes()
        return rewrite_scene(original, rewrite).source

    def _rewritten(self, script: Script) -> Rewritten:
        def hook(function: ScriptFunction) -> str | None:
            rule = self.plan.rules.get((script.key, function.offset))
            if rule is None:
                return None
            return hook_text(self.plan, rule, threads=bool(self.inventory.threads))

        rewritten = rewrite_script(script.source, hook, lambdas=True, check=False)
        self.hooked[script.key] = len(rewritten.functions)
        return rewritten


def _key(project: Project, plan: Plan, *, lambdas: bool, engine: Engine | None) -> str:
    """Hash all that a copy is made of."""
    total = hashlib.sha256()
    parts = {
        "format": str(_FORMAT),
        "project": project_sha256(project.path),
        "catalogue": plan.catalogue.sha256,
        "rules": repr(sorted(plan.rules.items(), key=lambda item: item[0])),
        "lambdas": str(lambdas),
        "engine": engine.version if engine is not None else "",
    }
    for name, text in sorted(parts.items()):
        total.update(f"{name}={len(text)}:{text}\n".encode())
    for name, content in sorted({**runtime_sources(), **bridge_sources()}.items()):
        total.update(f"{name}={hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def _read_back(mark: dict[str, Any], target: Path, plan: Plan) -> Instrumented:
    return Instrumented(
        path=target,
        catalogue=plan.catalogue,
        functions=mark["functions"],
        scripts=mark["scripts"],
        skipped=tuple(Skipped(**item) for item in mark["skipped"]),
        threads=tuple(mark["threads"]),
        checked=mark["checked"],
        unchecked=mark["unchecked"],
        failing_before=dict(mark["failing_before"]),
        differences=tuple(
            Difference(
                item["file"], item["owner"], tuple(item["missing"]), tuple(item["unexpected"])
            )
            for item in mark["differences"]
        ),
        sha256=mark["key"],
    )
