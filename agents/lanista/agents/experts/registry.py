"""Testers by game and name: what there is, how one is made, and its content hash."""

import functools
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from lanista.agents.experts.parameters import STOP_STEPS, Parameter, StepRange, complete
from lanista.envs.errors import InputError
from lanista.envs.policy import Tester

ANY_GAME = "*"
"""The game id of testers that play any game."""


@dataclass(frozen=True)
class Kind:
    """One kind of tester of one game.

    Attributes:
        game: The id of its game, or ``ANY_GAME``.
        name: What a recipe calls it.
        summary: One line about how it plays.
        factory: ``module:attribute`` of ``factory(parameters, rng) -> Tester``, imported only when
            a tester is made; it is handed every parameter by name.
        parameters: Its parameters by name; ``stop_steps`` is added to them.
        modules: Further modules or packages whose source decides how it plays.
    """

    game: str
    name: str
    summary: str
    factory: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    modules: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Module of its factory, or the package of all testers of its game that come with Lanista.

        Testers of other games are no part of it: changing one leaves recordings by others alone.
        """
        module = self.factory.partition(":")[0]
        package = module.rpartition(".")[0]
        return package if package.startswith(f"{__package__}.") else module

    @property
    def all_parameters(self) -> dict[str, Parameter]:
        """The kind's own parameters and those that every tester has."""
        return {**self.parameters, STOP_STEPS: StepRange()}


_KINDS: dict[tuple[str, str], Kind] = {}


def register(kind: Kind) -> None:
    """Make a kind of tester known to recipes.

    Raises:
        InputError: If its game has another tester of that name.
    """
    known = _KINDS.setdefault((kind.game, kind.name), kind)
    if known != kind:
        raise InputError(f"Game {kind.game!r} has a tester named {kind.name!r} already.")


def tester_names(game_id: str) -> list[str]:
    """Return the names of the testers of a game, those for any game included."""
    _load_built_in()
    return sorted({name for game, name in _KINDS if game in (game_id, ANY_GAME)})


def tester_summary(game_id: str, name: str) -> str:
    """Return one line about how a tester plays.

    Raises:
        InputError: If the game has no such tester.
    """
    return _kind(game_id, name).summary


def make_tester(
    game_id: str, name: str, parameters: Mapping[str, Any], rng: np.random.Generator
) -> Tester:
    """Make a tester for one play.

    Args:
        game_id: The game that it will play.
        name: One of ``tester_names(game_id)``.
        parameters: Its parameters; defaults fill those left out.
        rng: What it draws its plans from. The draws for its single steps come from the generator
            handed to ``act``; the two may be one.

    Raises:
        InputError: If the game has no such tester, or a parameter is unknown or out of range.
    """
    kind = _kind(game_id, name)
    values = complete(name, parameters, kind.all_parameters)
    module, _, attribute = kind.factory.partition(":")
    factory = cast(
        "Callable[[Mapping[str, Any], np.random.Generator], Tester]",
        getattr(importlib.import_module(module), attribute),
    )
    return factory(values, rng)


def tester_hash(game_id: str, name: str, parameters: Mapping[str, Any]) -> str:
    """Return the content hash of a tester: its source, its name and all its parameters.

    Leaving a parameter out and giving its default hash alike.

    Returns:
        64 hex digits.

    Raises:
        InputError: If the game has no such tester, or a parameter is unknown or out of range.
    """
    kind = _kind(game_id, name)
    values = complete(name, parameters, kind.all_parameters)
    content = {
        "game": kind.game,
        "name": name,
        "parameters": values,
        "source": source_hash((kind.source, *kind.modules)),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _kind(game_id: str, name: str) -> Kind:
    _load_built_in()
    kind = _KINDS.get((game_id, name)) or _KINDS.get((ANY_GAME, name))
    if kind is None:
        known = ", ".join(tester_names(game_id))
        raise InputError(f"Game {game_id!r} has no tester named {name!r}; it has {known}.")
    return kind


@functools.cache
def _load_built_in() -> None:
    for kind in importlib.import_module("lanista.agents.experts.kinds").KINDS:
        register(kind)


@functools.cache
def source_hash(modules: tuple[str, ...]) -> str:
    """Return the hash of the sources of modules and whole packages, 64 hex digits.

    Raises:
        InputError: If one of them is not found.
    """
    digest = hashlib.sha256()
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise InputError(f"The source of {module!r}, which a tester names, is not found.")
        origin = Path(spec.origin)
        files = sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]
        for file in files:
            digest.update(f"{module}/{file.relative_to(origin.parent).as_posix()}\0".encode())
            digest.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()
