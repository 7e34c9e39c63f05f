"""The tester: it reads the game and walks to one thing that it has in mind."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meadow.rules import NEAR, PADS, STEP


class Walker:
    """Goes for one thing, a pad or the treasure, and stays there; to the crown by the gate."""

    def __init__(self, noise: float, rng: np.random.Generator) -> None:
        self._noise = noise
        wish = str(rng.choice([*PADS, "treasure"]))
        self._wishes = ["gate", "crown"] if wish == "crown" else [wish]

    def act(self, env: Any, rng: np.random.Generator) -> np.ndarray:
        meadow = env.unwrapped.meadow
        if len(self._wishes) > 1 and meadow.level == 1:
            self._wishes.pop(0)
        noise = self._noise * rng.standard_normal(2)
        return self._way(meadow) / STEP + noise

    def _way(self, meadow: Any) -> Any:
        wish = self._wishes[0]
        if wish == "treasure":
            return np.array([meadow.treasure - meadow.at[0], 0.0])
        way = meadow.pads[PADS.index(wish)] - meadow.at
        return way if np.linalg.norm(way) > NEAR / 2 else np.zeros(2)


def make_walker(parameters: Mapping[str, Any], rng: np.random.Generator) -> Walker:
    return Walker(parameters["noise"], rng)
