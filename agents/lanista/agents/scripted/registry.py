"""Scripted league players by game and name: what there is, how one is made, its content hash."""

import functools
import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lanista.agents.experts.parameters import Parameter, complete
from lanista.agents.experts.registry import source_hash
from lanista.envs.errors import InputError
from lanista.envs.policy import Memory, Observation, Policy


@dataclass(frozen=True)
class ScriptedKind:
    """One kind of scripted player of one game.

    Attributes:
        game: The id of its game.
        name: What people call it: ``scripted:NAME``.
        summary: One line about how it plays.
        family: Style that it belongs to; players of one family are variations of one idea.
        factory: ``module:attribute`` of ``factory(parameters) -> Policy``, imported only when a
            player is made; it is handed every parameter by name.
        parameters: Its parameters by name.
        modules: Further modules or packages whose source decides how it plays.
    """

    game: str
    name: str
    summary: str
    family: str
    factory: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    modules: tuple[str, ...] = ()


class Decide(Protocol):
    """Chooses for one lane; what most scripted players are."""

    def __call__(
        self, obs: Any, legal_mask: NDArray[np.bool_] | None, memory: Any, rng: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return the action and the memory for the next time (``None`` before the first)."""
        ...


class LaneByLane:
    """A policy that decides for each lane by itself; actions come as an object array."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide

    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose an action for each lane; see :class:`lanista.envs.policy.Policy`."""
        actions = np.empty(len(memory), dtype=object)
        after: list[Memory] = []
        for lane, (kept, generator) in enumerate(zip(memory, rng, strict=True)):
            mask = None if observation.legal_mask is None else observation.legal_mask[lane]
            actions[lane], keep = self._decide(observation.obs[lane], mask, kept, generator)
            after.append(keep)
        return actions, after


_KINDS: dict[tuple[str, str], ScriptedKind] = {}


def register(kind: ScriptedKind) -> None:
    """Make a kind of scripted player known.

    Raises:
        InputError: If its game has another of that name.
    """
    known = _KINDS.setdefault((kind.game, kind.name), kind)
    if known != kind:
        raise InputError(f"Game {kind.game!r} has a scripted player {kind.name!r} already.")


def scripted_names(game_id: str) -> list[str]:
    """Return the names of the scripted players of a game."""
    _load_built_in()
    return sorted(name for game, name in _KINDS if game == game_id)


def scripted_kind(game_id: str, name: str) -> ScriptedKind:
    """Return a kind of scripted player.

    Raises:
        InputError: If the game has no such player.
    """
    _load_built_in()
    kind = _KINDS.get((game_id, name))
    if kind is None:
        known = ", ".join(scripted_names(game_id)) or "none"
        raise InputError(f"Game {game_id!r} has no scripted player {name!r}; it has {known}.")
    return kind


def make_scripted(game_id: str, name: str, parameters: Mapping[str, Any]) -> Policy:
    """Make a scripted player's policy; defaults fill the parameters left out.

    Raises:
        InputError: If the game has no such player, or a parameter is unknown or out of range.
    """
    kind = scripted_kind(game_id, name)
    values = complete(name, parameters, kind.parameters)
    module, _, attribute = kind.factory.partition(":")
    return cast("Policy", getattr(importlib.import_module(module), attribute)(values))


def scripted_hash(game_id: str, name: str, parameters: Mapping[str, Any]) -> str:
    """Return the content hash of a scripted player: its source, name and all its parameters.

    Returns:
        64 hex digits.

    Raises:
        InputError: If the game has no such player, or a parameter is unknown or out of range.
    """
    kind = scripted_kind(game_id, name)
    content = {
        "kind": "scripted",
        "game": kind.game,
        "name": name,
        "parameters": complete(name, parameters, kind.parameters),
        "source": source_hash((kind.factory.partition(":")[0], *kind.modules)),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@functools.cache
def _load_built_in() -> None:
    for module in ("civmini", "kaggriculture"):
        for kind in importlib.import_module(f"lanista.agents.scripted.{module}.kinds").KINDS:
            register(kind)
