"""Copies that carry the bridge: seeds, options, the first step, endings, traces."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Go = Callable[..., list[dict[str, Any]]]

PLACE, STEPS, GEM, MODEL = range(4)
A_TICK = 0.1


def see(frame: Any, agent: int = 0) -> np.ndarray[Any, Any]:
    seen: np.ndarray[Any, Any] = frame.obs[agent]["obs"]
    return seen


def play_on(client: Any, actions: list[dict[str, Any]], most: int = 60) -> Any:
    """Act alike until an episode ends."""
    for _ in range(most):
        frame = client.step(actions)
        if frame.terminated.any() or frame.truncated.any():
            return frame
    raise AssertionError("no episode ended")


@pytest.mark.parametrize("sync", ["sync_three", "sync_seven", None])
def test_the_first_action_acts_from_the_tick_of_the_reset(
    games: Any, go: Go, sync: str | None
) -> None:
    client = games.play(sync)
    assert client.bridged
    assert client.action_repeat == 8
    assert client.ticks_per_second == 60
    start = client.reset(seed=4)
    assert start.ticks == 1
    assert see(start)[MODEL] == 1.0
    first = client.step(go(1.0))
    assert first.ticks == 8
    assert see(first)[PLACE] - see(start)[PLACE] == pytest.approx(8 * A_TICK, abs=1e-5)
    assert see(first)[STEPS] - see(start)[STEPS] == 8
    assert client.call("ticks_a_second") == [[60, 1]]


def test_an_override_of_the_sync_node_keeps_what_it_sets(games: Any, go: Go) -> None:
    client = games.play("sync_slow")
    assert client.action_repeat == 4
    assert client.ticks_per_second == 30
    assert client.call("ticks_a_second") == [[30, 1]]
    start = client.reset(seed=1)
    assert see(start)[MODEL] == 1.0  # left for people to play, and played by a client all the same
    frame = client.step(go(0.5))
    assert frame.ticks == 4
    assert see(frame)[PLACE] - see(start)[PLACE] == pytest.approx(4 * A_TICK, abs=1e-5)


def test_action_repeat_can_be_chosen(games: Any, go: Go) -> None:
    client = games.start(games.project(), action_repeat=3)
    assert client.action_repeat == 3
    client.reset(seed=1)
    assert client.step(go(0.0)).ticks == 3


def test_the_same_seed_gives_the_same_world_whatever_came_before(games: Any, go: Go) -> None:
    project = games.project()
    one, other = games.start(project), games.start(project)
    other.reset(seed=99)
    for _ in range(3):
        other.step(go(-1.0))
    worlds = {}
    for seed in (1, 2, 2**62 + 1):
        mine, theirs = one.reset(seed=seed), other.reset(seed=seed)
        assert np.array_equal(see(mine), see(theirs))
        worlds[seed] = see(mine).tobytes()
        for move in (0.3, -0.7, 0.1):
            a, b = one.step(go(move)), other.step(go(move))
            assert np.array_equal(see(a), see(b))
    assert len(set(worlds.values())) == 3
    # A generator of the game's own is seeded too; seed() alone does not reach it.
    assert len({world[8:12] for world in worlds.values()}) == 3


def test_a_seed_of_more_than_53_bits_arrives_whole(games: Any) -> None:
    client = games.play()
    client.reset(seed=2**62 + 1)
    assert client.call("what_was_asked")[0][0] in {2**62 + 1, float(2**62 + 1)}
    first = see(client.reset(seed=2**62 + 1)).tobytes()
    assert see(client.reset(seed=2**62)).tobytes() != first


def test_the_first_spawn_is_seeded(games: Any) -> None:
    project = games.project()
    places = [games.start(project, seed=seed).call("first_place")[0] for seed in (5, 5, 6)]
    assert places[0] == places[1] != places[2]


def test_options_reach_the_game(games: Any) -> None:
    client = games.start(games.project(), options={"level": "two words é"})
    start = client.reset(seed=7)
    assert client.call("what_was_asked") == [[7, "two words é"]]
    assert start.info == ({"level": "two words é"},)
    assert client.reset(seed=8, options={"level": "3"}).info == ({"level": "3"},)
    assert client.call("what_was_asked") == [[8, "3"]]
    assert client.call("said_to_the_root") == [[8, "3", 8, "3"]]


def test_a_reload_forgets_what_the_scene_kept(games: Any, go: Go) -> None:
    client = games.play(runners=2)
    fresh = client.reset(seed=3, reload=True)
    assert client.call("episodes") == [4, 4]  # two runners spawned, then reset
    for _ in range(3):
        client.step(go(0.6, 2))
        client.reset(seed=9)
    assert client.call("episodes")[0] > 4
    again = client.reset(seed=3, reload=True)
    assert client.call("episodes") == [4, 4]
    assert all(np.array_equal(see(fresh, agent), see(again, agent)) for agent in range(2))
    assert client.step(go(0.1, 2)).ticks == 8


def test_the_end_shows_the_last_sight_and_its_reward(games: Any, go: Go) -> None:
    client = games.play()
    start = client.reset(seed=2)
    steps_to_door = int(np.ceil((3.0 - see(start)[PLACE]) / A_TICK))
    frame = play_on(client, go(1.0))
    assert frame.terminated.tolist() == [True]
    assert frame.truncated.tolist() == [False]
    assert frame.reward.tolist() == [1.0]
    assert frame.final_exact.tolist() == [True]
    assert see(frame)[PLACE] > 3.0
    assert np.array_equal(frame.final_obs[0]["obs"], see(frame))
    assert see(frame)[STEPS] - 1 == steps_to_door
    after = client.reset(seed=2)
    assert np.array_equal(see(after), see(start))
    fall = play_on(client, go(-1.0))
    assert (fall.reward[0], fall.terminated[0], see(fall)[PLACE] < -3.0) == (-1.0, True, True)


def test_the_controllers_own_limit_is_a_truncation(games: Any, go: Go) -> None:
    client = games.play(limit=20)
    client.reset(seed=2)
    frame = play_on(client, go(0.0))
    assert frame.truncated.tolist() == [True]
    assert frame.terminated.tolist() == [False]
    assert see(frame)[STEPS] == 21
    assert frame.ticks == 4
    # Played on without a reset, the game begins the next episode itself.
    assert see(client.step(go(0.0)))[STEPS] < 21


def test_a_game_that_resets_at_once_is_told_apart(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=2)
    client.call("be_rude")
    frame = play_on(client, go(1.0))
    assert frame.terminated.tolist() == [True]
    assert frame.reward.tolist() == [1.0]
    assert frame.final_exact.tolist() == [False]
    assert abs(see(frame)[PLACE]) <= 1.0 + A_TICK


def test_many_agents_go_on_while_one_begins_again(games: Any, go: Go) -> None:
    client = games.play(runners=3)
    client.reset(seed=6)
    actions = [{"move": [move], "look": 0} for move in (1.0, 0.0, -1.0)]
    totals = np.zeros(3)
    endings = 0
    for _ in range(30):
        frame = client.step(actions)
        assert 8 <= frame.ticks <= 12
        totals += frame.reward
        for agent in np.flatnonzero(frame.terminated):
            endings += 1
            final = frame.final_obs[agent]["obs"]
            assert abs(final[PLACE]) > 3.0
            assert abs(see(frame, int(agent))[PLACE]) <= 1.0 + 9 * A_TICK
            assert frame.final_exact[agent]
        assert frame.final_obs[1] is None
    assert totals[0] > 3
    assert totals[1] == 0
    assert totals[2] < -3
    assert endings == totals[0] - totals[2]


def test_single_agents_can_be_reset(games: Any, go: Go) -> None:
    client = games.play(runners=2)
    client.reset(seed=6)
    before = client.step(go(0.1, 2))
    frame = client.reset(agents=[1])
    assert see(frame, 0)[STEPS] == see(before, 0)[STEPS] + 1
    assert see(frame, 1)[STEPS] == 1


def test_traces_of_start_reset_and_steps_stay_apart(games: Any, go: Go) -> None:
    client = games.play(trace=True)
    ready, spawned, finished, looked, acted = 1, 2, 3, 10, 11
    assert client.startup_trace is not None
    assert client.startup_trace.tolist() == [ready, spawned, looked]
    start = client.reset(seed=2)
    # The neutral action, the reset that the game serves, and the first sight.
    assert start.traces[0].tolist() == [acted, spawned, looked]
    assert client.step(go(0.0)).traces[0].tolist() == [acted, looked]
    frame = play_on(client, go(1.0))
    assert frame.traces[0].tolist() == [acted, finished, looked]
    assert frame.traces[0].dtype == np.int32
    assert not frame.trace_truncated
    assert client.reset(seed=2).traces[0].tolist() == [acted, spawned, looked]
    client.call("overflow")
    assert client.step(go(0.0)).trace_truncated


def test_a_script_error_is_told_in_the_step_of_its_cause(games: Any, go: Go) -> None:
    client = games.play()
    assert client.reset(seed=1).script_errors == ()
    client.call("stumble")
    frame = client.step(go(0.0))
    assert len(frame.script_errors) == 1
    assert "nowhere" in frame.script_errors[0]
    assert "runner_controller.gd" in frame.script_errors[0]
    assert client.step(go(0.0)).script_errors == ()


def test_a_game_may_say_that_an_episode_was_cut(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=2)
    client.call("be_cut")
    frame = play_on(client, go(1.0))
    assert (frame.truncated.tolist(), frame.terminated.tolist()) == ([True], [False])
    assert frame.final_exact.tolist() == [True]
    client.reset(seed=2)
    assert not client.step(go(0.0)).truncated.any()


@pytest.mark.parametrize("manner", ["be_reloading", "be_silent"])
def test_a_game_that_loads_its_scene_again_is_played_on(games: Any, go: Go, manner: str) -> None:
    client = games.play()
    client.reset(seed=2)
    client.call(manner)
    frame = play_on(client, go(1.0))
    assert frame.terminated.tolist() == [True]
    if manner == "be_reloading":
        assert frame.reward.tolist() == [1.0]
        assert frame.final_obs[0]["obs"][PLACE] > 3.0
    assert not frame.final_exact[0]
    assert abs(see(frame)[PLACE]) <= 1.0 + A_TICK
    for _ in range(3):
        frame = client.step(go(0.01))
        assert frame.ticks == 8
        assert not frame.terminated.any()
    assert see(client.reset(seed=2))[STEPS] == 1


def test_an_agent_whose_game_serves_no_reset_is_reset_by_its_method(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=2)
    client.step(go(0.0))
    client.call("be_deaf")
    slow = client.reset(seed=2)
    assert slow.ticks == 8
    assert see(slow)[STEPS] <= 1
    client.step(go(0.0))
    assert client.reset(seed=2).ticks == 8


def test_a_game_that_pauses_itself_is_played_on(games: Any, go: Go) -> None:
    client = games.play()
    start = client.reset(seed=2)
    client.call("pause")
    assert see(client.step(go(1.0)))[PLACE] - see(start)[PLACE] == pytest.approx(0.8, abs=1e-5)


AREA_RUNNER = """extends CharacterBody2D

