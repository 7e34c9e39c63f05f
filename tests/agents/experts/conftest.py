import collections
from collections.abc import Callable
from typing import Any

import crafter
import numpy as np
import pytest


class OrderedSet(dict):
    """A set that keeps the order of insertion, so that the game's draws repeat."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]


def stock_game(world: int) -> Any:
    """Make stock Crafter, repeatable and without drawing its pictures (which no tester sees)."""
    game = crafter.Env(seed=world)
    picture = np.zeros((64, 64, 3), np.uint8)
    game.render = lambda size=None: picture
    reset = game._world.reset

    def reset_in_order(seed: int | None = None) -> None:
        reset(seed)
        game._world._chunks = collections.defaultdict(OrderedSet)

    game._world.reset = reset_in_order
    game.reset()
    return game


@pytest.fixture
def make_game() -> Callable[[int], Any]:
    return stock_game
