"""The multi-level robot in the engine: levels, observation, rewards, endings, determinism."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine
from lanista.envs.godot.faults import GameScriptError
from lanista.envs.godot.frames import StepFrame
from lanista.envs.tracing.catalogue import Catalogue

AHEAD = (0.0, -1.0)
STILL = (0.0, 0.0)


def begin(client: GodotClient, level: int, world: int = 1, mode: str = "run") -> dict[str, Any]:
    frame = client.reset(seed=world, options={"level": str(level), "mode": mode})
    return frame.info[0]


def act(client: GodotClient, action: Sequence[float]) -> StepFrame:
    return client.step([{"movement": list(action)}])


def world_with(client: GodotClient, level: int, wanted: Callable[[dict[str, Any]], bool]) -> int:
    """Find a world in which a level begins as a test needs it."""
    return next(world for world in range(200) if wanted(begin(client, level, world)))


def names(frame: StepFrame, catalogue: Catalogue) -> set[str]:
    assert frame.traces[0] is not None
    return {catalogue.functions[number].name.partition(":")[2] for number in frame.traces[0]}


def play(
    client: GodotClient, catalogue: Catalogue, action: Sequence[float], steps: int = 60
) -> tuple[set[str], list[StepFrame]]:
    """Hold one action until the episode ends."""
    called: set[str] = set()
    frames = []
    for _ in range(steps):
        frames.append(act(client, action))
        called |= names(frames[-1], catalogue)
        if frames[-1].terminated[0] or frames[-1].truncated[0]:
            break
    return called, frames


def test_it_shows_65_numbers_and_takes_two(robot: GodotClient) -> None:
    (spaces,) = robot.spaces
    assert [(part.name, part.shape) for part in spaces.observation] == [("obs", (65,))]
    assert [(part.name, part.size) for part in spaces.action] == [("movement", 2)]
    assert (robot.action_repeat, robot.ticks_per_second) == (8, 30)


@pytest.mark.parametrize(("level", "coins", "enemies"), [
    (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 1, 0), (6, 9, 0), (7, 2, 0), (8, 6, 2),
])  # fmt: skip
def test_each_level_can_be_chosen_and_holds_what_it_should(
    robot: GodotClient, level: int, coins: int, enemies: int
) -> None:
    frame = robot.reset(seed=3, options={"level": str(level)})
    info = frame.info[0]
    assert (info["level"], info["coins_left"], len(info["enemies"]) // 3) == (level, coins, enemies)
    assert len(info["belts"]) == (3 if level == 3 else 0)
    seen = frame.obs[0]["obs"]
    assert seen.shape == (65,)
    assert seen[0] == 0
    ahead = np.array([info["goal"][0], info["goal"][1]]) - np.array(info["position"])[[0, 2]]
    assert seen[1] * 40 == pytest.approx(ahead[0], abs=1e-4)
    assert seen[3] * 40 == pytest.approx(ahead[1], abs=1e-4)
    assert seen[14] == (coins == 0)
    assert np.any(seen[4:7]) == (coins > 0)
    assert np.any(seen[7:11]) == (enemies > 0)


def test_the_floor_sensor_looks_down_in_a_cone(robot: GodotClient) -> None:
    frame = robot.reset(seed=3, options={"level": "6"})
    seen = frame.obs[0]["obs"][33:].reshape(4, 4, 2)
    for row in range(4):
        for column in range(4):
            ahead, aside = (math.tan(math.radians(15 + 30 * k - 60)) for k in (row, column))
            length = 2.1 * math.hypot(1, ahead, aside)
            assert seen[row, column, 0] == pytest.approx((15 - length) / 15, abs=1e-4)
            assert seen[row, column, 1] == 0


def test_the_wall_sensor_tells_how_near_the_cubes_are(robot: GodotClient) -> None:
    world = world_with(robot, 2, lambda info: info["position"][0] == 0)
    frame = robot.reset(seed=world, options={"level": "2"})
    rays = frame.obs[0]["obs"][15:33]
    # Straight ahead a cube begins 8 m into the level, and the robot stands 4 m into it.
    assert rays[0] == pytest.approx((25 - 4) / 25, abs=1e-4)
    assert rays[1] == pytest.approx((25 - 4 / math.cos(math.radians(20))) / 25, abs=1e-4)
    assert not rays[5:14].any()


def test_velocity_and_position_follow_the_stated_physics(robot: GodotClient) -> None:
    begin(robot, 6)
    speed, place = 0.0, 0.0
    for _ in range(3):
        frame = act(robot, AHEAD)
        for _ in range(8):
            speed = min(10.0, speed + (25 - 15) / 30)
            place -= speed / 30
        assert frame.info[0]["velocity"][2] == pytest.approx(-speed, abs=1e-3)
        assert frame.info[0]["position"][2] + 4 == pytest.approx(place, abs=1e-3)
        assert frame.obs[0]["obs"][13] == pytest.approx(-speed / 20, abs=1e-4)
        assert frame.obs[0]["obs"][0] == pytest.approx(frame.info[0]["tick"] / 3500)


def test_the_goal_gives_one_and_progress_a_tenth_of_the_metres(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    world = world_with(robot, 1, lambda info: info["position"][0] == info["goal"][0])
    begin(robot, 1, world, mode="single")
    called, frames = play(robot, robot_copy[1], AHEAD)
    assert frames[-1].terminated[0]
    assert not frames[-1].truncated[0]
    left = abs(frames[-1].info[0]["position"][2] + 14)
    assert left < 2.7
    total = sum(frame.reward[0] for frame in frames)
    assert total == pytest.approx(1 + (8 - left) / 10, abs=1e-4)
    assert {"Arena.reach_goal", "Level1.passed"} <= called


def test_an_episode_goes_on_in_the_next_level(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    world = world_with(robot, 1, lambda info: info["position"][0] == info["goal"][0])
    begin(robot, 1, world)
    for _ in range(12):
        frame = act(robot, AHEAD)
        if "Arena.reach_goal" in names(frame, robot_copy[1]):
            break
    assert not frame.terminated[0]
    assert (frame.info[0]["level"], frame.info[0]["levels_passed"]) == (2, 1)
    assert "Arena.enter_level" in names(frame, robot_copy[1])


def test_a_fall_ends_the_episode_with_its_last_sight(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    begin(robot, 6)
    called, frames = play(robot, robot_copy[1], (1.0, 0.0))
    last = frames[-1]
    assert last.terminated[0]
    assert last.reward[0] == pytest.approx(-1, abs=1e-6)
    assert {"Robot.take_off", "Arena.lose_by_fall"} <= called
    assert last.final_exact[0]
    assert last.final_obs[0] is not None
    assert last.info[0]["position"][1] - 1.5 < -10.4


def test_coins_must_be_taken_before_the_goal_counts(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    world = world_with(robot, 6, lambda info: info["position"][0] == info["goal"][0] == 0)
    begin(robot, 6, world)
    called, frames = play(robot, robot_copy[1], AHEAD)
    assert {"Coin.take", "Arena.refuse_goal", "Arena.lose_by_fall"} <= called
    assert not called & {"Arena.open_goal", "Arena.reach_goal"}
    assert max(frame.info[0]["coins_taken"] for frame in frames) == 3


def test_a_run_up_the_ramp_clears_the_gap_and_takes_the_coin(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    ready = world_with(robot, 5, lambda info: info["position"][0] == info["goal"][0] == 0)
    begin(robot, 5, ready)
    called, frames = play(robot, robot_copy[1], AHEAD)
    assert {
        "Robot.climb_ramp", "Robot.take_off", "Coin.take", "Arena.open_goal", "Robot.land",
        "Level5.passed",
    } <= called  # fmt: skip
    assert sum(frame.reward[0] for frame in frames[:18]) > 2


def test_an_enemy_ends_the_episode(robot: GodotClient, robot_copy: tuple[Path, Catalogue]) -> None:
    for world in range(50):
        begin(robot, 8, world)
        called, frames = play(robot, robot_copy[1], AHEAD)
        if "Arena.lose_to_enemy" in called:
            assert frames[-1].terminated[0]
            return
    pytest.fail("no enemy met the robot")


def test_belts_push_and_say_so(robot: GodotClient, robot_copy: tuple[Path, Catalogue]) -> None:
    info = begin(robot, 3)
    called: set[str] = set()
    for _ in range(6):
        frame = act(robot, AHEAD)
        called |= names(frame, robot_copy[1])
    assert {"Robot.board_belt", "Robot.leave_belt"} <= called
    aside = frame.info[0]["position"][0] - info["position"][0]
    assert aside * info["belts"][0] > 0.3


def test_walls_stop_the_robot(robot: GodotClient, robot_copy: tuple[Path, Catalogue]) -> None:
    world = world_with(robot, 2, lambda info: info["position"][0] == 0)
    begin(robot, 2, world)
    called, frames = play(robot, robot_copy[1], AHEAD, steps=12)
    assert "Robot.bump_wall" in called
    assert frames[-1].info[0]["position"][2] == pytest.approx(-8 + 1.23, abs=1e-3)


def test_time_runs_out_as_a_truncation(
    robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    begin(robot, 1)
    called, frames = play(robot, robot_copy[1], STILL, steps=450)
    assert (frames[-1].terminated[0], frames[-1].truncated[0]) == (False, True)
    assert len(frames) == 438  # the first step beyond 3500 ticks
    assert frames[-1].reward[0] == pytest.approx(-1)
    assert "Arena.time_out" in called


@pytest.mark.parametrize(
    ("options", "says"),
    [({"level": "9"}, "level"), ({"level": "x"}, "level"), ({"mode": "walk"}, "mode")],
)
def test_options_that_make_no_sense_are_refused(
    engine: Engine, robot_copy: tuple[Path, Catalogue], options: dict[str, str], says: str
) -> None:
    with (
        GodotClient.start(engine, robot_copy[0], script_errors="raise") as client,
        pytest.raises(GameScriptError, match=says),
    ):
        client.reset(seed=1, options=options)


def record(client: GodotClient, world: int, steps: int = 40) -> list[bytes]:
    """Play random actions in a world; return all that was seen and called."""
    rng = np.random.default_rng(world)
    frame = client.reset(seed=world)
    seen = [frame.obs[0]["obs"].tobytes()]
    for _ in range(steps):
        step = client.step([{"movement": rng.uniform(-1, 1, 2) + np.array([0.0, -0.7])}])
        assert step.traces[0] is not None
        seen += [step.obs[0]["obs"].tobytes(), step.traces[0].tobytes(), step.reward.tobytes()]
        if step.terminated[0] or step.truncated[0]:
            break
    return seen


def test_a_world_plays_the_same_in_another_process_and_after_other_plays(
    engine: Engine, robot: GodotClient, robot_copy: tuple[Path, Catalogue]
) -> None:
    worlds = range(10, 18)
    with GodotClient.start(engine, robot_copy[0], seed=99, script_errors="raise") as other:
        fresh = {world: record(other, world) for world in reversed(worlds)}
    again = {world: record(robot, world) for world in worlds}
    assert again == fresh
    assert len({tuple(seen) for seen in again.values()}) == len(worlds)


def test_worlds_differ_in_level_start_goal_and_belts(robot: GodotClient) -> None:
    infos = [robot.reset(seed=world).info[0] for world in range(60)]
    assert {info["level"] for info in infos} == set(range(1, 9))
    begun = [begin(robot, 3, world) for world in range(40)]
    assert len({(tuple(info["position"]), tuple(info["goal"])) for info in begun}) == 9
    assert len({tuple(info["belts"]) for info in begun}) == 8
    first, again = begin(robot, 3, 7), begin(robot, 3, 7)
    assert first == again


@pytest.mark.parametrize("agents", [4, 10])
def test_many_arenas_play_in_one_process(
    engine: Engine, robot_copy: tuple[Path, Catalogue], agents: int
) -> None:
    options = {"agents": str(agents), "level": "6"}
    with GodotClient.start(engine, robot_copy[0], options=options, script_errors="raise") as client:
        frame = client.reset(seed=5)
        assert client.n_agents == agents
        assert len({(info["position"][0], *info["goal"]) for info in frame.info}) > 1
        ended = np.zeros(agents, bool)
        for _ in range(30):
            step = client.step([{"movement": [0.0, -1.0]}] * agents)
            ended |= step.terminated
        assert ended.all()
        assert all(info["level"] == 6 for info in step.info)
