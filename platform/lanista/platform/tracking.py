"""MLflow: one parent run a sweep, one child run a trial, adopted again after a kill.

Only the driver writes, in batches. The metric names are few and fixed; ``docs/metrics.md`` says
what each of them means.
"""

import json
import math
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from lanista.platform.root import Root
from lanista.platform.tracking_store import (
    answering,
    artifacts_place,
    check_reachable,
    quiet,
    shown_uri,
)

METRICS = (
    "collect/episodes",
    "collect/steps",
    "collect/seconds",
    "collect/restarted",
    "collect/findings",
    "train/loss",
    "train/accuracy",
    "train/learning_rate",
    "train/gradient_norm",
    "train/updates",
    "train/samples_per_second",
    "train/seconds",
    "validation/loss",
    "validation/accuracy",
    "evaluate/success_rate",
    "evaluate/success_rate_low",
    "evaluate/success_rate_high",
    "evaluate/episode_return",
    "evaluate/episode_return_low",
    "evaluate/episode_return_high",
    "evaluate/function_coverage",
    "evaluate/function_coverage_low",
    "evaluate/function_coverage_high",
    "evaluate/function_coverage_share",
    "evaluate/goals",
    "evaluate/episodes",
    "evaluate/steps",
    "evaluate/findings",
    "evaluate/restarted",
    "evaluate/seconds",
    "sweep/trials",
    "sweep/finished",
    "sweep/failed",
    "sweep/seconds",
)
"""Every metric name that is ever logged; others are dropped."""

_PARAM_LENGTH = 6000
_BATCH_METRICS, _BATCH_PARAMS = 1000, 100
SWEEP_TAG, TRIAL_TAG, KIND_TAG = "lanista.sweep", "lanista.trial", "lanista.kind"


class Tracker:
    """The runs of one sweep (or of one training run, which is a sweep of one) in MLflow.

    Attributes:
        uri: Tracking URI.
        experiment_id: Of the experiment that bears the sweep's name.
    """

    def __init__(self, root: Root, name: str) -> None:
        """Connect and make the experiment if there is none.

        Raises:
            InputError: If the server or database does not answer.
        """
        quiet()
        from mlflow import MlflowClient
        from mlflow.entities import ViewType

        self.uri = root.tracking_uri
        self.name = name
        check_reachable(root)
        with answering(root):
            self._client = MlflowClient(self.uri)
            found = self._client.get_experiment_by_name(name)
            if found is None:
                self.experiment_id = self._client.create_experiment(
                    name, artifacts_place(root, name)
                )
            else:
                self.experiment_id = found.experiment_id
                if found.lifecycle_stage == "deleted":
                    self._client.restore_experiment(self.experiment_id)
        self._active_only = ViewType.ACTIVE_ONLY

    @property
    def command(self) -> str:
        """Shell command that opens the experiment, or the address where it already is served."""
        return self._opens(f"#/experiments/{self.experiment_id}")

    @property
    def comparison(self) -> str:
        """As :attr:`command`, for MLflow's page that compares the trials of this name."""
        trials = [run.info.run_id for run in self.runs() if "mlflow.parentRunId" in run.data.tags]
        if len(trials) < 2:
            return self.command
        query = {"runs": json.dumps(trials), "experiments": json.dumps([self.experiment_id])}
        return self._opens(f"#/compare-runs?{urlencode(query, quote_via=quote)}")

    def _opens(self, page: str) -> str:
        if self.uri.startswith(("http://", "https://")):
            return f"open {shown_uri(self.uri)}/{page}"
        program = Path(sys.executable).with_name("mlflow")
        if shutil.which("mlflow") == str(program):
            program = Path(program.name)
        elif program.is_relative_to(Path.cwd()):
            program = program.relative_to(Path.cwd())
        uri = shlex.quote(shown_uri(self.uri))
        return (
            f"{shlex.quote(str(program))} ui --backend-store-uri {uri} --port 5000  "
            f"# then open http://127.0.0.1:5000/{page}"
        )

    def open(
        self,
        kind: str,
        trial: str = "",
        *,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> "RunLog":
        """Open the run of a trial (or the parent's, without one), adopting it where it exists.

        Args:
            kind: ``sweep``, ``trial`` or ``train``.
            trial: Name of the trial, unique in the sweep.
            parent: Run id of the parent.
            tags: More tags, set anew each time.
        """
        own = {SWEEP_TAG: self.name, TRIAL_TAG: trial, KIND_TAG: kind}
        own |= {"mlflow.runName": trial or self.name, **(tags or {})}
        if parent:
            own["mlflow.parentRunId"] = parent
        found = self.find(trial)
        if found is None:
            run = self._client.create_run(self.experiment_id, tags=own)
            return RunLog(self._client, run.info.run_id, adopted=False)
        self._client.update_run(found, status="RUNNING")
        log = RunLog(self._client, found, adopted=True)
        log.set_tags(own)
        return log

    def reap(self) -> int:
        """Mark runs of this sweep that a killed driver left RUNNING as KILLED; return how many.

        Only the process that holds the sweep's lock may call this.
        """
        stale = [run.info.run_id for run in self.runs() if run.info.status == "RUNNING"]
        for run_id in stale:
            self._client.set_terminated(run_id, status="KILLED")
        return len(stale)

    def runs(self) -> list[Any]:
        """Return all runs of the sweep, the parent's too, as MLflow's ``Run``."""
        found: list[Any] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self.experiment_id], run_view_type=self._active_only, page_token=token
            )
            found += page
            token = page.token
            if not token:
                return found

    def find(self, trial: str) -> str | None:
        """Return the id of a trial's run (the parent's without a name), if there is one."""
        mine = [
            run
            for run in self.runs()
            if run.data.tags.get(SWEEP_TAG) == self.name
            and run.data.tags.get(TRIAL_TAG, "") == trial
        ]
        return min(mine, key=lambda run: run.info.start_time).info.run_id if mine else None

    def register(self, run_id: str, model: str, artifact_path: str, alias: str) -> str:
        """Register a logged checkpoint as a version of a model and point the alias at it.

        A second call for the same run and path registers nothing new.

        Returns:
            The version's number, as MLflow writes it.
        """
        from mlflow.exceptions import MlflowException

        try:
            self._client.get_registered_model(model)
        except MlflowException:
            self._client.create_registered_model(model)
        source = f"runs:/{run_id}/{artifact_path}"
        known = self._client.search_model_versions(f"name = '{model}'")
        same = [item for item in known if item.run_id == run_id and item.tags.get("path") == source]
        version = (
            same[0]
            if same
            else self._client.create_model_version(
                model, source=source, run_id=run_id, tags={"path": source}
            )
        )
        self._client.set_registered_model_alias(model, alias, version.version)
        return str(version.version)


