"""Crafter as a Lanista game: what is recorded, how it is made, which engine it is."""

import functools
import hashlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import crafter
from crafter import constants

from lanista.envs.crafter.environment import Crafter
from lanista.envs.game import Game
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer, build_catalogue

STEP_CAP = 1000
"""Steps after which a play is cut: three times the 333 steps of the paper's mean trajectory."""

SCOPE = ("crafter.env", "crafter.objects", "crafter.engine:World*")
"""What is recorded: the game's logic. Views, textures and world generation are left out."""


def scope(patterns: Sequence[str] | None = None) -> Scope:
    """Return the default scope, limited to the functions that match one of ``patterns``."""
    return Scope(include=SCOPE, only=None if patterns is None else tuple(patterns))


def make(
    scheme: Scheme = "class", patterns: Sequence[str] | None = None, **options: Any
) -> TracedEnv:
    """Return a Crafter whose game logic is recorded; any number of them may share a process.

    Args:
        scheme: How calls are told apart.
        patterns: Record only the functions that match one of these; ``None`` for all.
        **options: Of the environment, see :class:`lanista.envs.crafter.Crafter`.

    Raises:
        InputError: If a pattern matches nothing, or another scheme or other patterns are being
            recorded in this process.
    """
    tracer = _tracer(scheme, None if patterns is None else tuple(patterns))
    return TracedEnv(Crafter(**{"render_mode": "rgb_array", **options}), tracer)


@functools.cache
def _tracer(scheme: Scheme, patterns: tuple[str, ...] | None) -> Tracer:
    return Tracer(scope(patterns), scheme)


@functools.cache
def catalogue(scheme: Scheme = "class") -> Catalogue:
    """Return the catalogue of the whole default scope without playing."""
    return build_catalogue(scope(), scheme)


@functools.cache
def engine() -> dict[str, str]:
    """Return the engine's name, version and the hash of all source files that decide a play.

    The hash covers every file of the ``crafter`` package (textures and rules included) and the
    modules here that fix and speed it up.
    """
    package = Path(crafter.__file__).parent
    files = {
        f"crafter/{file.relative_to(package).as_posix()}": file
        for file in package.rglob("*")
        if file.is_file() and file.suffix in {".py", ".yaml", ".png"}
    }
    own = Path(__file__).parent
    for name in ("compiled.py", "determinism.py", "environment.py", "terrain.py", "view.py"):
        files[f"lanista/{name}"] = own / name
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return {
        "name": "crafter",
        "version": importlib.metadata.version("crafter"),
        "sha256": digest.hexdigest(),
    }


CRAFTER = Game(
    id="crafter",
    title="Crafter: gather, build, fight and survive in an open world",
    seats=("player",),
    actions=tuple(constants.actions),
    observation_shape=(64, 64, 3),
    observation_dtype="uint8",
    step_cap=STEP_CAP,
    make=make,
    catalogue=catalogue,
    engine=engine,
    save_restore=True,
)
