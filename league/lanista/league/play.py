"""Playing matches: many side by side, each to the result that the ledger keeps."""

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import LanistaError
from lanista.envs.match_game import ActionError, Forfeit, MatchEnv, MatchGame, Outcome, SeatView
from lanista.envs.policy import Memory, Observation, Policy
from lanista.league.players import LeaguePlayer
from lanista.league.record import Ending, MatchKey, MatchRecord, content_hash

_STREAM = 0x6D61746368
"""Sets the players' random streams of matches apart from all others."""


@dataclass(frozen=True)
class Match:
    """A match to be played.

    Attributes:
        key: What match it is.
        players: Who sits in each seat.
    """

    key: MatchKey
    players: tuple[LeaguePlayer, ...]


@dataclass(frozen=True)
class Played:
    """A match that was played.

    Attributes:
        record: What the ledger keeps.
        actions: Of every decision in order: the acting seats and their actions.
    """

    record: MatchRecord
    actions: tuple[tuple[tuple[int, Any], ...], ...] = ()


def config_hash(game: MatchGame, options: Mapping[str, Any]) -> str:
    """Return the hash of a game's id and all its resolved options, 64 hex digits."""
    return content_hash({"game": game.id, "options": dict(options)})


def make_match(
    game: MatchGame,
    options: Mapping[str, Any],
    players: Sequence[LeaguePlayer],
    world: int,
    repeat: int = 0,
) -> Match:
    """Return a match to be played, with its key."""
    key = MatchKey(
        engine_sha256=game.engine()["sha256"],
        config_sha256=config_hash(game, options),
        world=world,
        players=tuple(player.sha256 for player in players),
        repeat=repeat,
    )
    return Match(key, tuple(players))


def seat_generator(key: MatchKey, seat: int) -> np.random.Generator:
    """Return the generator of a seat's own draws, anew at each call.

    It depends on world, repeat and seat alone: whoever sits there has the same luck, which is what
    makes matches of two players in one world a pair.
    """
    return np.random.default_rng(np.random.SeedSequence([_STREAM, key.world, key.repeat, seat]))


def play_matches(
    game: MatchGame,
    options: Mapping[str, Any],
    matches: Sequence[Match],
    policies: Mapping[str, Policy],
    *,
    keep_actions: bool = False,
) -> list[Played]:
    """Play matches side by side; each policy decides for all its seats in one batch.

    A match does not depend on its neighbours, apart from what a network's batched arithmetic
    rounds differently. What a player does wrong loses its own match by forfeit, and what the game
    does wrong makes its own match invalid; neither is a normal result.

    Args:
        game: What is played.
        options: As the game resolved them.
        matches: What to play.
        policies: The policy of each content hash among the players.
        keep_actions: Whether to return the actions too.

    Returns:
        One entry a match, in order.

    Raises:
        LanistaError: What a game raises on purpose, such as a refused world.
    """
    lanes = [_Lane(game, options, match, keep_actions) for match in matches]
    try:
        for lane in lanes:
            lane.begin()
        while waiting := [(lane, seat) for lane in lanes for seat in lane.seats_to_act()]:
            by_player: dict[str, list[tuple[_Lane, int]]] = {}
            for lane, seat in waiting:
                by_player.setdefault(lane.match.key.players[seat], []).append((lane, seat))
            for sha256, places in by_player.items():
                _decide(policies[sha256], places)
            for lane in lanes:
                lane.step()
        return [lane.result() for lane in lanes]
    finally:
        for lane in lanes:
            lane.close()


def _decide(policy: Policy, places: Sequence[tuple["_Lane", int]]) -> None:
    """Ask a policy for all its seats at once; if that fails, for each alone, to see whose it is."""
    views = [lane.views[seat] for lane, seat in places]
    rng = [lane.rng[seat] for lane, seat in places]
    before = [generator.bit_generator.state for generator in rng]
    try:
        actions, memory = _act(policy, views, [lane.memory[seat] for lane, seat in places], rng)
    except LanistaError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a player is somebody else's code
        for generator, state in zip(rng, before, strict=True):
            generator.bit_generator.state = state
        if len(places) == 1:
            (lane, seat), *_ = places
            lane.forfeit(seat, Forfeit("crash", f"{type(error).__name__}: {error}"))
            return
        for place in places:
            _decide(policy, [place])
        return
    for (lane, seat), action, kept in zip(places, actions, memory, strict=True):
        lane.memory[seat] = kept
        if isinstance(action, Forfeit):
            lane.forfeit(seat, action)
        else:
            lane.chosen[seat] = action