# Falls from a ledge into a pit whose area notices it: a signal between two ticks.

@onready var controller: Node = $Controller
var wish := 0.0
var level := "none"
var gem := 0.0
var place: float:
	get: return position.x


func _ready():
	controller.runner = self
	$"../Pit".body_entered.connect(_on_pit_entered)


func _on_pit_entered(_body):
	controller.reward -= 1.0
	controller.done = true
	controller.needs_reset = true


func _physics_process(_delta):
	if controller.needs_reset:
		position = Vector2.ZERO
		velocity = Vector2.ZERO
		controller.reset()
		return
	velocity = Vector2(wish * 600.0, 0.0)
	move_and_slide()
"""

AREA_SCENE = """[gd_scene format=3]
[ext_resource type="Script" path="res://area_runner.gd" id="1"]
[ext_resource type="Script" path="res://runner_controller.gd" id="2"]
[ext_resource type="Script" path="res://sync_seven.gd" id="3"]
[sub_resource type="RectangleShape2D" id="s"]
size = Vector2(20, 20)
[node name="Main" type="Node2D"]
[node name="Pit" type="Area2D" parent="."]
position = Vector2(200, 0)
[node name="Shape" type="CollisionShape2D" parent="Pit"]
shape = SubResource("s")
[node name="Runner" type="CharacterBody2D" parent="."]
script = ExtResource("1")
[node name="Shape" type="CollisionShape2D" parent="Runner"]
shape = SubResource("s")
[node name="Controller" type="Node2D" parent="Runner"]
script = ExtResource("2")
[node name="Sync" type="Node" parent="."]
script = ExtResource("3")
"""


def test_an_end_by_a_collision_is_seen_before_the_game_answers_it(games: Any, go: Go) -> None:
    project = games.project()
    (project / "area_runner.gd").write_text(AREA_RUNNER, encoding="utf-8")
    (project / "main.tscn").write_text(AREA_SCENE, encoding="utf-8")
    client = games.start(project)
    seen = []
    for _ in range(2):
        assert see(client.reset(seed=1))[PLACE] == 0.0
        frame = play_on(client, go(1.0))
        assert frame.final_exact.tolist() == [True]
        assert frame.reward.tolist() == [-1.0]
        assert 175.0 < see(frame)[PLACE] < 225.0  # still in the pit
        seen.append((see(frame).tolist(), frame.ticks))
    assert seen[0] == seen[1]


STRICT = """config_version=5

