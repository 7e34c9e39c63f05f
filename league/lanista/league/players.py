"""Who plays: what people write to name a player, its content hash, and how its policy is made."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.match_game import MatchGame
from lanista.envs.policy import Memory, Observation, Policy
from lanista.league.record import Kind, content_hash


@dataclass(frozen=True)
class PlayerSpec:
    """What people write: ``kind:name[@version][?key=value&…]``.

    Attributes:
        kind: ``scripted``, ``checkpoint``, ``program`` or ``tape``.
        name: Of a scripted player; of the others a path.
        version: What follows the ``@``; empty without.
        parameters: By name; values as JSON has them, else as texts.
    """

    kind: str
    name: str
    version: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The player as people write it."""
        version = f"@{self.version}" if self.version else ""
        given = "&".join(f"{key}={_shown(value)}" for key, value in self.parameters.items())
        return f"{self.kind}:{self.name}{version}" + (f"?{given}" if given else "")


@dataclass(frozen=True)
class LeaguePlayer:
    """A player that can be matched, in whichever process; it pickles.

    Attributes:
        name: What people call it; unique in a league.
        spec: What it is.
        sha256: Content hash: players with the same hash play the same.
        kind: Whether it answers or is a recording.
        maker: Makes its policy.
    """

    name: str
    spec: PlayerSpec
    sha256: str
    kind: Kind
    maker: Callable[[], Policy]

    def make(self) -> Policy:
        """Return its policy, made anew."""
        return self.maker()


def parse_player(text: str) -> PlayerSpec:
    """Read ``kind:name[@version][?key=value&…]``.

    Raises:
        InputError: If it is not of that form, or of a kind that there is not.
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in _RESOLVERS or not rest:
        known = ", ".join(f"{name}:…" for name in _RESOLVERS)
        raise InputError(f"Player {text!r} is not of the form kind:name; there are {known}.")
    place, _, query = rest.partition("?")
    name, at, version = place.rpartition("@")
    if not at or "/" in version:
        name, version = place, ""
    parameters: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not equals or key in parameters:
            raise InputError(f"Player {text!r}: {part!r} is not key=value, or there twice.")
        parameters[key] = _value(value)
    return PlayerSpec(kind, name, version, parameters)


def resolve_player(
    game: MatchGame, spec: PlayerSpec | str, name: str | None = None, **context: Any
) -> LeaguePlayer:
    """Find a player of a game.

    Args:
        game: What it will play.
        spec: What it is.
        name: What to call it; its own text by default.
        **context: What some kinds need: ``allow_network`` (programs).

    Raises:
        InputError: If there is no such player, or it cannot play this game here.
    """
    found = parse_player(spec) if isinstance(spec, str) else spec
    player = _RESOLVERS[found.kind](game, found, context)
    return player if name is None else replace(player, name=name)


class TowardsGoal:
    """A goal-conditioned policy that is told the same function to reach in every match."""

    def __init__(self, policy: Policy, goal: int) -> None:
        self._policy = policy
        self._goal = goal

    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose actions towards the goal; observations are arrays of one shape."""
        told = replace(
            observation,
            obs=np.stack(list(observation.obs)),
            goal=np.full(len(memory), self._goal, np.int64),
        )
        return self._policy.act(told, memory, rng)


@dataclass(frozen=True)
class _ScriptedMaker:
    game: str
    name: str
    parameters: Mapping[str, Any]

    def __call__(self) -> Policy:
        from lanista.agents.scripted.registry import make_scripted

        return make_scripted(self.game, self.name, self.parameters)


@dataclass(frozen=True)
class _CheckpointMaker:
    checkpoint: Path
    goal: str
    greedy: bool
    catalogue: Callable[[], Any]

    def __call__(self) -> Policy:
        import torch

        from lanista.agents.player import load_player

        # Sums come out otherwise with another number of threads; workers share the cores anyway.
        torch.set_num_threads(1)
        catalogue = self.catalogue()
        policy = load_player(self.checkpoint, catalogue, greedy=self.greedy)
        return TowardsGoal(policy, catalogue.resolve(self.goal))


def _scripted(game: MatchGame, spec: PlayerSpec, context: Mapping[str, Any]) -> LeaguePlayer:
    from lanista.agents.scripted.registry import scripted_hash

    del context
    if spec.version:
        raise InputError(f"Player {spec.text!r}: scripted players have no versions.")
    return LeaguePlayer(
        name=spec.text,
        spec=spec,
        sha256=scripted_hash(game.id, spec.name, spec.parameters),
        kind="reactive",
        maker=_ScriptedMaker(game.id, spec.name, dict(spec.parameters)),
    )


def _checkpoint(game: MatchGame, spec: PlayerSpec, context: Mapping[str, Any]) -> LeaguePlayer:
    """Find a trained agent; of a game for one it needs ``goal``, and takes ``greedy``."""
    del context
    from lanista.agents.player import load_player

    path = Path(spec.name)
    given = dict(spec.parameters)
    greedy = given.pop("greedy", False)
    if not isinstance(greedy, bool):
        raise InputError(f"Player {spec.text!r}: greedy is true or false.")
    if game.catalogue is None:
        raise InputError(f"Player {spec.text!r}: no agent of this kind plays {game.id}.")
    goal = given.pop("goal", None)
    if given:
        raise InputError(f"Player {spec.text!r} has no parameter {next(iter(given))!r}.")
    catalogue = game.catalogue()
    policy = load_player(path, catalogue, greedy=greedy)
    if not isinstance(goal, str):
        some = ", ".join(policy.goals[:3])
        raise InputError(
            f"Player {spec.text!r} must be told what to reach: add ?goal=NAME, such as {some}."
        )
    full_name = catalogue.name(catalogue.resolve(goal))
    told = {"player": policy.content_hash, "goal": full_name, "greedy": greedy}
    return LeaguePlayer(
        name=spec.text,
        spec=spec,
        sha256=content_hash({"kind": "checkpoint", **told}),
        kind="reactive",
        maker=_CheckpointMaker(path, full_name, greedy, game.catalogue),
    )


_Resolver = Callable[[MatchGame, PlayerSpec, Mapping[str, Any]], LeaguePlayer]
_RESOLVERS: dict[str, _Resolver] = {"scripted": _scripted, "checkpoint": _checkpoint}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
