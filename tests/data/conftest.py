"""Makes the tests' own games importable by name, here and in the processes that tests start."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

GAMES = str(Path(__file__).parent / "games")
if GAMES not in sys.path:
    sys.path.insert(0, GAMES)


@pytest.fixture
def play_tiny() -> Callable[..., list[Any]]:
    """Plays worlds of a tiny game with random testers."""
    import tiny_game

    from lanista.data.episode import EpisodeKey
    from lanista.data.rollout import Play, rollout

    def play(worlds: Iterable[int], game: Any = tiny_game.GAME, cap: int = 50) -> list[Any]:
        engine = game.engine()
        plays = [
            Play(
                EpisodeKey(
                    game=game.id,
                    engine_version=engine["version"],
                    engine_sha256=engine["sha256"],
                    catalogue_sha256=tiny_game.catalogue().sha256,
                    world=world,
                    seat=0,
                    player="random",
                    goal=None,
                    step_cap=cap,
                ),
                None,
                (0, 1, world),
            )
            for world in worlds
        ]
        envs = [game.make("class", None) for _ in plays]
        return rollout(envs, plays, testers=[tiny_game.RandomTester() for _ in plays])

    return play


@pytest.fixture
def same_episode() -> Callable[[Any, Any], None]:
    """Asserts that two episodes are equal, dtypes included."""
    import dataclasses

    import numpy as np

    def same(one: Any, other: Any, *, observations: bool = True) -> None:
        for field in dataclasses.fields(one):
            left, right = getattr(one, field.name), getattr(other, field.name)
            if field.name == "observations" and not observations:
                assert right is None
            elif field.name == "step_info":
                assert left.keys() == right.keys()
                for name in left:
                    assert left[name].dtype == right[name].dtype
                    np.testing.assert_array_equal(left[name], right[name])
            elif isinstance(left, np.ndarray):
                assert left.dtype == right.dtype, field.name
                assert left.shape == right.shape, field.name
                np.testing.assert_array_equal(left, right, err_msg=field.name)
            else:
                assert left == right, field.name

    return same
