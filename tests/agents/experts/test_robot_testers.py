"""The robot's testers, against the game in the engine and against sums of our own."""

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.agents import experts  # by module: pytest collects imported names like tester_names
from lanista.agents.experts.robot.guarded import TOUCH, enemy_x, is_clear
from lanista.agents.experts.robot.situation import Enemy, Situation
from lanista.agents.experts.robot.steering import STEP_S, Target, reach_velocity, steer
from lanista.envs.errors import InputError
from lanista.envs.game import load_game
from lanista.envs.godot.environment import GodotEnv

STANDING = Situation(
    level=1, x=0.0, z=-5.0, height=2.1, velocity_x=0.0, velocity_z=0.0, goal_x=0.0, goal_z=-14.0,
    coins=(), enemies=(), belt=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def env() -> Iterator[GodotEnv]:
    game = load_game("robot").make("class", None)
    yield game
    game.close()


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, 3]))


def play(
    env: GodotEnv,
    name: str,
    world: int,
    steps: int = 440,
    /,
    parameters: Any = None,
    **options: Any,
) -> tuple[dict[str, Any], set[str], list[Any]]:
    """Play one world; return the last info, the functions reached and the actions."""
    env.reset(options={"world": world, **options})
    rng = generator(world)
    tester = experts.make_tester("robot", name, parameters or {}, rng)
    called: set[int] = set()
    actions: list[Any] = []
    info: dict[str, Any] = {}
    for _ in range(steps):
        actions.append(tester.act(env, rng))
        _, _, terminated, truncated, info = env.step(actions[-1])
        called |= set(info["call_trace"].ids.tolist())
        if terminated or truncated:
            break
    functions = env.catalogue.functions
    return info, {functions[index].name.partition(":")[2] for index in called}, actions


def moved(now: Situation, wish: tuple[float, float]) -> Situation:
    """Move on an open floor for one step, by the physics that the game states."""
    velocity = np.array([now.velocity_x, now.velocity_z])
    place = np.array([now.x, now.z])
    for _ in range(8):
        velocity += np.array(wish) * 25 / 30
        speed = np.hypot(*velocity)
        velocity *= max(0.0, speed - 15 / 30) / speed if speed else 0.0
        velocity[0] += now.belt * 15 / 30
        velocity *= min(1.0, 10 / max(1e-9, np.hypot(*velocity)))
        place += velocity / 30
    return replace(
        now, x=place[0], z=place[1], velocity_x=velocity[0], velocity_z=velocity[1]
    )  # fmt: skip


def test_the_robot_has_a_family_of_testers() -> None:
    assert experts.tester_names("robot") == [
        "expert", "hasty", "idle", "noisy", "random", "slow", "wanderer",
    ]  # fmt: skip


@given(
    x=st.floats(-9, 9), z=st.floats(-18, -1),
    speed=st.floats(0, 10), angle=st.floats(0, 2 * math.pi),
)  # fmt: skip
def test_steering_comes_to_rest_at_a_target(x: float, z: float, speed: float, angle: float) -> None:
    now = replace(STANDING, velocity_x=speed * math.cos(angle), velocity_z=speed * math.sin(angle))
    for _ in range(40):
        wish = steer(now, Target(x, z, stop=True))
        assert math.hypot(*wish) <= 1 + 1e-9
        now = moved(now, wish)
    assert math.hypot(now.x - x, now.z - z) < 0.5


@given(
    first=st.floats(-3, 3), wanted=st.floats(-3, 3), across=st.floats(-2, 2),
)  # fmt: skip
def test_a_velocity_within_reach_is_reached_in_one_step(
    first: float, wanted: float, across: float
) -> None:
    now = replace(STANDING, velocity_z=first)
    wish = reach_velocity(now, across, wanted)
    after = moved(now, wish)
    # In a step it can change by 25 m/s² less friction; what is too much is cut.
    if math.hypot(across, wanted - first) < (25 - 15) * STEP_S * 0.9:
        assert after.velocity_z == pytest.approx(wanted, abs=1.2)
        assert after.velocity_x == pytest.approx(across, abs=1.2)


