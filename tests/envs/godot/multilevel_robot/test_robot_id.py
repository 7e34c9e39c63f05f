"""The robot under its id, as every command finds it."""

from collections.abc import Iterator

import numpy as np
import pytest

from lanista.envs.game import game_ids, load_game
from lanista.envs.godot import robot
from lanista.envs.godot.environment import GodotEnv


@pytest.fixture(scope="module")
def env() -> Iterator[GodotEnv]:
    made = load_game("robot").make("class")
    yield made
    made.close()


def test_it_is_among_the_games_and_says_what_its_agent_sees_and_does(env: GodotEnv) -> None:
    game = load_game("robot")
    assert "robot" in game_ids()
    assert game.observation_shape == env.observation_space.shape
    assert game.observation_dtype == str(env.observation_space.dtype)
    assert game.action_shape == env.action_space.shape
    assert np.array_equal(game.action_low, env.action_space.low)
    assert np.array_equal(game.action_high, env.action_space.high)


def test_only_gameplay_is_recorded(env: GodotEnv) -> None:
    modules = {function.name.partition(":")[0] for function in env.catalogue.functions}
    assert {"scripts.arena", "scripts.robot", "scripts.levels.level_8"} <= modules
    assert not modules & {"scripts.display", "scripts.main"}
    assert not any(name.startswith("addons") for name in modules)
    of_levels = {
        function.name.partition(":")[2]
        for function in env.catalogue.functions
        if function.name.startswith("scripts.levels.level_")
    }
    assert of_levels == {f"Level{number}.passed" for number in range(1, robot.LEVELS + 1)}


def test_a_world_begins_and_goes_on_alike_after_another_world(env: GodotEnv) -> None:
    actions = np.random.default_rng(3).uniform(-1, 1, (25, 2)).astype(np.float32)

    def played(world: int) -> list[tuple[bytes, tuple[int, ...]]]:
        seen, info = env.reset(options={"world": world})
        rows = [(seen.tobytes(), tuple(info["call_trace"].ids))]
        for action in actions:
            seen, _, terminated, truncated, info = env.step(action)
            rows.append((seen.tobytes(), tuple(info["call_trace"].ids)))
            if terminated or truncated:
                break
        return rows

    first = played(10_001)
    assert played(10_002) != first
    assert played(10_001) == first


def test_the_game_cuts_its_episodes_before_the_cap_does(env: GodotEnv) -> None:
    env.reset(options={"world": 1, "level": "1"})
    steps, ended = 0, False
    while not ended and steps < robot.STEP_CAP:
        _, reward, terminated, truncated, _ = env.step(np.zeros(2, np.float32))
        steps, ended = steps + 1, terminated or truncated
    assert (terminated, truncated, reward) == (False, True, -1.0)
    assert steps == robot.TIME_LIMIT_TICKS // robot.ACTION_REPEAT + 1 < robot.STEP_CAP
