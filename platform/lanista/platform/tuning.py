"""The trials of a sweep on Ray Tune.

Tune schedules, starts and restarts the trials. What a trial has done lives in its own folder, so
a sweep whose driver died goes on by handing Tune the unfinished trials anew: each goes on from its
own last checkpoint, which is never behind Tune's own snapshot of the experiment.
"""

import contextlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lanista.envs.errors import RunError
from lanista.platform.cluster import available_cpus, describe_resources
from lanista.platform.executor import check_resources
from lanista.platform.experiment import Scheduling, Trial
from lanista.platform.run_folder import read_trial
from lanista.platform.tracking import RunLog
from lanista.platform.training import Data, attempt_trial

OpenRun = Callable[[str], RunLog]
"""Opens (or adopts) the MLflow run of a trial, by the trial's name."""


def train_with_tune(
    trials: Sequence[Trial],
    folders: Mapping[str, Path],
    data: Data,
    scheduling: Scheduling,
    storage: Path,
    open_run: OpenRun,
    on_progress: Callable[[str, int], None] | None = None,
) -> dict[str, str]:
    """Train every trial, several at once.

    Ray must be up. A trial whose process dies is started again by Tune and goes on from its last
    checkpoint; one that raises on purpose is not tried again.

    Args:
        trials: What to train.
        folders: Folder of each trial, by name; shared with the workers.
        data: What to learn from.
        scheduling: How wide.
        storage: Folder for Tune's own records.
        open_run: Opens a trial's MLflow run, in this process.
        on_progress: Told the updates that a trial has done.

    Returns:
        Why each failed trial failed, by name; empty if none did.

    Raises:
        InputError: If the cluster could not hold a single trial.
    """
    if not trials:
        return {}
    check_resources(1, scheduling.cpus_per_trial, scheduling.gpus_per_trial)
    _prepare_environment()
    from ray import tune

    from lanista.platform.tune_logger import MlflowLogger

    callback = MlflowLogger(open_run, on_progress)
    trainable = tune.with_resources(
        _train,
        {"cpu": scheduling.cpus_per_trial, "gpu": scheduling.gpus_per_trial},
    )
    tuner = tune.Tuner(
        trainable,
        param_space={
            "folder": tune.grid_search([str(folders[trial.name]) for trial in trials]),
            "data": str(data.folder),
            "rule": data.rule,
        },
        tune_config=tune.TuneConfig(
            max_concurrent_trials=scheduling.concurrent or _room(scheduling.cpus_per_trial),
            trial_name_creator=_trial_name,
            trial_dirname_creator=_trial_name,
        ),
        run_config=tune.RunConfig(
            name=storage.name,
            storage_path=str(storage.parent.resolve()),
            callbacks=[callback],
            failure_config=tune.FailureConfig(max_failures=scheduling.max_failures),
            verbose=0,
        ),
    )
    try:
        # Tune prints a banner whatever it is told; standard output belongs to the result.
        with contextlib.redirect_stdout(io.StringIO()):
            results = tuner.fit()
    except tune.TuneError as error:
        line = str(error).strip().splitlines()[0]
        raise RunError(f"Ray Tune stopped: {line}; {describe_resources()}.") from error
    failures: dict[str, str] = dict(callback.refused)
    for result in results:
        if result.error is not None:
            name = Path(result.config["folder"]).name if result.config else "trial"
            failures[name] = _last_line(result.error)
    return failures


def _train(config: Mapping[str, Any]) -> None:
    """Train one trial in a Tune worker; its folder says what it is."""
    from ray import tune

    folder = Path(config["folder"])
    trial = read_trial(folder)
    data = Data(Path(config["data"]), config["rule"])

    def report(update: int, metrics: dict[str, float]) -> None:
        tune.report({"update": update, "metrics": metrics})

    refused = attempt_trial(trial, data, folder, report)
    tune.report({"update": -1, "metrics": {}, "refused": refused})


def _room(cpus_per_trial: float) -> int | None:
    """Return how many trainings this machine's CPUs hold, ``None`` where a cluster decides.

    A local Ray counts a CPU for each worker asked for, which may be more than there are.
    """
    if os.environ.get("RAY_ADDRESS", "local") not in ("", "local"):
        return None
    return max(1, int(available_cpus() / cpus_per_trial))


def _trial_name(trial: Any) -> str:
    return Path(trial.config["folder"]).name


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _prepare_environment() -> None:
    """Keep Tune quiet, in its own folder, and out of the handling of signals."""
    for name, value in {
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",
        "TUNE_GLOBAL_CHECKPOINT_S": "2",
        "TUNE_MAX_PENDING_TRIALS_PG": "16",
    }.items():
        os.environ.setdefault(name, value)
