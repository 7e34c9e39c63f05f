from collections.abc import Callable
from typing import Any

import crafter
import numpy as np
import pytest

from lanista.envs.crafter.determinism import new_chunks


def stock_game(world: int) -> Any:
    """Make stock Crafter, repeatable and without drawing its pictures (which no tester sees)."""
    game = crafter.Env(seed=world)
    picture = np.zeros((64, 64, 3), np.uint8)
    game.render = lambda size=None: picture
    reset = game._world.reset

    def reset_in_order(seed: int | None = None) -> None:
        reset(seed)
        game._world._chunks = new_chunks()

    game._world.reset = reset_in_order
    game.reset()
    return game


@pytest.fixture
def make_game() -> Callable[[int], Any]:
    return stock_game
