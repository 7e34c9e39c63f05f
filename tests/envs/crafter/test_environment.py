"""Crafter as a Gymnasium environment."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lanista.envs.crafter
from lanista.envs.crafter import Crafter
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace

ID = "lanista/Crafter-v0"


def test_gymnasium_finds_nothing_to_object_to() -> None:
    env = gymnasium.make(ID, render_mode="rgb_array").unwrapped
    assert type(env) is lanista.envs.crafter.Crafter
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


def test_info_of_reset_and_step() -> None:
    env = Crafter()
    observation, info = env.reset(options={"world": 0})
    assert observation.dtype == np.uint8
    assert observation.shape == (64, 64, 3)
    assert info["world"] == env.world == 0
    assert len(info["world_fingerprint"]) == 24
    _, _, _, _, info = env.step(0)
    assert isinstance(info["call_trace"], CallTrace)
    assert set(info["achievements"]) == set(info["summary"])
    assert len(info["achievements"]) == 22
    assert info["step_info"] == {
        "health": 9, "food": 9, "drink": 9, "energy": 9, "sleeping": 0, "unlocked": 0,
        "x": 32, "y": 32,
    }  # fmt: skip
    assert "world_fingerprint" not in info


def test_an_achievement_is_counted_and_rewarded_once() -> None:
    env = Crafter()
    env.reset(options={"world": 0})
    env.game._world[(32, 33)] = "water"
    rewards = []
    for _ in range(2):
        _, reward, _, _, info = env.step(5)
        rewards.append(reward)
    assert rewards == [1.0, 0.0]
    assert info["summary"]["collect_drink"] == 2
    assert info["step_info"]["unlocked"] == 1


def test_death_terminates_and_length_truncates() -> None:
    env = Crafter(length=2)
    env.reset(options={"world": 0})
    assert env.step(0)[2:4] == (False, False)
    assert env.step(0)[2:4] == (False, True)
    env.reset(options={"world": 0})
    env.step(0)
    env.game._world[(32, 33)] = "lava"
    assert env.step(4)[2:4] == (True, False)
    with pytest.raises(InputError, match="reset first"):
        env.step(0)


def test_render_in_any_size() -> None:
    env = Crafter("rgb_array", render_size=(120, 100))
    with pytest.raises(InputError, match="before the first reset"):
        env.render()
    observation, _ = env.reset(options={"world": 0})
    assert env.render().shape == (100, 120, 3)
    assert np.array_equal(env.render((64, 64)), observation)
    silent = Crafter()
    silent.reset(options={"world": 0})
    assert silent.render() is None


def test_observations_of_another_size() -> None:
    env = Crafter(size=(36, 54))
    observation, _ = env.reset(options={"world": 0})
    assert env.observation_space.contains(observation)
    assert observation.shape == (54, 36, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "at least 1 step"),
        ({"size": (17, 64)}, "size is two numbers"),
        ({"render_size": (64, 1)}, "render_size is two numbers"),
        ({"render_mode": "human"}, "only rgb_array"),
    ],
)
def test_arguments_without_sense_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Crafter(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("world", [-1, 2**31, 1.5, "7", True])
def test_worlds_without_sense_are_refused(world: object) -> None:
    with pytest.raises(InputError, match="world is a number"):
        Crafter().reset(options={"world": world})


@pytest.mark.parametrize("action", [-1, 17])
def test_unknown_actions_are_refused(action: int) -> None:
    env = Crafter()
    with pytest.raises(InputError, match="reset first"):
        env.step(0)
    env.reset(options={"world": 0})
    with pytest.raises(InputError, match="actions 0 to 16"):
        env.step(action)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_vectorises(mode: str) -> None:
    envs = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, length=4)
    try:
        observations, info = envs.reset(seed=[3, 4])
        single = Crafter(length=4)
        alone, single_info = single.reset(seed=4)
        assert np.array_equal(observations[1], alone)
        assert info["world_fingerprint"][1] == single_info["world_fingerprint"]
        for step in range(6):
            observations, _, _, truncated, info = envs.step(np.array([1, 2]))
            if step < 4:
                alone, *_ = single.step(2)
            elif step == 4:  # Gymnasium resets in the step after the end
                alone, _ = single.reset()
            else:
                alone, *_ = single.step(2)
            assert np.array_equal(observations[1], alone)
            assert truncated.tolist() == [step == 3] * 2
            assert all(isinstance(trace, CallTrace) for trace in info["call_trace"])
            assert info["step_info"]["health"].tolist() == [9, 9]
    finally:
        envs.close()


def test_two_games_in_one_process_do_not_meet() -> None:
    one, two, alone = Crafter(), Crafter(), Crafter()
    one.reset(options={"world": 1})
    two.reset(options={"world": 2})
    alone.reset(options={"world": 1})
    for action in np.random.default_rng(0).integers(17, size=40).tolist():
        two.step(3)
        assert np.array_equal(one.step(action)[0], alone.step(action)[0])
