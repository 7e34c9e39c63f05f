"""A sweep's driver is killed or told to stop; what resumes it goes on, and doubles nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from lanista.platform.root import Root
from lanista.platform.run_folder import read_curve
from lanista.platform.tracking import Tracker

SWEEP = {
    "name": "killed",
    "data": {
        "path": "datasets/tiny",
        "collect": {
            "game": "tiny_game:GAME",
            "episodes": 8,
            "step_cap": 20,
            "testers": [{"name": "random"}],
        },
    },
    "agents": {
        "Simple": {
            "algorithm": "gcbc",
            "dimension": 8,
            "image_channels": [4],
            "image_kernels": [3],
            "image_strides": [2],
            "state_dimension": 8,
            "mlp_hidden": [8],
        }
    },
    "seeds": [0, 1],
    "train": {"steps": 6000, "batch_size": 4, "metrics_every": 50, "checkpoint_every": 100},
    "evaluate": {"goals": {"subset": 2}, "episodes": 2, "step_cap": 15},
}


def lanista(*arguments: str, root: Root) -> list[str]:
    return [sys.executable, "-m", "lanista.platform.cli", *arguments, "--root", str(root.path)]


def wait_for_checkpoints(root: Root, process: "subprocess.Popen[Any]") -> None:
    deadline = time.monotonic() + 240
    trials = root.runs / "killed" / "trials"
    while time.monotonic() < deadline:
        begun = [folder for folder in trials.glob("*") if list(folder.glob("checkpoints/check*"))]
        if len(begun) == 2:
            return
        assert process.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.2)
    raise AssertionError("no checkpoints within four minutes")


@pytest.mark.slow
def test_a_killed_sweep_goes_on_from_its_checkpoints(root: Root, tmp_path: Path) -> None:
    file = tmp_path / "killed.yaml"
    file.write_text(yaml.safe_dump(SWEEP))
    first = subprocess.Popen(
        lanista("sweep", str(file), root=root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_checkpoints(root, first)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    before = Tracker(root, "killed").runs()
    assert {run.info.status for run in before} == {"RUNNING"}
    assert len(before) == 3
    trials = sorted((root.runs / "killed" / "trials").glob("*"))
    reached = [read_curve(trial)[-1]["update"] for trial in trials]
    # The workers of the killed driver end with it; until then they may still write.
    time.sleep(10)

    done = subprocess.run(
        lanista("resume", "killed", "--json", root=root),
        stdout=subprocess.PIPE,
        check=True,
        timeout=400,
    )
    result = json.loads(done.stdout)
    assert (result["finished"], result["failed"]) == (2, 0)
    after = Tracker(root, "killed")
    assert {run.info.run_id for run in after.runs()} == {run.info.run_id for run in before}
    assert {run.info.status for run in after.runs()} == {"FINISHED"}
    for trial, update in zip(trials, reached, strict=True):
        updates = [point["update"] for point in read_curve(trial)]
        assert updates == list(range(50, 6001, 50))
        assert update > 0
        # Its clock goes on where it stood: nothing was trained again from zero.
        log = json.loads((trial / "trained.json").read_text())
        assert log["resumed_from"] >= 100
    for run in after.runs():
        if run.data.tags["lanista.trial"]:
            history = after._client.get_metric_history(run.info.run_id, "train/loss")
            steps = [point.step for point in history]
            assert len(steps) == len(set(steps))


@pytest.mark.slow
def test_a_sweep_that_is_told_to_stop_says_so_and_leaves_no_run_open(
    root: Root, tmp_path: Path
) -> None:
    file = tmp_path / "killed.yaml"
    file.write_text(yaml.safe_dump(SWEEP))
    process = subprocess.Popen(
        lanista("sweep", str(file), root=root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for_checkpoints(root, process)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert out == ""
    lines = errors.strip().splitlines()
    assert lines[-1].startswith("error: Interrupted; what was finished is kept")
    assert "SIGTERM" not in errors
    assert "Traceback" not in errors
    runs = Tracker(root, "killed").runs()
    assert len(runs) == 3
    assert {run.info.status for run in runs} == {"KILLED"}
