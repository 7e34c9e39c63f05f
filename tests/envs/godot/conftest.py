"""The engine that the tests run, and small godot-rl games: a runner in a corridor."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.godot.bridge_files import install_bridge
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine, find_engine

GAMES = Path(__file__).with_name("games")

SETTINGS = """config_version=5

[application]

config/name="corridor"
run/main_scene="res://main.tscn"
config/features=PackedStringArray("4.4")
"""

TRACER = """extends RefCounted
static var calls := PackedInt32Array()
static var truncated := false
static func hit(id: int) -> void:
	calls.append(id)
static func drain() -> PackedInt32Array:
	var taken := calls
	calls = PackedInt32Array()
	return taken
static func take_regularly() -> void:
	pass
"""

NO_TRACER = """extends RefCounted
static func hit(_id: int) -> void:
	pass
"""


@dataclass
class GameMaker:
    """Makes projects in a folder and starts them; closes what it started."""

    engine: Engine
    folder: Path
    started: list[GodotClient] = field(default_factory=list)

    def project(
        self,
        sync: str | None = "sync_seven",
        *,
        runners: int = 1,
        bridge: bool = True,
        trace: bool = False,
        name: str = "game",
        settings: str = SETTINGS,
        limit: int = 1000,
    ) -> Path:
        """Write a project.

        Args:
            sync: Script of its Sync node, ``None`` for a scene without one.
            runners: Number of agents.
            bridge: Whether to install the bridge.
            trace: Whether calls are recorded, as in an instrumented copy.
            name: Name of the folder.
            settings: Text of ``project.godot``.
            limit: The controllers' ``reset_after``.
        """
        project = self.folder / name
        project.mkdir(parents=True)
        for source in GAMES.glob("*.gd"):
            (project / source.name).write_bytes(source.read_bytes())
        (project / "project.godot").write_text(settings, encoding="utf-8")
        (project / "hit.gd").write_text(NO_TRACER, encoding="utf-8")
        (project / "main.tscn").write_text(_scene(sync, runners, limit), encoding="utf-8")
        if bridge:
            install_bridge(project)
        if trace:
            (project / "__lanista__" / "trace.gd").write_text(TRACER, encoding="utf-8")
            (project / "hit.gd").write_text(
                'extends RefCounted\nconst Trace := preload("res://__lanista__/trace.gd")\n'
                "static func hit(id: int) -> void:\n\tTrace.hit(id)\n",
                encoding="utf-8",
            )
        return project

    def start(self, project: Path, **arguments: Any) -> GodotClient:
        """Start a project and remember to close it."""
        defaults: dict[str, Any] = {"seed": 3, "timeout_s": 20.0, "start_timeout_s": 30.0}
        client = GodotClient.start(self.engine, project, **{**defaults, **arguments})
        self.started.append(client)
        return client

    def play(self, sync: str | None = "sync_seven", **arguments: Any) -> GodotClient:
        """Write a project and start it; see ``project`` for its arguments."""
        return self.start(self.project(sync, **arguments))


def _scene(sync: str | None, runners: int, limit: int) -> str:
    lines = [
        "[gd_scene format=3]",
        '[ext_resource type="Script" path="res://runner.gd" id="1"]',
        '[ext_resource type="Script" path="res://runner_controller.gd" id="2"]',
        '[ext_resource type="Script" path="res://main.gd" id="4"]',
    ]
    if sync is not None:
        lines.append(f'[ext_resource type="Script" path="res://{sync}.gd" id="3"]')
    lines += ['[node name="Main" type="Node2D"]', 'script = ExtResource("4")']
    for index in range(runners):
        lines += [
            f'[node name="Runner{index}" type="Node2D" parent="."]',
            'script = ExtResource("1")',
            f'[node name="Controller" type="Node2D" parent="Runner{index}"]',
            'script = ExtResource("2")',
            f"reset_after = {limit}",
        ]
    if sync is not None:
        lines += ['[node name="Sync" type="Node" parent="."]', 'script = ExtResource("3")']
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine found here; where there is none the tests fail with what to do."""
    return find_engine()


@pytest.fixture(scope="session")
def maker() -> type[GameMaker]:
    """What makes games, for fixtures that live longer than a test."""
    return GameMaker


@pytest.fixture
def games(engine: Engine, tmp_path: Path) -> Iterator[GameMaker]:
    """Makes games in a folder of this test."""
    maker = GameMaker(engine, tmp_path)
    yield maker
    for client in maker.started:
        client.close()


@pytest.fixture
def go() -> Callable[..., list[dict[str, Any]]]:
    """Makes the actions of a number of runners that all move alike."""

    def make(move: float, runners: int = 1) -> list[dict[str, Any]]:
        return [{"move": [move], "look": 1}] * runners

    return make
