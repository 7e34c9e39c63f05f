"""A recording on Ray actors that are killed in the middle holds what the serial one does."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor
from lanista.data.store import EpisodeStore
from lanista.data.verify import verify
from lanista.platform.executor import RayExecutor

RECIPE = CollectRecipe(
    game="crafter",
    episodes=14,
    testers=(
        RecipeTester("random", 1.0, {"repeat": 0.5}),
        RecipeTester("noisy", 1.0, {"epsilon": 0.2}),
    ),
    step_cap=60,
)


def working_actors() -> list[psutil.Process]:
    """The actors of this process's own Ray that are at a unit."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            name = " ".join(process.cmdline())
        except psutil.Error:  # one killed before, which nobody has reaped yet
            continue
        if name.startswith("ray::_Worker"):
            found.append(process)
    return found


@pytest.mark.slow
def test_killed_actors_lose_no_finished_episode_and_double_none(
    tmp_path: Path, ray_cluster: None
) -> None:
    serial = collect(
        tmp_path / "serial", RECIPE, SerialExecutor(), experts.make_tester, experts.tester_hash
    )
    killed: list[int] = []
    seen: list[str] = []

    def kill_now_and_then(row: Mapping[str, Any]) -> None:
        seen.append(row["episode_id"])
        if len(seen) in (3, 6, 9):
            victim = working_actors()[0].pid
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    parallel = collect(
        tmp_path / "ray",
        RECIPE,
        RayExecutor(2, max_tries=5),
        experts.make_tester,
        experts.tester_hash,
        kill_now_and_then,
        games_per_worker=2,
    )
    assert len(killed) == 3
    assert parallel.restarted >= 1
    assert len(seen) == len(set(seen)) == RECIPE.episodes
    assert parallel.failures == []
    assert parallel.manifest_sha256 == serial.manifest_sha256
    assert verify(tmp_path / "ray").ok
    one, other = (EpisodeStore.open(tmp_path / name) for name in ("serial", "ray"))
    assert one.rows() == other.rows()
