"""Training one agent as a run: its result, its run in MLflow, what is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor
from lanista.envs.errors import InputError
from lanista.platform.config import parse_document
from lanista.platform.experiment import TrainFile, read_training
from lanista.platform.root import Root
from lanista.platform.run_folder import read_curve
from lanista.platform.tracking import METRICS, Tracker
from lanista.platform.train_run import run_training

TRAIN = """
name: one
data: datasets/tiny
agent: {algorithm: gcbc, call_stack: emb, dimension: 8, image_channels: [4], image_kernels: [3],
        image_strides: [2], state_dimension: 8, mlp_hidden: [8]}
train: {steps: 6, batch_size: 4, metrics_every: 2, validate_every: 3, checkpoint_every: 2}
"""


def record(root: Root, episodes: int) -> None:
    recipe = CollectRecipe("tiny_game:GAME", episodes, (RecipeTester("random"),), step_cap=20)
    folder = root.datasets / "tiny"
    collect(folder, recipe, SerialExecutor(), experts.make_tester, experts.tester_hash)


@pytest.fixture
def recorded(root: Root) -> Root:
    record(root, 8)
    return root


def file(root: Root, *overrides: str) -> TrainFile:
    path = root.path / "one.yaml"
    path.write_text(TRAIN)
    return read_training(path, overrides=overrides)


def test_a_training_ends_with_a_checkpoint_and_a_finished_run(recorded: Root) -> None:
    result = run_training(file(recorded), recorded)
    assert result["updates"] == 6
    assert result["loss"] > 0
    assert (Path(result["checkpoint"]) / "checkpoint.json").exists()
    curve = read_curve(recorded.runs / "one")
    assert [point["update"] for point in curve if "train/loss" in point] == [2, 4, 6]
    # What learners report is what the glossary explains.
    assert {name for point in curve for name in point} - {"update"} <= set(METRICS)

    tracker = Tracker(recorded, "one")
    [run] = tracker.runs()
    assert (run.info.run_id, run.info.status) == (result["run_id"], "FINISHED")
    assert run.data.metrics["train/loss"] == pytest.approx(result["loss"])
    assert run.data.params["agent/call_stack"] == "emb"
    assert tracker._client.get_model_version_by_alias("one", "best").run_id == run.info.run_id

    assert run_training(file(recorded), recorded) == result
    with pytest.raises(InputError, match=r"another configuration \(train.batch_size\)"):
        run_training(file(recorded, "train.batch_size=5"), recorded)


def test_an_interrupted_training_goes_on_in_the_same_run(
    recorded: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lanista.platform.training as training

    real = training.append_curve

    def interrupt(folder: Path, update: int, metrics: dict[str, float]) -> None:
        if update == 6:
            raise KeyboardInterrupt
        real(folder, update, metrics)

    monkeypatch.setattr(training, "append_curve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_training(file(recorded), recorded)
    [killed] = Tracker(recorded, "one").runs()
    assert killed.info.status == "KILLED"
    monkeypatch.setattr(training, "append_curve", real)
    result = run_training(file(recorded), recorded)
    assert (result["run_id"], result["resumed_from"]) == (killed.info.run_id, 4)
    [run] = Tracker(recorded, "one").runs()
    assert run.info.status == "FINISHED"


def test_data_that_is_missing_or_changed_is_refused(recorded: Root) -> None:
    with pytest.raises(InputError, match="no episode store"):
        run_training(file(recorded, "name=none", "data=datasets/none"), recorded)
    run_training(file(recorded), recorded)
    (recorded.runs / "one" / "result.json").unlink()
    shutil.rmtree(recorded.datasets / "tiny")
    record(recorded, 5)
    with pytest.raises(InputError, match="began with another data_manifest_sha256"):
        run_training(file(recorded), recorded)


def test_the_command_prints_one_object_and_refuses_in_lines(recorded: Root) -> None:
    file(recorded)
    command = [sys.executable, "-m", "lanista.platform.cli", "train", "one.yaml"]

    def run(*more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, *more], cwd=recorded.path, capture_output=True, text=True, timeout=120
        )

    done = run("--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {"checkpoint", "updates", "loss", "run_id"} <= result.keys()
    assert done.stderr.startswith("Tracking: sqlite:///")

    refused = run("--set", "train.steps=0", "--set", "agent.colour=red", "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    lines = refused.stderr.strip().splitlines()
    assert lines
    assert all(line.startswith("error: one.yaml") for line in lines)


def test_an_agent_that_cannot_be_made_leaves_a_failed_run(recorded: Root) -> None:
    described = file(recorded, "agent.image_kernels=[9]", "name=broken")
    with pytest.raises(InputError):
        run_training(described, recorded)
    [run] = Tracker(recorded, "broken").runs()
    assert run.info.status == "FAILED"


def test_a_document_without_data_says_so() -> None:
    from lanista.platform.config import make

    with pytest.raises(InputError) as caught:
        make(TrainFile, parse_document("name: x\nagent: {}\n", "x.yaml"))
    assert caught.value.problems == ("x.yaml: data: it is missing.",)
