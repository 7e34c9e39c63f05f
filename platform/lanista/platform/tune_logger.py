"""Our own logger from Tune to MLflow.

Unlike the one that comes with Ray it adopts the run of a trial that is started again, sends each
report in one batch, logs fixed names alone, and carries no connection into Tune's snapshots.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.tune import Callback

from lanista.platform.tracking import RunLog


class MlflowLogger(Callback):  # type: ignore[misc] # Ray has no types
    """Logs each trial's reports to its run; leaves the run open for the judging that follows.

    Attributes:
        refused: What trials raised on purpose, by name.
    """

    def __init__(
        self,
        open_run: Callable[[str], RunLog],
        on_progress: Callable[[str, int], None] | None = None,
    ) -> None:
        self.refused: dict[str, str] = {}
        self._open_run: Callable[[str], RunLog] | None = open_run
        self._on_progress = on_progress

    def __getstate__(self) -> dict[str, Any]:
        """Leave connections out: Tune pickles its callbacks into its snapshots."""
        return {"refused": self.refused, "_open_run": None, "_on_progress": None}

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Open or adopt the trial's run."""
        del iteration, trials, info
        if self._open_run is not None:
            self._open_run(_name(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Log a report."""
        del iteration, trials, info
        if result.get("refused"):
            self.refused[_name(trial)] = result["refused"]
        update = int(result.get("update", -1))
        if update < 0:
            return
        if self._open_run is not None:
            self._open_run(_name(trial)).log_metrics(result["metrics"], update)
        if self._on_progress is not None:
            self._on_progress(_name(trial), update)


def _name(trial: Any) -> str:
    return Path(trial.config["folder"]).name
