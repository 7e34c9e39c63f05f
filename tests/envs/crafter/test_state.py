"""Saving and restoring a play in the middle."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanista.envs.crafter import Crafter
from lanista.envs.errors import InputError


@pytest.fixture(scope="module")
def pair() -> tuple[Crafter, Crafter]:
    return Crafter(), Crafter(fast=False)


def go_on(env: Crafter, actions: list[int]) -> list[object]:
    seen: list[object] = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((observation.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return seen


@settings(max_examples=8, deadline=None)
@given(world=st.integers(0, 50), before=st.integers(0, 190), seed=st.integers(0, 2**32 - 1))
def test_a_restored_play_goes_on_alike(
    pair: tuple[Crafter, Crafter], world: int, before: int, seed: int
) -> None:
    env, other = pair
    chance = np.random.default_rng(seed)
    actions = chance.integers(17, size=before + 60).tolist()
    env.reset(options={"world": world})
    if go_on(env, actions[:before]) and env._ended:
        return
    state = env.save()
    seen_now = env.restore(state)
    first = go_on(env, actions[before:])

    assert np.array_equal(env.restore(state), seen_now)
    assert go_on(env, actions[before:]) == first

    # Also in another game, of the other kind, that plays another world, from a copy.
    other.reset(options={"world": world + 1})
    assert np.array_equal(other.restore(pickle.loads(pickle.dumps(state))), seen_now)
    assert go_on(other, actions[before:]) == first


def test_all_of_the_game_comes_back() -> None:
    env = Crafter()
    env.reset(options={"world": 2})
    go_on(env, np.random.default_rng(0).integers(17, size=120).tolist())
    state = env.save()
    new = Crafter()
    new.restore(state)
    for one, two in zip(env.game._world._objects, new.game._world._objects, strict=True):
        assert type(one) is type(two)
        if one is None:
            continue
        assert vars(one).keys() == vars(two).keys()
        for name, value in vars(one).items():
            if name == "world":
                assert two.world is new.game._world
            elif name == "random":
                assert two.random is new.game._world.random
            elif name == "player":
                assert two.player is new.game._player
            else:
                assert np.array_equal(value, getattr(two, name)), name
    chunks = [
        (key, [tuple(item.pos) for item in members])
        for key, members in env.game._world._chunks.items()
    ]
    assert chunks == [
        (key, [tuple(item.pos) for item in members])
        for key, members in new.game._world._chunks.items()
    ]
    assert env.game._unlocked == new.game._unlocked
    assert new.world == 2


def test_a_finished_play_comes_back_finished() -> None:
    env = Crafter(length=3)
    env.reset(options={"world": 0})
    go_on(env, [0, 0, 0])
    state = env.save()
    env.reset(options={"world": 0})
    env.restore(state)
    with pytest.raises(InputError, match="over"):
        env.step(0)


def test_nothing_to_save_before_the_first_reset() -> None:
    with pytest.raises(InputError, match="before the first reset"):
        Crafter().save()
