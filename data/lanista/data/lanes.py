"""Games kept open, one a lane: what broke is opened anew, what died is played again.

A game in a process of its own can end for reasons that are not its own: somebody kills it, or the
machine has no memory left. Plays are deterministic, so a play whose game died is played again from
its start. If it dies again in the same way at the same step (at the reset: three times), that is a
finding; if it comes to an end, that is its result, and nobody can tell from the record that
anything happened.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lanista.data.episode import Episode
from lanista.data.rollout import Play, rollout
from lanista.envs.policy import Policy, Tester

DEATHS = frozenset({"crash", "hang"})
"""Kinds of fault with which a game's process ends."""

MOST_TRIES = 5
"""How often a play is begun whose game keeps dying, each time in another way."""


class Lanes:
    """Games of one kind that stay open between plays."""

    def __init__(self, make_env: Callable[[], Any]) -> None:
        """Open nothing yet.

        Args:
            make_env: Returns a traced environment; see ``Game.make``.
        """
        self._make_env = make_env
        self._envs: list[Any] = []

    def play(
        self,
        plays: Sequence[Play],
        *,
        policy: Policy | None = None,
        make_tester: Callable[[int], Tester] | None = None,
        keep_observations: bool = True,
        wrap: Callable[[Any], Any] | None = None,
    ) -> list[Episode]:
        """Play all plays side by side; see :func:`lanista.data.rollout.rollout`.

        Args:
            plays: What to play.
            policy: Plays all lanes.
            make_tester: Or what makes a tester for the play with a number; called anew for each
                try.
            keep_observations: Whether the episodes hold their observations.
            wrap: Put around each game for these plays.

        Returns:
            One episode a play, in the order of the plays.
        """
        tried: dict[int, list[Episode]] = {}

        def run(numbers: Sequence[int]) -> list[Episode]:
            envs = [self._open(number) for number in numbers]
            played = rollout(
                envs if wrap is None else [wrap(env) for env in envs],
                [plays[number] for number in numbers],
                policy=policy,
                testers=None if make_tester is None else [make_tester(n) for n in numbers],
                keep_observations=keep_observations,
            )
            for number, episode in zip(numbers, played, strict=True):
                if episode.fault is not None:
                    # A game that broke may be in any state; the next play gets a new one.
                    self._drop(number)
            return played

        episodes = run(range(len(plays)))
        pending = [number for number, episode in enumerate(episodes) if _died(episode)]
        for number in pending:
            tried[number] = [episodes[number]]
        for _ in range(MOST_TRIES - 1):
            if not pending:
                break
            # A policy's batch is played as a whole, so that its arithmetic is the same.
            numbers = pending if policy is None else list(range(len(plays)))
            for number, episode in zip(numbers, run(numbers), strict=True):
                if number not in pending:
                    continue
                alike = sum(_alike(episode, before) for before in tried[number])
                tried[number].append(episode)
                # Whoever kills engines between plays meets them at the reset more than once.
                settled = alike >= (1 if episode.steps else 2)
                if settled or not _died(episode):
                    episodes[number] = episode
                    pending = [other for other in pending if other != number]
        for number in pending:
            episodes[number] = _unsettled(tried[number][-1])
        return episodes

    def close(self) -> None:
        """Close all games."""
        for number in range(len(self._envs)):
            self._drop(number)

    def _open(self, number: int) -> Any:
        while len(self._envs) <= number:
            self._envs.append(None)
        for tries_left in range(MOST_TRIES - 1, -1, -1):
            if self._envs[number] is not None:
                break
            try:
                self._envs[number] = self._make_env()
            except Exception as error:
                if getattr(error, "fault_kind", None) not in DEATHS or not tries_left:
                    raise
        return self._envs[number]

    def _drop(self, number: int) -> None:
        env, self._envs[number] = self._envs[number], None
        if env is not None:
            # A game that broke may not close either.
            with contextlib.suppress(Exception):
                env.close()


def _died(episode: Episode) -> bool:
    return episode.fault is not None and episode.fault.kind in DEATHS


def _alike(one: Episode, other: Episode) -> bool:
    if one.fault is None or other.fault is None:
        return False
    return (
        (one.fault.kind, one.fault.exception, one.fault.where)
        == (other.fault.kind, other.fault.exception, other.fault.where)
        and one.steps == other.steps
        and np.array_equal(one.actions, other.actions)
    )


def _unsettled(episode: Episode) -> Episode:
    """Say that a game died in every try and never twice in the same way."""
    assert episode.fault is not None
    message = f"{episode.fault.message} (in another way in each of {MOST_TRIES} tries)"
    return replace(episode, fault=replace(episode.fault, message=message))
