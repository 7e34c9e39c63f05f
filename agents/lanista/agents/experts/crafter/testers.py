"""The family of Crafter testers: one expert, played well, badly, in part and out of order."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from crafter import constants

from lanista.agents.experts.crafter.expert import Expert
from lanista.agents.experts.crafter.subgoals import SUBGOALS
from lanista.envs.policy import Tester


class NoisyTester:
    """Another tester, with a share of its actions drawn uniformly at random."""

    def __init__(self, tester: Tester, epsilon: float) -> None:
        self._tester = tester
        self._epsilon = epsilon

    def act(self, env: Any, rng: np.random.Generator) -> Any:
        """Choose the next action; the other tester is asked in any case, to keep its memory."""
        action = self._tester.act(env, rng)
        if rng.random() < self._epsilon:
            return int(rng.integers(len(constants.actions)))
        return action


def _with_noise(tester: Tester, epsilon: float) -> Tester:
    return NoisyTester(tester, epsilon) if epsilon else tester


def make_expert(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make the expert, which goes for every achievement."""
    del parameters, rng  # it has nothing to choose and no plan to draw
    return Expert(SUBGOALS)


def make_noisy(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make an expert that acts at random with probability ``epsilon``."""
    return _with_noise(make_expert(parameters, rng), parameters["epsilon"])


def make_subgoal(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a tester that goes for some subgoals only.

    It goes for ``count`` of them, drawn from ``subgoals`` (from all if none are given) in the
    drawn order. Without ``count`` it goes for all those given, in their order; with neither, for
    a drawn number from 1 to 5.
    """
    pool = list(parameters["subgoals"] or SUBGOALS)
    count = parameters["count"]
    if count is None and parameters["subgoals"] is None:
        count = int(rng.integers(1, 6))
    if count is not None:
        pool = [pool[i] for i in rng.permutation(len(pool))[:count]]
    return _with_noise(Expert(pool, flexible=False), parameters["epsilon"])


def make_shuffled(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a tester that goes for every subgoal in a drawn order.

    A prerequisite that comes later in the order is met only when something needs it.
    """
    order = [SUBGOALS[i] for i in rng.permutation(len(SUBGOALS))]
    return _with_noise(Expert(order, flexible=False), parameters["epsilon"])
