"""Godot projects as games: an instrumented copy in the user's cache, played by the engine."""

import fcntl
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lanista.envs.cache import cache_folder
from lanista.envs.errors import InputError
from lanista.envs.game import Game
from lanista.envs.godot.engine import Engine, find_engine
from lanista.envs.godot.environment import Fresh, GodotEnv, Launch
from lanista.envs.godot.project import Project, project_sha256
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.gdscript.project import instrument_project, script_catalogue
from lanista.envs.tracing.gdscript.scope import GodotScope

STEP_CAP = 1000
"""Steps after which a play of a project is cut, unless its game says otherwise."""

_SLUG = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Facts:
    """What a game's agent sees and does, learned by starting it once.

    Attributes:
        observation_shape: Shape of an observation.
        observation_dtype: NumPy name of its type.
        actions: Names of discrete actions, empty where an action is a vector.
        action_shape: Shape of such a vector.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: str
    actions: tuple[str, ...]
    action_shape: tuple[int, ...]


@dataclass(frozen=True)
class GodotProject:
    """A project, what of it is recorded, and how it is started. It pickles.

    Attributes:
        path: The project's folder.
        scope: Which functions are recorded.
        lambdas: Whether lambdas are recorded too.
        options: Options that every play has.
        action_repeat: Physics ticks per step; ``None`` for the game's own.
        scene: Scene to play instead of the main one.
        agent: Number of the agent to play, from 0.
        fresh: How a play begins; see :class:`GodotEnv`.
        script_errors: What a script error is; see :class:`GodotEnv`.
        timeout_s: Seconds without an answer that count as a hang.
        memory_limit_mb: Resident megabytes at which the game is ended.
    """

    path: Path
    scope: GodotScope = GodotScope()  # noqa: RUF009 - a frozen value
    lambdas: bool = False
    options: tuple[tuple[str, str], ...] = ()
    action_repeat: int | None = None
    scene: str | None = None
    agent: int = 0
    fresh: Fresh = "reload"
    script_errors: Literal["report", "raise"] = "raise"
    timeout_s: float = 60.0
    memory_limit_mb: int | None = None

    def catalogue(self, scheme: Scheme = "class") -> Catalogue:
        """Return the project's functions; nothing is run.

        Raises:
            InputError: If it is no project, or the scheme is not one for GDScript.
        """
        return _catalogue(self.path, scheme, self.scope, self.lambdas)

    def engine(self) -> dict[str, str]:
        """Return the project's name, the engine's version, and the hash of the project's files.

        Raises:
            InputError: If there is no engine, or no project.
        """
        return {
            "name": Project.open(self.path).name or self.path.name,
            "version": f"godot {find_engine().version}",
            "sha256": _sha256(self.path),
        }

    def copy(self, scheme: Scheme = "class", patterns: Sequence[str] | None = None) -> Path:
        """Return the folder of the instrumented copy, made if it is not in the cache yet.

        Raises:
            InputError: If there is no engine or no project, or a pattern matches nothing.
            RunError: If the engine cannot import the copy.
        """
        scope = self.scope if patterns is None else replace(self.scope, only=tuple(patterns))
        return _copy(self.path, scheme, scope, self.lambdas)

    def launch(self, copy: Path) -> Launch:
        """Return how a copy is started."""
        return Launch(
            engine=find_engine(),
            project=copy,
            options=dict(self.options),
            action_repeat=self.action_repeat,
            scene=self.scene,
            timeout_s=self.timeout_s,
            memory_limit_mb=self.memory_limit_mb,
        )

    def make(
        self, scheme: Scheme = "class", patterns: Sequence[str] | None = None, **options: str
    ) -> GodotEnv:
        """Return the traced environment.

        Args:
            scheme: ``definition`` or ``class``.
            patterns: Record only functions that match one of these; ``None`` for all.
            **options: Options on top of the game's own.

        Raises:
            InputError: As :meth:`copy`, or if its agent sees or does what no array can hold.
            RunError: If the game does not come up.
        """
        copy = self.copy(scheme, patterns)
        catalogue = (
            self.catalogue(scheme)
            if patterns is None
            else _catalogue(
                self.path, scheme, replace(self.scope, only=tuple(patterns)), self.lambdas
            )
        )
        launch = self.launch(copy)
        return GodotEnv(
            replace(launch, options={**launch.options, **options}),
            catalogue,
            agent=self.agent,
            fresh=self.fresh,
            script_errors=self.script_errors,
        )

    def facts(self) -> Facts:
        """Return what the agent sees and does; the game is started once and the answer kept.

        Raises:
            InputError: As :meth:`make`.
            RunError: If the game does not come up.
        """
        copy = self.copy()
        parts = [self.scene or "", str(self.agent), json.dumps(sorted(self.options))]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        kept = copy.with_name(f"{copy.name}.facts-{digest}.json")
        try:
            told = json.loads(kept.read_text(encoding="utf-8"))
            return Facts(**{name: _tuple(value) for name, value in told.items()})
        except (OSError, ValueError, TypeError):
            pass
        env = self.make()
        try:
            found = Facts(
                observation_shape=tuple(env.observation_space.shape),
                observation_dtype=str(env.observation_space.dtype),
                actions=env.action_names,
                action_shape=tuple(env.action_space.shape or ()),
            )
        finally:
            env.close()
        building = kept.with_name(f".{kept.name}.{os.getpid()}")
        building.write_text(json.dumps(asdict(found)), encoding="utf-8")
        building.replace(kept)
        return found


def godot_game(
    project: Path | str,
    *,
    game_id: str | None = None,
    title: str = "",
    step_cap: int = STEP_CAP,
    include: Sequence[str] = ("*",),
    exclude: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    facts: Callable[[], Facts] | None = None,
    **settings: Any,
) -> Game:
    """Make a game of a Godot 4 project that speaks the godot-rl protocol.

    Put the result into a module of your own, and ``module:attribute`` names it to every command;
    where the defaults will do, commands take the project's folder itself::

        HALL = godot_game("hall", game_id="games:HALL", step_cap=500, exclude=("scripts.hud",))

    The project is copied to the user's cache and the copy instrumented and imported, once for
    each state of the project, engine and choice of functions.

    Args:
        project: The project's folder.
        game_id: What a person types; the folder's absolute path by default.
        title: One line about it; the project's own name by default.
        step_cap: Steps after which a play is cut.
        include: Which functions are recorded; see :class:`GodotScope`.
        exclude: What of them is left out.
        options: Options that every play has, for the game to read.
        facts: What the agent sees and does, where that is known without starting the game.
        **settings: Other fields of :class:`GodotProject`.

    Raises:
        InputError: If it is no such project, there is no engine, or the agent sees or does what no
            array can hold.
        RunError: If the game does not come up.
    """
    found = Project.open(project)
    spec = GodotProject(
        path=found.path,
        scope=GodotScope(tuple(include), tuple(exclude)),
        options=tuple(sorted((options or {}).items())),
        **settings,
    )
    if not _names_agents(found):
        # Said at once, where the engine would wait for an agent for a minute.
        found.require_sync()
    told = (facts or spec.facts)()
    numbers = told.action_shape[0] if told.action_shape else 0
    return Game(
        id=game_id or str(found.path),
        title=title or found.name or found.path.name,
        seats=("player",),
        actions=told.actions,
        observation_shape=told.observation_shape,
        observation_dtype=told.observation_dtype,
        step_cap=step_cap,
        make=spec.make,
        catalogue=spec.catalogue,
        engine=spec.engine,
        action_shape=told.action_shape,
        action_low=(-1.0,) * numbers,
        action_high=(1.0,) * numbers,
    )


def _names_agents(project: Project) -> bool:
    """Say whether any script puts nodes into godot-rl's group of agents."""
    for script in (*project.scripts, *project.addon_scripts):
        try:
            if b"AGENT" in (project.path / script).read_bytes():
                return True
        except OSError:
            continue
    return False


