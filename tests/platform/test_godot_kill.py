"""Engines of a recording are killed at random: nothing is lost, nothing is there twice."""

import importlib.util
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor
from lanista.data.store import EpisodeStore
from lanista.data.verify import verify
from lanista.envs.game import load_game
from lanista.envs.godot.engine import find_engine
from lanista.platform.executor import RayExecutor

MAKER = Path(__file__).parents[1] / "envs" / "godot" / "conftest.py"


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corridor game whose plays take a while: its door is far for who walks at random."""
    spec = importlib.util.spec_from_file_location("godot_games", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["godot_games"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.GameMaker(find_engine(), tmp_path_factory.mktemp("killed"))
    project: Path = made.project("sync_seven", bridge=False, limit=100_000)
    runner = project / "runner.gd"
    runner.write_text(runner.read_text().replace("delta * 6.0", "delta * 0.6"))
    load_game(str(project)).make().close()
    return project


def recipe(hall: Path, episodes: int) -> CollectRecipe:
    testers = (RecipeTester("random", 1.0, {"repeat": 0.5}),)
    return CollectRecipe(game=str(hall), episodes=episodes, testers=testers, step_cap=250)


def engines(connected: bool = True) -> list[psutil.Process]:
    """This process's and its workers' engines, those that are being played alone."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            arguments = process.cmdline()
            if not any(item.startswith("--port=") for item in arguments):
                continue
            links = process.net_connections("tcp")
        except psutil.Error:
            continue
        if not connected or any(link.status == psutil.CONN_ESTABLISHED for link in links):
            found.append(process)
    return found


class Killer:
    """Kills a random engine when asked, at most ``limit`` of them."""

    def __init__(self, hall_copy: str, limit: int) -> None:
        self.killed: list[int] = []
        self.finished: list[str] = []
        self._name, self._limit = hall_copy, limit
        self._rng = random.Random(0)

    def now_and_then(self, row: Mapping[str, Any]) -> None:
        """Kill an engine for each twelve plays that finish, however fast the machine is."""
        self.finished.append(row["episode_id"])
        if len(self.finished) % 12 == 0 and len(self.killed) < self._limit:
            self.kill_one()

    def kill_one(self) -> None:
        """Wait for a moment in the middle of plays and for an engine that is being played."""
        time.sleep(self._rng.uniform(0.0, 0.3))
        deadline = time.monotonic() + 60
        while not (victims := [item for item in engines() if self.is_ours(item)]):
            assert time.monotonic() < deadline, "nobody plays"
            time.sleep(0.05)
        victim = self._rng.choice(victims)
        self.killed.append(victim.pid)
        os.kill(victim.pid, signal.SIGKILL)

    def is_ours(self, process: psutil.Process) -> bool:
        try:
            return any(self._name in part for part in process.cmdline())
        except psutil.Error:
            return False


def recorded(
    path: Path,
    what: CollectRecipe,
    executor: Any,
    on_episode: Callable[[Mapping[str, Any]], None] | None = None,
) -> Any:
    return collect(path, what, executor, experts.make_tester, experts.tester_hash, on_episode)


def copy_name(hall: Path) -> str:
    # The copy is named after the project's folder, which the fixture names after this module.
    return f"/godot/copies/{hall.name}-"


def test_a_killed_engine_leaves_no_mark_on_a_recording(tmp_path: Path, hall: Path) -> None:
    what = recipe(hall, 12)
    whole = recorded(tmp_path / "whole", what, SerialExecutor())
    killer = Killer(copy_name(hall), 2)
    over = threading.Event()

    def kill_twice() -> None:
        while len(killer.killed) < 2 and not over.is_set():
            killer.kill_one()

    # One process plays and tells of plays only between them, so somebody else has to kill.
    thread = threading.Thread(target=kill_twice, daemon=True)
    thread.start()
    try:
        found = recorded(tmp_path / "killed", what, SerialExecutor())
    finally:
        over.set()
        thread.join()
    assert len(killer.killed) == 2
    assert found.findings == []
    assert found.manifest_sha256 == whole.manifest_sha256


@pytest.mark.slow
def test_fifty_killed_engines_lose_and_double_nothing(
    tmp_path: Path, hall: Path, ray_cluster: None
) -> None:
    what = recipe(hall, 640)
    whole = recorded(tmp_path / "whole", what, SerialExecutor())
    killer = Killer(copy_name(hall), 50)
    executor = RayExecutor(2, max_tries=5)
    found = recorded(tmp_path / "killed", what, executor, killer.now_and_then)
    assert len(killer.killed) == 50
    assert len(killer.finished) == len(set(killer.finished)) == 640
    assert (found.episodes, found.findings, found.failures) == (640, [], [])
    assert found.manifest_sha256 == whole.manifest_sha256
    assert verify(tmp_path / "killed").ok
    one, other = (EpisodeStore.open(tmp_path / name) for name in ("whole", "killed"))
    assert one.rows() == other.rows()
    # No engine outlives the recording that started it.
    deadline = time.monotonic() + 20
    while [item for item in engines(connected=False) if killer.is_ours(item)]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
