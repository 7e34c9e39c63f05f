"""Godot games as Gymnasium environments: plays, worlds, traces, endings and what goes wrong."""

import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lanista.data.faults import fault_of
from lanista.envs.errors import InputError
from lanista.envs.game import Game, canonical_game_id, load_game
from lanista.envs.godot.agent_spaces import ActionPart, ObservationPart
from lanista.envs.godot.engine import find_engine
from lanista.envs.godot.environment import GodotEnv, Launch, numbers_of
from lanista.envs.godot.faults import GameCrashed, GameHung, GameScriptError
from lanista.envs.godot.game import godot_game
from lanista.envs.godot.godot_rl_wrappers import CleanRLGodotEnv, GodotRlEnv
from lanista.envs.godot.spaces import ActionLayout, ObservationLayout
from lanista.envs.godot.vector import GodotVectorEnv
from lanista.envs.wrappers import GoalReward

LEFT = np.array([-1.0, 0.0, 1.0, 0.0], np.float32)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        # The engine that Lanista installed is in the cache, so it is named before that is moved.
        patch.setenv("GODOT", find_engine().command[0])
        patch.setenv("LANISTA_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory, cache: Path, engine: Any, maker: Any) -> Path:
    folder: Path = maker(engine, tmp_path_factory.mktemp("hall")).project(
        "sync_seven", bridge=False, limit=40
    )
    return folder


@pytest.fixture(scope="module")
def game(hall: Path) -> Game:
    return load_game(str(hall))


@pytest.fixture(scope="module")
def env(game: Game) -> Iterator[Any]:
    made: Any = game.make("class")
    yield made
    made.close()


def walk(env: Any, world: int, steps: int = 12) -> list[Any]:
    """What a fixed play looks like: observations, rewards, endings and traces."""
    seen, info = env.reset(options={"world": world})
    rows: list[Any] = [(seen.tolist(), info["call_trace"], info["world_fingerprint"])]
    for step in range(steps):
        action = np.array([np.sin(step), 0, 0, 0], np.float32)
        seen, reward, ended, cut, info = env.step(action)
        rows.append((seen.tolist(), reward, ended, cut, info["call_trace"]))
        if ended or cut:
            break
    return rows


def test_a_folder_is_a_game(game: Game, hall: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert game.id == str(hall)
    assert (game.title, game.actions, game.action_shape) == ("corridor", (), (4,))
    assert (game.observation_shape, game.observation_dtype) == ((4,), "float32")
    assert game.engine()["version"].startswith("godot 4.")
    assert len(game.engine()["sha256"]) == 64
    names = [function.name for function in game.catalogue("class").functions]
    assert "runner:Runner.spawn" in names
    monkeypatch.chdir(hall.parent)
    assert canonical_game_id(hall.name) == str(hall)
    assert load_game(hall.name) is game
    assert canonical_game_id("crafter") == "crafter"


def test_the_environment_passes_gymnasiums_own_checks(game: Game) -> None:
    with warnings.catch_warnings(), closing(game.make()) as env:
        # Games go beyond the bounds that they declare, so observations have none.
        warnings.filterwarnings("ignore", message=".*infinity.*")
        check_env(env, skip_render_check=True)


def test_a_world_is_the_same_in_another_process_and_after_other_plays(env: Any, game: Game) -> None:
    first = walk(env, 7)
    walk(env, 8)
    assert walk(env, 7) == first
    assert walk(env, 8)[0] != first[0]
    with closing(game.make()) as other:
        assert walk(other, 7) == first


def test_the_trace_is_of_the_calls_that_the_action_caused(env: Any, game: Game) -> None:
    catalogue = game.catalogue("class")
    spawn, finish = (catalogue.resolve(name) for name in ("Runner.spawn", "Runner.finish"))
    _, info = env.reset(options={"world": 3})
    assert spawn in info["call_trace"]
    traces = []
    for _ in range(40):
        *_, ended, _, info = env.step(LEFT)
        traces.append(info["call_trace"])
        if ended:
            break
    assert ended
    assert [finish in trace for trace in traces] == [False] * (len(traces) - 1) + [True]
    assert env.last_trace == traces[-1]


def test_an_ending_shows_the_last_observation_of_its_own_play(env: Any) -> None:
    env.reset(options={"world": 3})
    ended = False
    while not ended:
        seen, reward, ended, cut, _ = env.step(LEFT)
        assert not cut
    assert seen[0] < -3.0
    assert reward == -1.0
    env.reset(options={"world": 3})
    for _ in range(20):
        seen, _, ended, cut, _ = env.step(np.zeros(4, np.float32))
        if cut:
            break
    assert cut
    assert not ended


def test_options_reach_the_game_and_its_numbers_come_back(env: Any) -> None:
    _, info = env.reset(options={"world": 3, "level": 5})
    assert info["game_info"] == {"level": "5"}
    _, plain = env.reset(options={"world": 3})
    assert plain["game_info"] == {}
    assert plain["world_fingerprint"] != info["world_fingerprint"]
    told = {"a": 1, "b": [1.5, True], "c": "x", "d": None, "e": list(range(99))}
    assert numbers_of(told) == {"a": 1, "b.0": 1.5, "b.1": True}


def test_a_goal_is_rewarded_as_in_any_game(game: Game) -> None:
    with closing(GoalReward(game.make(), "Runner.finish")) as env:
        env.reset(options={"world": 3})
        rewards, reached = [], []
        for _ in range(40):
            _, reward, ended, _, info = env.step(LEFT)
            rewards.append(reward)
            reached.append(info["goal_reached"])
            if ended:
                break
    assert rewards == [-1.0] * (len(rewards) - 1) + [0.0]
    assert reached[-1]


def test_patterns_limit_what_is_recorded(game: Game) -> None:
    with closing(game.make("definition", ("Runner.*",))) as env:
        assert {item.owner for item in env.catalogue.functions} == {"Runner"}
        _, info = env.reset(options={"world": 1})
        assert len(info["call_trace"]) > 0


def test_a_play_goes_on_with_a_new_engine_after_the_old_one_was_killed(env: Any) -> None:
    first = walk(env, 5)
    env.reset(options={"world": 5})
    os.kill(env.client.pid, signal.SIGKILL)
    with pytest.raises(GameCrashed) as died:
        env.step(LEFT)
    fault = fault_of(died.value, env.catalogue)
    assert (fault.kind, fault.exception, fault.where) == ("crash", "GameCrashed", "engine")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(LEFT)
    assert walk(env, 5) == first


def test_a_script_error_is_a_finding_with_its_place(env: Any) -> None:
    env.reset(options={"world": 5})
    env.client.call("stumble")
    with pytest.raises(GameScriptError, match="nowhere") as raised:
        env.step(LEFT)
    assert fault_of(raised.value, env.catalogue).where.endswith(":stumble")
    # The step was taken all the same, and its calls are known.
    assert len(env.last_trace) > 0
    env.reset(options={"world": 5})
    env.client.call("send_nothing")
    with pytest.raises(GameScriptError) as raised:
        env.step(LEFT)
    fault = fault_of(raised.value, env.catalogue)
    assert fault.kind == "exception"
    assert fault.where.startswith("runner_controller.gd:")
    assert fault.where.endswith(":get_obs")
    assert "SCRIPT ERROR" in fault.traceback
    assert walk(env, 5)


def test_a_hang_is_told_in_time(game: Game, hall: Path, cache: Path) -> None:
    with closing(godot_game(hall, timeout_s=5.0).make()) as env:
        env.reset(options={"world": 5})
        with pytest.raises(GameHung):
            env.client.call("freeze")
        assert fault_of(GameHung("no answer"), None).kind == "hang"


def test_errors_of_scripts_can_be_played_through(hall: Path, cache: Path) -> None:
    with closing(godot_game(hall, script_errors="report").make()) as env:
        env.reset(options={"world": 5})
        env.client.call("stumble")
        *_, info = env.step(LEFT)
        assert "nowhere" in info["script_errors"][0] or "place" in info["script_errors"][0]


def test_a_game_without_the_bridge_is_played_too_without_traces(
    games: Any, engine: Any, hall: Path
) -> None:
    with closing(GodotEnv(Launch(engine, hall), agent=0)) as env:
        first = walk(env, 7, 4)
        assert all(len(row[-1]) == 0 for row in first[1:])
        assert walk(env, 8, 4)[0][:1] != first[0][:1]
        with pytest.raises(InputError, match="no number 3"):
            GodotEnv(Launch(engine, hall), agent=3)


def test_all_agents_of_a_process_are_a_vector(games: Any, engine: Any) -> None:
    project = games.project("sync_seven", runners=3, trace=True, limit=40)
    with closing(GodotVectorEnv(Launch(engine, project))) as envs:
        assert envs.num_envs == 3
        seen, info = envs.reset(seed=4)
        assert (seen.shape, seen.dtype) == ((3, 4), np.float32)
        assert envs.observation_space.contains(seen)
        again, _ = envs.reset(seed=4)
        assert again.tolist() == seen.tolist()
        action = np.tile(LEFT, (3, 1))
        action[1] = 0
        for _ in range(8):
            seen, reward, ended, cut, info = envs.step(action)
            assert (reward.shape, ended.dtype, cut.dtype) == ((3,), np.bool_, np.bool_)
            if ended.any():
                break
        assert ended[1] == np.False_
        which = int(np.flatnonzero(ended)[0])
        assert info["_final_obs"].tolist() == ended.tolist()
        assert info["final_obs"][which][0] < -3.0
        assert seen[which, 0] >= -1.0
        assert info["final_obs"][1] is None
        assert info["_final_info"].tolist() == ended.tolist()
        told = info["final_info"]
        assert told["_step_info"].tolist() == ended.tolist()
        assert told["step_info"][which] == info["step_info"][which]
        assert told["call_trace"][which] == info["call_trace"][which]
        assert told["step_info"][1] is None
        assert all(trace == info["call_trace"][0] for trace in info["call_trace"])
        alone, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
        # The others play on while the one is reset, which takes a tick of the engine.
        assert np.abs(alone[[0, 2], 0] - seen[[0, 2], 0]).max() < 0.11
        assert alone[1, 1] < seen[1, 1]
        with pytest.raises(InputError, match="give one seed"):
            envs.reset(seed=[1, 2, 3])


def test_a_vector_of_one_plays_as_the_single_agent_does(games: Any, engine: Any) -> None:
    launch = Launch(engine, games.project("sync_seven", trace=True, limit=40))
    with (
        closing(GodotVectorEnv(launch)) as envs,
        closing(GodotEnv(launch, fresh="reset")) as env,
    ):
        many, _ = envs.reset(seed=9)
        single, _ = env.reset(seed=9)
        assert many.tolist() == [single.tolist()]
        for _ in range(60):
            many, rewards, ended, cut, info = envs.step(LEFT[None])
            single, reward, over, late, told = env.step(LEFT)
            assert (rewards[0], ended[0], cut[0]) == (reward, over, late)
            assert info["call_trace"][0] == told["call_trace"]
            assert info["step_info"][0] == told["step_info"]
            if over or late:
                assert info["final_obs"][0].tolist() == single.tolist()
                assert info["final_info"]["step_info"][0] == told["step_info"]
                break
            assert many.tolist() == [single.tolist()]
            assert "final_info" not in info
        else:
            pytest.fail("no episode ended")


def test_code_written_for_godot_rl_plays_on(games: Any) -> None:
    project = games.project("sync_seven", runners=2, bridge=True, limit=40)
    with closing(GodotRlEnv(project, action_repeat=8)) as env:
        assert env.num_envs == 2
        assert isinstance(env.action_space, gymnasium.spaces.Tuple)
        obs, infos = env.reset()
        assert [sorted(seen) for seen in obs] == [["obs"], ["obs"]]
        assert len(infos) == 2
        move = np.full((2, 1), -1.0)
        for _ in range(10):
            obs, rewards, ended, cut, infos = env.step([move, np.array([0, 1])])
            if any(ended):
                break
        assert (len(rewards), len(cut)) == (2, 2)
        assert infos[ended.index(True)]["final_obs"]["obs"][0] < -3.0
        by_agent = [[move[0], 0], [move[1], 1]]
        assert len(env.step(by_agent, order_ij=True)[0]) == 2
        assert env.call("first_place") is not None
        with pytest.raises(RuntimeError, match="step_send comes before"):
            env.step_recv()
    with closing(CleanRLGodotEnv(project, n_parallel=2, seed=1)) as many:
        assert many.num_envs == 4
        seen, _ = many.reset(seed=3)
        assert seen.shape == (4, 4)
        seen, rewards, *_ = many.step(np.zeros((4, 4)))
        assert (seen.shape, len(rewards)) == ((4, 4), 4)
    with pytest.raises(InputError, match="Name the game"):
        GodotRlEnv()


def test_parts_lie_in_arrays() -> None:
    layout = ObservationLayout(
        (ObservationPart("a", (2,)), ObservationPart("b", (), 3), ObservationPart("c", (1, 2)))
    )
    seen = {"a": np.array([1.0, 2.0]), "b": np.int64(2), "c": np.array([[3.0, 4.0]])}
    assert layout.join(seen).tolist() == [1, 2, 0, 0, 1, 3, 4]
    assert layout.shape == (7,)
    with pytest.raises(InputError, match="mixes the picture 'view_2d'"):
        ObservationLayout((ObservationPart("view_2d", (4, 4, 3)), ObservationPart("a", (1,))))

    keys = ActionLayout((ActionPart("jump", 2, True), ActionPart("turn", 3, True)))
    assert keys.space == gymnasium.spaces.Discrete(6)
    assert keys.names[4] == "jump=1,turn=1"
    assert keys.split(4) == {"jump": 1, "turn": 1}
    with pytest.raises(ValueError, match="action 6 is not from 0 to 5"):
        keys.split(6)
    mixed = ActionLayout((ActionPart("move", 2, False), ActionPart("turn", 3, True)))
    parts = mixed.split([0.5, -2.0, 0.1, 0.3, 0.2])
    assert parts["move"].tolist() == [0.5, -1.0]
    assert parts["turn"] == 1
    with pytest.raises(ValueError, match="5 finite numbers"):
        mixed.split([0.5, np.nan, 0, 0, 0])
    with pytest.raises(InputError, match="40 × 40 joint choices"):
        ActionLayout((ActionPart("a", 40, True), ActionPart("b", 40, True)))


def test_a_project_that_nobody_can_play_is_refused_at_once(games: Any) -> None:
    project = games.project(None, name="lonely", bridge=False)
    for script in project.glob("*.gd"):
        script.write_text(script.read_text().replace("AGENT", "CROWD"))
    for script in project.glob("sync_*.gd"):
        script.unlink()
    began = time.monotonic()
    with pytest.raises(InputError, match="has no Sync node: add the godot-rl plugin's"):
        load_game(str(project))
    assert time.monotonic() - began < 20


def test_what_is_no_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"project\.godot"):
        load_game(str(tmp_path))
    with pytest.raises(InputError):
        load_game(str(tmp_path / "nothing"))
