"""The project as a person starts it: no client, a keyboard, a camera and words on the screen."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.godot.engine import Engine, private_environment
from lanista.envs.godot.robot import PROJECT

PROBE = """extends Node

var ticks := 0


func _press(key: Key, pressed: bool) -> void:
	var event := InputEventKey.new()
	event.physical_keycode = key
	event.pressed = pressed
	Input.parse_input_event(event)


func _physics_process(_delta: float) -> void:
	ticks += 1
	if ticks == 10:
		_press(KEYS_HELD, true)
	if ticks == TICKS:
		var arena: Node = get_tree().current_scene.get_child(1)
		var display: Node = get_tree().current_scene.get_child(2)
		print("PROBE ", JSON.stringify({
			"x": arena.robot.spot.x, "z": arena.robot.spot.z, "level": arena.level.number,
			"tick": arena.controller.n_steps, "text": display._label.text,
			"camera": get_viewport().get_camera_3d() == display._camera,
		}))
		get_tree().quit()
"""


def by_hand(engine: Engine, folder: Path, key: str, ticks: int, *options: str) -> dict[str, Any]:
    """Hold a key for some ticks; return where that led."""
    copy = folder / "project"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns(".godot"))
    (copy / "probe.gd").write_text(PROBE.replace("KEYS_HELD", key).replace("TICKS", str(ticks)))
    with (copy / "project.godot").open("a") as settings:
        settings.write('\n[autoload]\n\nProbe="*res://probe.gd"\n')
    done = subprocess.run(
        [*engine.command, "--headless", "--fixed-fps", "30", "--path", str(copy), *options],
        capture_output=True,
        text=True,
        timeout=60,
        env=private_environment(folder),
        check=True,
    )
    assert "ERROR" not in done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("PROBE ")]
    found: dict[str, Any] = json.loads(line.removeprefix("PROBE "))
    return found


@pytest.mark.parametrize(("key", "way"), [("KEY_W", (0, -1)), ("KEY_RIGHT", (1, 0))])
def test_keys_move_the_robot(
    engine: Engine, tmp_path: Path, key: str, way: tuple[int, int]
) -> None:
    still = by_hand(engine, tmp_path / "still", "KEY_Z", 25, "--level=6", "--env_seed=3")
    moved = by_hand(engine, tmp_path / "moved", key, 25, "--level=6", "--env_seed=3")
    assert (still["x"], still["z"]) != (moved["x"], moved["z"])
    assert moved["x"] - still["x"] == pytest.approx(way[0] * (moved["x"] - still["x"]))
    assert (moved["x"] - still["x"]) * way[0] + (moved["z"] - still["z"]) * way[1] > 0.5
    assert moved["text"].startswith("Level 6 of 8    coins left: 9")
    assert moved["camera"]


def test_a_fall_begins_the_same_level_again(engine: Engine, tmp_path: Path) -> None:
    found = by_hand(engine, tmp_path, "KEY_A", 120, "--level=3", "--env_seed=3")
    assert found["level"] == 3
    assert found["tick"] < 100
    assert "You fell" in found["text"]
