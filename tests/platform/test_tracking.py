"""MLflow runs: adopted after a kill, named from a fixed list, whole on disk."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lanista.envs.errors import InputError
from lanista.platform.root import Root
from lanista.platform.tracking import METRICS, Tracker, finishing, flatten, shorten

REPOSITORY = Path(__file__).resolve().parents[2]


def statuses(tracker: Tracker) -> dict[str, str]:
    return {run.data.tags["lanista.trial"]: run.info.status for run in tracker.runs()}


def test_metric_names_are_few_and_all_in_the_glossary() -> None:
    glossary = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `([a-z_]+/[a-z_]+)` \|", glossary, re.MULTILINE)
    assert len(METRICS) == len(set(METRICS)) <= 40
    assert sorted(explained) == sorted(METRICS)


def test_a_run_is_adopted_after_its_driver_died(root: Root) -> None:
    before = Tracker(root, "s")
    parent = before.open("sweep")
    trial = before.open("trial", "t0", parent=parent.run_id)
    trial.log_params({"agent": {"context": 10}})
    for step in (1, 2, 3):
        trial.log_metrics({"train/loss": 1.0 / step}, step)

    after = Tracker(root, "s")
    assert statuses(after) == {"": "RUNNING", "t0": "RUNNING"}
    assert after.reap() == 2
    assert statuses(after) == {"": "KILLED", "t0": "KILLED"}
    with finishing(after.open("sweep")) as again:
        assert (again.run_id, again.adopted) == (parent.run_id, True)
        with finishing(after.open("trial", "t0", parent=again.run_id)) as child:
            assert child.run_id == trial.run_id
            child.log_params({"agent": {"context": 10}, "seed": 1})
            for step in (2, 3, 4):
                child.log_metrics({"train/loss": 1.0 / step}, step)
    assert statuses(after) == {"": "FINISHED", "t0": "FINISHED"}
    history = after._client.get_metric_history(trial.run_id, "train/loss")
    assert sorted(point.step for point in history) == [1, 2, 3, 4]
    run = after._client.get_run(trial.run_id)
    assert run.data.params == {"agent/context": "10", "seed": "1"}
    assert run.data.tags["mlflow.parentRunId"] == parent.run_id


def test_totals_of_a_run_that_goes_on_take_the_place_of_the_earlier_ones(root: Root) -> None:
    for failed in (1.0, 0.0):
        log = Tracker(root, "s").open("sweep")
        log.log_metrics({"collect/seconds": 5.0 * failed})
        log.log_metrics({"sweep/failed": failed}, anew=True)
        time.sleep(0.01)
    metrics = Tracker(root, "s")._client.get_run(log.run_id).data.metrics
    assert metrics == {"collect/seconds": 5.0, "sweep/failed": 0.0}


def test_other_names_and_numbers_that_are_none_are_dropped(root: Root) -> None:
    tracker = Tracker(root, "s")
    log = tracker.open("trial", "t0")
    log.log_metrics({"train/loss": float("nan"), "config/lr": 1.0, "train/accuracy": 0.5}, 1)
    assert tracker._client.get_run(log.run_id).data.metrics == {"train/accuracy": 0.5}


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError, "FAILED"), (KeyboardInterrupt, "KILLED")]
)
def test_a_run_ends_as_its_work_ends(root: Root, error: type[BaseException], status: str) -> None:
    tracker = Tracker(root, "s")
    with pytest.raises(error), finishing(tracker.open("trial", "t0")):
        raise error
    assert statuses(tracker) == {"t0": status}


def test_a_checkpoint_becomes_a_model_version_with_an_alias(root: Root, tmp_path: Path) -> None:
    import mlflow

    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "weights.txt").write_text("w")
    tracker = Tracker(root, "s")
    with finishing(tracker.open("trial", "t0")) as log:
        log.log_folder(folder, "checkpoint")
        versions = [tracker.register(log.run_id, "s.agent", "checkpoint", "best") for _ in "ab"]
    assert versions == ["1", "1"]
    mlflow.set_tracking_uri(tracker.uri)
    place = mlflow.artifacts.download_artifacts("models:/s.agent@best")
    assert (Path(place) / "weights.txt").read_text() == "w"


def test_a_deleted_experiment_is_restored(root: Root) -> None:
    tracker = Tracker(root, "s")
    tracker._client.delete_experiment(tracker.experiment_id)
    assert Tracker(root, "s").experiment_id == tracker.experiment_id


def test_params_are_flat_and_short_enough() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": [1, 2]}}, "e": {}}) == {
        "a/b": 1,
        "a/c/d": [1, 2],
        "e": {},
    }
    assert len(shorten("x" * 7000)) == 6000
    assert shorten("x" * 7000).endswith("…")
    assert shorten(True) == "True"


@pytest.fixture
def free_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_server_that_does_not_answer_is_refused_quickly(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://someone:secret@127.0.0.1:{free_port}")
    began = time.monotonic()
    with pytest.raises(InputError, match="No MLflow server answers") as caught:
        Tracker(Root(tmp_path), "s")
    assert time.monotonic() - began < 10
    assert "secret" not in str(caught.value)


def spoil(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)


@pytest.mark.parametrize(
    ("damage", "says"), [(spoil, "not a database"), (Path.mkdir, "unable to open database file")]
)
def test_a_database_that_is_none_is_refused_quickly(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
    says: str,
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    root = Root(tmp_path)
    root.runs.mkdir()
    damage(root.runs / "mlflow.db")
    began = time.monotonic()
    with pytest.raises(InputError, match=f"cannot be used: .*{says}"):
        Tracker(root, "s")
    assert time.monotonic() - began < 10


def test_a_database_that_cannot_be_written_is_refused(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = root.runs / "mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///file:{database}?mode=ro&uri=true")
    with pytest.raises(InputError, match="cannot be used: attempt to write a readonly database"):
        Tracker(root, "s")
