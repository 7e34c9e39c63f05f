"""Running lists of matches wide, in batches, whatever becomes of the workers."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lanista.data.executor import Executor, WorkerFailure
from lanista.envs.match_game import MatchGame, load_match_game
from lanista.envs.policy import Policy
from lanista.league.play import Match, Played, play_matches
from lanista.league.record import MatchRecord

MOST_IN_BATCH = 64
"""Most matches played side by side by one worker."""

MOST_POLICIES = 16
"""Most policies that a worker keeps loaded, whatever the size of the league."""


@dataclass(frozen=True)
class MatchWorkerMaker:
    """Makes a worker that plays batches of matches; it pickles.

    Attributes:
        game_id: What is played.
        options: As the game resolved them.
        keep_actions: Whether the matches' actions are returned.
        game: The game itself where it has no id that a worker could find it by.
    """

    game_id: str
    options: Mapping[str, Any]
    keep_actions: bool = False
    game: MatchGame | None = None

    def __call__(self) -> "MatchWorker":
        """Return the worker."""
        game = self.game if self.game is not None else load_match_game(self.game_id)
        return MatchWorker(game, self.options, self.keep_actions)


class MatchWorker:
    """Plays batches of matches and keeps the policies that it used last."""

    def __init__(self, game: MatchGame, options: Mapping[str, Any], keep_actions: bool) -> None:
        self._game = game
        self._options = options
        self._keep_actions = keep_actions
        self._policies: OrderedDict[str, Policy] = OrderedDict()

    def __call__(self, matches: Sequence[Match]) -> list[Played]:
        """Play a batch."""
        policies: dict[str, Policy] = {}
        for match in matches:
            for sha256, player in zip(match.key.players, match.players, strict=True):
                if sha256 in policies:
                    continue
                loaded = sha256 in self._policies
                policies[sha256] = self._policies.pop(sha256) if loaded else player.make()
        played = play_matches(
            self._game, self._options, matches, policies, keep_actions=self._keep_actions
        )
        self._policies.update(policies)
        while len(self._policies) > max(MOST_POLICIES, len(policies)):
            _close(self._policies.popitem(last=False)[1])
        return played

    def close(self) -> None:
        """Let go of the policies, which may hold processes."""
        for policy in self._policies.values():
            _close(policy)
        self._policies.clear()


def run_matches(
    maker: MatchWorkerMaker, matches: Sequence[Match], executor: Executor, *, workers: int = 1
) -> Iterator[list[Played]]:
    """Play matches and yield them as they come, in any order.

    A match at which its worker dies or hangs is invalid; those that it shared a batch with are
    played again by themselves.

    Args:
        maker: Of the workers.
        matches: What to play.
        executor: Where.
        workers: How many play side by side, for the size of batches.

    Raises:
        LanistaError: What a game or player raises on purpose.
    """
    size = max(1, min(MOST_IN_BATCH, math.ceil(len(matches) / (8 * max(1, workers)))))
    batches = [tuple(matches[at : at + size]) for at in range(0, len(matches), size)]
    while batches:
        alone: list[tuple[Match, ...]] = []
        for index, result in executor.run(maker, batches):
            if not isinstance(result, WorkerFailure):
                yield result
            elif len(batches[index]) > 1:
                alone.extend((match,) for match in batches[index])
            else:
                yield [Played(_lost(maker, batches[index][0], result))]
        batches = alone


def _lost(maker: MatchWorkerMaker, match: Match, failure: WorkerFailure) -> MatchRecord:
    return MatchRecord(
        key=match.key,
        game=maker.game_id,
        names=tuple(player.name for player in match.players),
        kinds=tuple(player.kind for player in match.players),
        ending="invalid",
        points=(),
        score=(),
        statuses=tuple("unknown" for _ in match.players),
        reason=f"the worker was lost ({failure.kind}): {failure.detail}",
        fingerprint="",
        end="",
        steps=0,
        seconds=0.0,
        worker="",
    )


def both_seats(first: int, second: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return a pair of players in both orders of the seats."""
    return (first, second), (second, first)


def round_robin(players: int, *, shared: bool = True) -> list[tuple[int, int]]:
    """Return every pair of different players, in both orders where they share a game.

    Args:
        players: How many there are.
        shared: See ``MatchGame.shared``.
    """
    pairs = [(one, other) for one in range(players) for other in range(one + 1, players)]
    return [order for pair in pairs for order in (both_seats(*pair) if shared else (pair,))]


def renamed(played: Played, names: Sequence[str]) -> Played:
    """Return a played match with other names for its players."""
    return replace(played, record=replace(played.record, names=tuple(names)))


def _close(policy: Policy) -> None:
    close: Callable[[], None] | None = getattr(policy, "close", None)
    if close is not None:
        close()