def _act(
    policy: Policy,
    views: Sequence[SeatView],
    memory: Sequence[Memory],
    rng: Sequence[np.random.Generator],
) -> tuple[NDArray[Any], list[Memory]]:
    obs = np.empty(len(views), dtype=object)
    for place, view in enumerate(views):
        obs[place] = view.obs
    masks = [view.legal_mask for view in views]
    known = [mask for mask in masks if mask is not None]
    observation = Observation(
        obs=obs,
        call_trace=[view.call_trace for view in views],
        legal_mask=np.stack(known) if len(known) == len(views) else None,
    )
    actions, after = policy.act(observation, memory, rng)
    if len(actions) != len(views) or len(after) != len(views):
        raise ValueError(f"it returned {len(actions)} actions for {len(views)} lanes")
    return actions, after


@dataclass
class _Lane:
    """One match while it goes on."""

    game: MatchGame
    options: Mapping[str, Any]
    match: Match
    keep_actions: bool
    views: dict[int, SeatView] = field(default_factory=dict)
    chosen: dict[int, Any] = field(default_factory=dict)
    taken: list[tuple[tuple[int, Any], ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        seats = range(len(self.game.seats))
        self.rng = [seat_generator(self.match.key, seat) for seat in seats]
        self.memory: list[Memory] = [None for _ in seats]
        self._statuses = ["ok" for _ in seats]
        self._reason = ""
        self._ending: Ending = "normal"
        self._steps = 0
        self._over = False
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._fingerprint = ""
        self._outcome: Outcome | None = None
        self._env: MatchEnv | None = None

    def begin(self) -> None:
        """Start the game in its world."""
        try:
            self._env = self.game.make(self.options)
            self._env.reset(self.match.key.world)
        except LanistaError:
            raise
        except Exception as error:  # noqa: BLE001 - a game that breaks is a result
            self._break(error)

    def seats_to_act(self) -> tuple[int, ...]:
        """Look at the game; return who acts, nobody when the match is over."""
        if self._over or self._env is None:
            return ()
        try:
            seats = self._env.to_act()
            if not seats:
                self._finish(self._env)
                return ()
            self.views = {seat: self._env.view(seat) for seat in seats}
        except LanistaError:
            raise
        except Exception as error:  # noqa: BLE001 - a game that breaks is a result
            self._break(error)
            return ()
        self.chosen = {}
        return seats

    def step(self) -> None:
        """Take the chosen actions, unless somebody forfeited."""
        if self._over or self._env is None or not self.chosen:
            return
        try:
            self._env.step(self.chosen)
        except ActionError as error:
            self.forfeit(error.seat, Forfeit("protocol", str(error)))
        except LanistaError:
            raise
        except Exception as error:  # noqa: BLE001 - a game that breaks is a result
            self._break(error)
        else:
            self._steps += len(self.chosen)
            if self.keep_actions:
                self.taken.append(tuple(sorted(self.chosen.items())))

    def forfeit(self, seat: int, forfeit: Forfeit) -> None:
        """End the match: the player of a seat can play on no more."""
        self._statuses[seat] = forfeit.kind
        reason = " ".join(f"{self.game.seats[seat]}: {forfeit.kind}: {forfeit.detail}".split())
        self._reason = f"{self._reason}; {reason}" if self._reason else reason
        self._ending = "forfeit"
        self._stop()

    def _break(self, error: BaseException) -> None:
        self._ending = "invalid"
        self._reason = " ".join(f"the game broke: {type(error).__name__}: {error}".split())
        self._stop()

    def _finish(self, env: MatchEnv) -> None:
        self._outcome = env.outcome()
        self._stop()

    def _stop(self) -> None:
        if self._over:
            return
        self._over = True
        self._seconds = time.perf_counter() - self._began
        if self._env is not None:
            try:
                self._fingerprint = self._env.fingerprint()
            except Exception:  # noqa: BLE001 - of a game that broke nothing more is known
                self._fingerprint = ""

    def result(self) -> Played:
        """Return the record."""
        normal = self._ending == "normal" and self._outcome is not None
        outcome = self._outcome
        details: dict[str, Any] = {}
        if outcome is not None:
            details["counts"] = [dict(counts) for counts in outcome.counts]
        if self.game.official_draw is not None and not self.game.official_draw(self.options):
            details["draw"] = "not the official draw"
        record = MatchRecord(
            key=self.match.key,
            game=self.game.id,
            names=tuple(player.name for player in self.match.players),
            kinds=tuple(player.kind for player in self.match.players),
            ending=self._ending,
            points=outcome.points if normal and outcome is not None else (),
            score=outcome.score if normal and outcome is not None else (),
            statuses=tuple(self._statuses),
            reason=self._reason,
            fingerprint=self._fingerprint,
            end=outcome.end if outcome is not None else "",
            steps=outcome.steps if outcome is not None else self._steps,
            seconds=self._seconds,
            worker=socket.gethostname(),
            details=details,
        )
        return Played(record, tuple(self.taken))

    def close(self) -> None:
        """Let go of the game."""
        if self._env is not None:
            self._env.close()