@given(
    x=st.floats(-8.1, 8.1), direction=st.sampled_from([-1.0, 1.0]), seconds=st.floats(0, 8),
)  # fmt: skip
def test_where_an_enemy_will_be_is_where_it_goes(
    x: float, direction: float, seconds: float
) -> None:
    place, way = x, direction
    steps = round(seconds * 1000)
    for _ in range(steps):
        place += way * 0.005
        if abs(place) > 8.1 and place * way > 0:
            way = -way
    assert enemy_x(Enemy(x, -9.0, direction), steps / 1000) == pytest.approx(place, abs=0.05)


@given(
    x=st.floats(-8.1, 8.1), direction=st.sampled_from([-1.0, 1.0]), place=st.floats(-6, 6),
    seconds=st.floats(0, 2),
)  # fmt: skip
def test_a_clear_place_is_met_by_no_enemy(
    x: float, direction: float, place: float, seconds: float
) -> None:
    enemy = Enemy(x, -9.0, direction)
    if is_clear(enemy, place, seconds):
        for part in range(101):
            assert abs(enemy_x(enemy, seconds * part / 100) - place) > TOUCH - 0.3


def test_what_is_no_robot_is_refused() -> None:
    with pytest.raises(InputError, match="multi-level robot"):
        experts.make_tester("robot", "expert", {}, generator(0)).act(object(), generator(0))


@pytest.mark.parametrize("level", range(1, 9))
def test_the_expert_passes_each_level(env: GodotEnv, level: int) -> None:
    passed = [
        play(env, "expert", world, level=level, mode="single")[0]["summary"]["levels_passed"]
        for world in (40_001, 40_002)
    ]
    assert passed == [1, 1]


def test_the_expert_goes_through_all_levels_in_one_episode(env: GodotEnv) -> None:
    info, called, actions = play(env, "expert", 40_003, level=1)
    assert info["summary"] == {"levels_passed": 8, "coins_taken": 18}
    assert {f"Level{number}.passed" for number in range(1, 9)} <= called
    assert "Arena.finish_run" in called
    assert len(actions) < 400


def test_the_others_get_less_far_and_elsewhere(env: GodotEnv) -> None:
    _, called, _ = play(env, "hasty", 3, 60, level=6)
    assert called & {"Arena.refuse_goal", "Arena.lose_by_fall"}
    _, called, actions = play(env, "idle", 4, level=1)
    assert "Arena.time_out" in called
    assert len(actions) == 438
    quick = len(play(env, "expert", 5, level=2, mode="single")[2])
    slow = len(play(env, "slow", 5, level=2, mode="single", parameters={"pace": 0.3})[2])
    assert slow > 1.5 * quick


@pytest.mark.parametrize("name", ["noisy", "wanderer", "hasty", "slow", "idle", "random"])
def test_a_tester_plays_the_same_again_within_bounds(env: GodotEnv, name: str) -> None:
    first, again = (play(env, name, 11, 60)[2] for _ in range(2))
    assert np.array_equal(first, again)
    for action in first:
        assert action.shape == (2,)
        assert action.dtype == np.float32
        assert np.all(np.abs(action) <= 1)


def test_a_wanderer_plays_on_once_it_has_been_everywhere(env: GodotEnv) -> None:
    info, _, actions = play(env, "wanderer", 12, level=1, mode="single", parameters={"count": 2})
    assert info["summary"]["levels_passed"] == 1 or info["step_info"]["position.1"] < 0
    other = play(env, "expert", 12, level=1, mode="single")[2]
    assert len(actions) > len(other)


@pytest.mark.slow
def test_the_expert_passes_each_level_in_fifty_unseen_worlds(
    env: GodotEnv, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = np.zeros(8)
    steps = np.zeros(8)
    for level in range(1, 9):
        for world in range(50_000, 50_050):
            info, _, actions = play(env, "expert", world, level=level, mode="single")
            passed[level - 1] += info["summary"]["levels_passed"]
            steps[level - 1] += len(actions) / 50
    with capsys.disabled():
        for level in range(8):
            sys.stdout.write(
                f"\nlevel {level + 1}: {passed[level]:.0f} of 50, {steps[level]:.1f} steps"
            )
    assert passed.sum() >= 0.8 * 400
    assert passed.min() >= 40