@functools.cache
def folder_game(path: str) -> Game:
    """Return the game of a project's folder, with the defaults.

    Raises:
        InputError: As :func:`godot_game`.
        RunError: If the game does not come up.
    """
    return godot_game(path)


@functools.lru_cache(maxsize=64)
def _catalogue(path: Path, scheme: Scheme, scope: GodotScope, lambdas: bool) -> Catalogue:
    return script_catalogue(path, scheme, scope, lambdas=lambdas)


@functools.lru_cache(maxsize=64)
def _sha256(path: Path) -> str:
    return project_sha256(path)


@functools.lru_cache(maxsize=64)
def _copy(path: Path, scheme: Scheme, scope: GodotScope, lambdas: bool) -> Path:
    engine = find_engine()
    folder = _place(path, engine, scheme, scope, lambdas)
    with _locked(folder):
        instrument_project(path, folder, scheme=scheme, scope=scope, lambdas=lambdas, engine=engine)
    return folder


def _place(path: Path, engine: Engine, scheme: Scheme, scope: GodotScope, lambdas: bool) -> Path:
    """Name a copy after all that it is made of, so that none is changed while it is played."""
    parts = [_sha256(path), engine.version, scheme, repr(scope), str(lambdas)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    slug = _SLUG.sub("-", path.name)[:40] or "project"
    return cache_folder() / "godot" / "copies" / f"{slug}-{digest}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time make a copy."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_name(f"{folder.name}.lock").open("a")
    except OSError as error:
        raise InputError(
            f"{folder.parent} cannot be written to: {error.strerror}; name another folder with "
            "LANISTA_CACHE."
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