class RunLog:
    """One MLflow run.

    Attributes:
        run_id: Its id.
        adopted: Whether it existed before.
        finished: Whether it was ended in this process.
    """

    def __init__(self, client: Any, run_id: str, *, adopted: bool) -> None:
        self.run_id = run_id
        self.adopted = adopted
        self.finished = False
        self._client = client
        self._last_steps: dict[str, int] = {}

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; they may change."""
        from mlflow.entities import RunTag

        items = [RunTag(key, str(value)[:_PARAM_LENGTH]) for key, value in tags.items()]
        self._client.log_batch(self.run_id, tags=items)

    def log_params(self, values: Mapping[str, Any]) -> None:
        """Log nested values as ``a/b`` params, once: what the run has already stays.

        A value of more than 6000 characters is cut and ends in ``…``; the whole of it is in the
        run's ``config.json``.
        """
        from mlflow.entities import Param

        known = self._client.get_run(self.run_id).data.params
        items = [
            Param(key, shorten(value)) for key, value in flatten(values).items() if key not in known
        ]
        for start in range(0, len(items), _BATCH_PARAMS):
            self._client.log_batch(self.run_id, params=items[start : start + _BATCH_PARAMS])

    def log_metrics(
        self, values: Mapping[str, float], step: int = 0, *, anew: bool = False
    ) -> None:
        """Log metrics in one batch; names outside :data:`METRICS` and NaN are dropped.

        In an adopted run, steps that a metric already has are left out, so that a trial that
        repeats its last updates after a kill shows each of them once. Under ``anew`` they are
        logged again, for totals that an earlier part of the run left unfinished.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        items = []
        for name, value in values.items():
            if name not in METRICS or not math.isfinite(value):
                continue
            if not anew and step <= self._last_step(name):
                continue
            items.append(Metric(name, float(value), now, step))
            self._last_steps[name] = step
        for start in range(0, len(items), _BATCH_METRICS):
            self._client.log_batch(self.run_id, metrics=items[start : start + _BATCH_METRICS])

    def _last_step(self, name: str) -> int:
        if name not in self._last_steps:
            steps = [-1]
            if self.adopted:
                history = self._client.get_metric_history(self.run_id, name)
                steps += [point.step for point in history]
            self._last_steps[name] = max(steps)
        return self._last_steps[name]

    def log_json(self, value: Mapping[str, Any], path: str) -> None:
        """Log a JSON file as an artifact."""
        self._client.log_dict(self.run_id, dict(value), path)

    def log_folder(self, folder: Path, path: str) -> None:
        """Log the files of a folder as artifacts under ``path``."""
        self._client.log_artifacts(self.run_id, str(folder), path)

    def log_file(self, file: Path, path: str = "") -> None:
        """Log a file as an artifact in the folder ``path``."""
        self._client.log_artifact(self.run_id, str(file), path or None)

    def log_dataset(self, name: str, source: str, digest: str) -> None:
        """Record which episodes a run learned from, as MLflow's dataset lineage."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(name=name, digest=digest[:36], source_type="local", source=source)
        tag = InputTag("mlflow.data.context", "training")
        self._client.log_inputs(self.run_id, [DatasetInput(dataset, [tag])])

    def finish(self, status: str = "FINISHED") -> None:
        """End the run as ``FINISHED``, ``FAILED`` or ``KILLED``."""
        self._client.set_terminated(self.run_id, status=status)
        self.finished = True


@contextmanager
def finishing(log: RunLog) -> Iterator[RunLog]:
    """End a run with the block: FINISHED, FAILED by an error, KILLED by an interruption."""
    try:
        yield log
    except (KeyboardInterrupt, SystemExit):
        log.finish("KILLED")
        raise
    except BaseException:
        log.finish("FAILED")
        raise
    log.finish()


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested mappings: ``{"a": {"b": 1}}`` becomes ``{"a/b": 1}``; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{name}/")
        else:
            flat[name] = value
    return flat


def shorten(value: Any) -> str:
    """Write a param's value in at most 6000 characters, the most that MLflow keeps whole."""
    text = str(value)
    return text if len(text) <= _PARAM_LENGTH else text[: _PARAM_LENGTH - 1] + "…"
