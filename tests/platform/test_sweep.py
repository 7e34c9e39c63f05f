"""A sweep in a tiny game: recorded, trained, judged, reported; then refused, repaired, gone on."""

import json
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.errors import InputError, RunError
from lanista.platform.cluster import available_cpus
from lanista.platform.config import parse_document
from lanista.platform.experiment import SweepFile, make_sweep
from lanista.platform.root import Root
from lanista.platform.run_folder import RunFolder, append_curve, cut_curve, read_curve
from lanista.platform.sweep import resume_sweep, run_sweep
from lanista.platform.tracking import Tracker
from lanista.platform.training import read_trained

SWEEP = """
name: tiny
data:
  path: datasets/tiny
  collect:
    game: "tiny_game:GAME"
    episodes: 8
    step_cap: 20
    testers: [{name: random}]
agents:
  Simple: &small
    {algorithm: gcbc, dimension: 8, image_channels: [4], image_kernels: [3], image_strides: [2],
     state_dimension: 8, mlp_hidden: [8], call_stack_heads: 1}
  CA2: {<<: *small, call_stack: emb}
train: {steps: 6, batch_size: 4, metrics_every: 2, validate_every: 3, checkpoint_every: 2}
evaluate: {goals: {subset: 2}, episodes: 2, step_cap: 15}
scheduling: {workers: 2, max_failures: 0}
"""


def sweep(*overrides: str) -> SweepFile:
    return make_sweep(parse_document(SWEEP, "tiny.yaml", overrides=overrides))


def runs(root: Root, name: str) -> dict[str, Any]:
    return {run.data.tags["lanista.trial"]: run for run in Tracker(root, name).runs()}


@pytest.mark.usefixtures("ray_cluster")
def test_a_sweep_ends_with_a_table_a_report_and_finished_runs(root: Root) -> None:
    result = run_sweep(sweep(), root)
    assert (result["trials"], result["finished"], result["failed"]) == (2, 2, 0)
    assert [row["agent"] for row in result["table"]] == ["Simple", "CA2"]
    for row in result["table"]:
        assert 0 <= row["success_rate"]["value"] <= 1
        coverage = row["function_coverage"]
        assert 0 < coverage["mean_per_world"] <= coverage["value"] <= coverage["functions"]
        low, high = coverage["low"], coverage["high"]
        # Where both worlds called equally many functions there is no interval.
        assert low is high is None or low <= coverage["mean_per_world"] <= high
    assert "<html" in Path(result["report"]).read_text(encoding="utf-8")
    manifest = json.loads((root.datasets / "tiny" / "manifest.json").read_text())
    assert manifest["goals"].keys() == {"recorded_minus_always", "action_dependent"}

    found = runs(root, "tiny")
    assert {name: run.info.status for name, run in found.items()} == {
        "": "FINISHED",
        "simple-seed-0": "FINISHED",
        "ca2-seed-0": "FINISHED",
    }
    parent, trial = found[""], found["ca2-seed-0"]
    assert result["parent_run_id"] == parent.info.run_id
    assert trial.data.tags["mlflow.parentRunId"] == parent.info.run_id
    config = json.loads((root.runs / "tiny" / "config.json").read_text())
    for run in (parent, trial):
        for name in ("catalogue_sha256", "data_manifest_sha256"):
            assert run.data.tags[name] == config["hashes"][name]
        assert run.data.tags["git.commit"] == config["git"]["commit"]
    assert trial.data.params["agent/call_stack"] == "emb"
    assert trial.data.params["sweep/evaluate/episodes"] == "2"
    assert {"train/loss", "evaluate/success_rate"} <= trial.data.metrics.keys()
    assert [item.dataset.name for item in trial.inputs.dataset_inputs] == ["tiny"]
    client = Tracker(root, "tiny")._client
    version = client.get_model_version_by_alias("tiny.ca2", "best")
    assert version.run_id == trial.info.run_id
    assert {item.path for item in client.list_artifacts(trial.info.run_id)} >= {
        "checkpoint",
        "config.json",
    }

    again = run_sweep(sweep("scheduling.workers=1"), root)
    assert again == result
    with pytest.raises(InputError, match=r"another configuration \(train.steps\)"):
        run_sweep(sweep("train.steps=7"), root)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_a_trial_that_fails_is_named_and_the_others_finish(root: Root) -> None:
    broken = "agents.CA2.image_kernels=[9]"
    result = run_sweep(sweep("name=broken", broken), root)
    assert (result["finished"], result["failed"]) == (1, 1)
    [failure] = result["failures"]
    assert failure["trial"] == "ca2-seed-0"
    assert "\n" not in failure["error"]
    assert failure["error"]
    statuses = {name: run.info.status for name, run in runs(root, "broken").items()}
    assert statuses == {"": "FINISHED", "simple-seed-0": "FINISHED", "ca2-seed-0": "FAILED"}

    # What is missing is tried again under the same name, what is there stays.
    judged = root.runs / "broken" / "trials" / "simple-seed-0" / "evaluation.json"
    before = judged.stat().st_mtime_ns
    again = resume_sweep(root, "broken", workers=1)
    assert again["failed"] == 1
    assert judged.stat().st_mtime_ns == before
    assert len(runs(root, "broken")) == 3


