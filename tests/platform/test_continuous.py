"""A game whose actions are numbers, through the whole platform: Ray, MLflow, report, commands."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lanista.platform.config import parse_document
from lanista.platform.experiment import make_sweep
from lanista.platform.root import Root
from lanista.platform.sweep import run_sweep
from lanista.platform.tracking import METRICS, Tracker

SWEEP = """
name: meadow
data:
  path: datasets/meadow
  collect:
    game: "meadow:GAME"
    episodes: 40
    testers: [{name: walker, weight: 3, parameters: {stop_steps: [9, 13]}}, {name: random}]
agents:
  GC-BC Simple: {algorithm: gcbc, <<: &small {dimension: 16, vector_hidden: 16, mlp_hidden: [16]}}
  GC-DT CA2: {algorithm: gcdt, call_stack: mhsa, context: 3, <<: *small}
train: {steps: 20, batch_size: 8, metrics_every: 5, validate_every: 10, checkpoint_every: 10}
evaluate: {goals: {subset: 3}, episodes: 2}
scheduling: {workers: 2, max_failures: 0}
"""


def command(root: Root, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "lanista.platform.cli", *arguments, "--json"],
        cwd=root.path,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "LANISTA_ROOT": str(root.path)},
    )
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.mark.usefixtures("ray_cluster")
def test_a_sweep_over_numbers_and_the_commands_on_what_it_leaves(root: Root) -> None:
    result = run_sweep(make_sweep(parse_document(SWEEP, "meadow.yaml")), root)
    assert (result["finished"], result["failed"]) == (2, 0), result["failures"]
    assert [row["agent"] for row in result["table"]] == ["GC-BC Simple", "GC-DT CA2"]
    page = Path(result["report"]).read_text(encoding="utf-8")
    assert "meadow.rules:Meadow" in page

    # Nothing was tried out from saved states: there are no single actions to try.
    manifest = json.loads((root.datasets / "meadow" / "manifest.json").read_text())
    assert manifest["goals"].keys() == {"recorded_minus_always"}

    trials = [run for run in Tracker(root, "meadow").runs() if run.data.tags["lanista.trial"]]
    for run in trials:
        assert {"train/loss", "validation/loss", "evaluate/success_rate"} <= run.data.metrics.keys()
        assert not [name for name in run.data.metrics if name.endswith("accuracy")]
        assert run.data.metrics.keys() <= set(METRICS)

    # The same player, judged by hand: the same goals in the same worlds, without Ray.
    trial = root.runs / "meadow" / "trials" / "gc-dt-ca2-seed-0"
    judged = json.loads((trial / "evaluation.json").read_text())
    goals = ",".join(judged["protocol"]["goals"])
    found = command(
        root,
        *("evaluate", str(trial), "--goals", goals, "--episodes", "2", "--workers", "0"),
        *("--out", str(root.runs / "byhand")),
    )
    assert found["player"] == judged["player"]
    assert found["success_rate"] == judged["summary"]["success_rate"]
    assert found["episode_return"] == judged["summary"]["episode_return"]

    path = next((root.runs / "byhand" / "paths").glob("*.json"))
    assert command(root, "replay", str(path))["reproduced"]


@pytest.mark.slow
def test_one_agent_is_trained_from_a_file(root: Root) -> None:
    collected = command(
        root,
        *("collect", "meadow:GAME", "--out", "datasets/m", "--episodes", "24", "--workers", "0"),
    )
    assert (collected["episodes"], collected["findings"]) == (24, [])
    file = root.path / "train.yaml"
    file.write_text(
        "name: one\ndata: datasets/m\n"
        "agent: {algorithm: gcdt, context: 3, dimension: 16, vector_hidden: 16}\n"
        "train: {steps: 6, batch_size: 4, metrics_every: 2, validate_every: 3}\n"
    )
    trained = command(root, "train", str(file))
    assert trained["updates"] == 6
    described = json.loads((Path(trained["checkpoint"]) / "checkpoint.json").read_text())
    assert described["spaces"]["action_low"] == [-1.0, -1.0]
    assert described["spaces"]["actions"] == 0
    traced = command(root, "trace", "meadow:GAME", "--steps", "30", "--no-overhead")
    assert traced["steps"] == 30