[application]

config/name="strict"
run/main_scene="res://main.tscn"

[debug]

gdscript/warnings/enable=true
gdscript/warnings/untyped_declaration=2
gdscript/warnings/inferred_declaration=2
gdscript/warnings/unsafe_property_access=2
gdscript/warnings/unsafe_method_access=2
gdscript/warnings/unsafe_call_argument=2
gdscript/warnings/unsafe_cast=2
gdscript/warnings/return_value_discarded=2
"""


def test_a_project_that_makes_errors_of_warnings_is_played(games: Any, go: Go) -> None:
    client = games.play(settings=STRICT)
    client.reset(seed=1)
    assert client.step(go(0.0)).ticks == 8
    assert client.script_error_count == 0


def test_an_autoload_of_the_game_finds_the_seed_set(games: Any) -> None:
    settings = (
        'config_version=5\n\n[application]\n\nrun/main_scene="res://main.tscn"\n\n'
        '[autoload]\n\nLuck="*res://luck.gd"\n'
    )
    project = games.project(settings=settings, name="lucky")
    (project / "luck.gd").write_text(
        'extends Node\nvar drawn := randi()\nfunc _init():\n\tprint("drawn ", drawn)\n',
        encoding="utf-8",
    )
    drawn = []
    for seed in (1, 1, 2):
        client = games.start(project, seed=seed)
        drawn += [line for line in client.output.splitlines() if line.startswith("drawn ")]
    assert len(drawn) == 3
    assert drawn[0] == drawn[1] != drawn[2]
