"""A tester that presses buttons at random: the floor that every other tester is measured from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanista.envs.actions import draw_action
from lanista.envs.policy import Tester


class RandomTester:
    """Draws each action uniformly, or repeats the last one with a given probability."""

    def __init__(self, repeat: float) -> None:
        self._repeat = repeat
        self._last: Any = None

    def act(self, env: Any, rng: np.random.Generator) -> Any:
        """Draw the next action out of ``env.action_space``, a ``Discrete`` or a ``Box``."""
        if self._last is None or rng.random() >= self._repeat:
            self._last = draw_action(env.action_space, rng)
        return self._last


def make_random(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a random tester from ``repeat``, the probability of taking the same action again."""
    del rng  # it has no plan to draw
    return RandomTester(parameters["repeat"])