def test_names_are_checked_before_anything_is_made(root: Root) -> None:
    with pytest.raises(InputError, match="There is no run named 'none'"):
        resume_sweep(root, "none")
    for name in ("../up", "", "a b", "-x"):
        with pytest.raises(InputError, match="must be letters"):
            make_sweep(parse_document(SWEEP, "tiny.yaml"), name)


def test_a_run_belongs_to_one_process_at_a_time(root: Root) -> None:
    folder = RunFolder(root, "tiny")
    with (
        folder.locked(),
        pytest.raises(InputError, match="written by another process"),
        RunFolder(root, "tiny").locked(),
    ):
        pass
    with folder.locked():
        assert folder.result() is None


def test_curves_are_cut_to_where_training_goes_on(tmp_path: Path) -> None:
    assert read_curve(tmp_path) == []
    assert cut_curve(tmp_path, 5) == {}
    for update in (2, 4, 6):
        append_curve(tmp_path, update, {"train/loss": update / 10})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 8, "tr')
    assert cut_curve(tmp_path, 4) == {"update": 4, "train/loss": 0.4}
    assert [point["update"] for point in read_curve(tmp_path)] == [2, 4]


@pytest.mark.parametrize("name", ["result.json", "trials/simple-seed-0/trained.json"])
def test_a_file_that_lacks_what_it_should_hold_is_named(root: Root, name: str) -> None:
    folder = RunFolder(root, "tiny")
    folder.begin(sweep())
    path = folder.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    with pytest.raises(InputError, match=r"is corrupt: it lacks .*; delete it") as refused:
        folder.result() if name == "result.json" else read_trained(path.parent)
    assert str(path) in str(refused.value)


def test_a_curve_that_is_corrupt_in_the_middle_is_refused(tmp_path: Path) -> None:
    for update in (1, 2):
        append_curve(tmp_path, update, {"train/loss": 1.0})
    file = tmp_path / "metrics.jsonl"
    whole = file.read_text()
    file.write_text(whole + '{"update": 3, "train/lo')
    assert [point["update"] for point in read_curve(tmp_path)] == [1, 2]
    file.write_text("nonsense\n" + whole)
    with pytest.raises(InputError, match="corrupt in line 1"):
        read_curve(tmp_path)


def test_a_file_that_was_refused_may_be_mended_under_its_name(root: Root) -> None:
    for override, expected in (
        ("data.collect.game=nogame", "No game is named 'nogame'"),
        ("data.collect.testers.0.name=nobody", "no tester named 'nobody'"),
    ):
        with pytest.raises(InputError, match=expected):
            run_sweep(sweep(override), root)
    folder = RunFolder(root, "tiny")
    assert folder.begin(sweep())["file"]["data"]["collect"]["game"] == "tiny_game:GAME"
    folder.add_hashes({"data_manifest_sha256": "0"})
    with pytest.raises(InputError, match=r"another configuration \(data.collect.game\)"):
        run_sweep(sweep("data.collect.game=nogame"), root)


def test_more_workers_than_cpus_start_a_local_ray_of_that_size(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def session(*, cpus: int) -> None:
        asked.append(cpus)
        raise RunError("far enough")

    monkeypatch.setattr("lanista.platform.sweep.ray_session", session)
    for workers in (1, 64):
        with pytest.raises(RunError, match="far enough"):
            run_sweep(sweep(f"scheduling.workers={workers}"), root)
    assert asked == [available_cpus(), 64]


def test_curves_leave_out_what_json_cannot_hold(root: Root) -> None:
    folder, trial = RunFolder(root, "tiny"), sweep().trials()[0]
    append_curve(folder.trial(trial), 1, {"train/loss": 2.0, "validation/loss": float("inf")})
    append_curve(folder.trial(trial), 2, {"train/loss": 1.0, "validation/loss": 3.0})
    folder.write_curves(trial)
    written = json.loads((folder.trial(trial) / "curves.json").read_text())
    assert written == {"train/loss": [[1, 2.0], [2, 1.0]], "validation/loss": [[2, 3.0]]}
