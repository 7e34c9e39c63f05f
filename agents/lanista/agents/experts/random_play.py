"""A tester that presses buttons at random: the floor that every other tester is measured from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanista.envs.policy import Tester


class RandomTester:
    """Draws each action uniformly, or repeats the last one with a given probability."""

    def __init__(self, repeat: float) -> None:
        self._repeat = repeat
        self._last: int | None = None

    def act(self, env: Any, rng: np.random.Generator) -> int:
        """Draw the next action out of ``env.action_space``, which must be discrete."""
        if self._last is None or rng.random() >= self._repeat:
            self._last = int(rng.integers(env.action_space.n))
        return self._last


def make_random(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a random tester from ``repeat``, the probability of pressing the same button again."""
    del rng  # it has no plan to draw
    return RandomTester(parameters["repeat"])
