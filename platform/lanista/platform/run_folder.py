"""A run's folder: its configuration written at the start, one process at a time, resumable."""

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lanista.data.files import only_writer
from lanista.envs.errors import InputError
from lanista.platform.config import Document, make, to_plain
from lanista.platform.experiment import SweepFile, TrainFile, Trial, identity
from lanista.platform.provenance import git_state, versions, write_json, write_text
from lanista.platform.root import Root

CONFIG, SWEEP, RESULT, TRIALS = "config.json", "sweep.json", "result.json", "trials"
TRIAL, CURVES, CHECKPOINTS = "trial.json", "metrics.jsonl", "checkpoints"
TRAINED, EVALUATION, ERROR = "trained.json", "evaluation.json", "error.json"


_RESULT_FIELDS = {
    "sweep": ("name", "trials", "finished", "failed", "failures", "table", "report"),
    "train": ("name", "checkpoint", "updates", "loss", "run_id"),
}


class RunFolder:
    """``runs/NAME`` under the root.

    ``config.json`` holds the resolved configuration with the git state and every hash, written at
    the start; ``trials/TRIAL/`` what a trial is (``trial.json``), its reports (``metrics.jsonl``),
    ``checkpoints/``, what training led to (``trained.json``), how it was judged
    (``evaluation.json``) and its last error (``error.json``); ``result.json`` what the command
    printed at its end. The report reads ``sweep.json`` and each trial's ``curves.json`` beside
    them; :func:`lanista.evaluation.report.collect_report_input` says in what form.
    """

    def __init__(self, root: Root, name: str) -> None:
        self.root = root
        self.name = name
        self.path = root.runs / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out while the block runs; a killed process holds no lock.

        Raises:
            InputError: If another process is at it, or the folder cannot be written to.
        """
        with only_writer(self.path):
            yield

    def begin(self, file: SweepFile | TrainFile) -> dict[str, Any]:
        """Write the resolved configuration, or check that it is the one written before.

        A run that never got as far as opening its data takes any configuration.

        Returns:
            What ``config.json`` holds.

        Raises:
            InputError: If a run of this name has another configuration.
        """
        kind = "sweep" if isinstance(file, SweepFile) else "train"
        known = self.config() if (self.path / CONFIG).exists() else None
        # Without the data's hashes nothing was trained yet: a file that was refused may be mended.
        if known is not None and "hashes" in known:
            if (known["kind"], known["identity"]) != (kind, identity(file)):
                changed = _differences(known["file"], to_plain(file))
                raise InputError(
                    f"{self.name} was run with another configuration"
                    + (f" ({', '.join(changed)})" if changed else "")
                    + "; choose another name with --name."
                )
            return known
        value = {
            "kind": kind,
            "name": self.name,
            "identity": identity(file),
            "file": to_plain(file),
            "git": git_state(),
            "versions": versions(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(self.path / CONFIG, value)
        return value

    def add_hashes(self, hashes: dict[str, Any]) -> dict[str, Any]:
        """Write what is known once the data is open; it cannot change any more.

        Raises:
            InputError: If the data or the game is another than when the run began.
        """
        value = self.config()
        known = value.get("hashes")
        if known is None:
            value["hashes"] = hashes
            write_json(self.path / CONFIG, value)
        elif changed := [name for name in hashes if known.get(name) != hashes[name]]:
            raise InputError(
                f"{self.name} began with another {changed[0]} "
                f"({known.get(changed[0])}, now {hashes[changed[0]]}); choose another name."
            )
        return value

    def config(self) -> dict[str, Any]:
        """Return what ``config.json`` holds.

        Raises:
            InputError: If there is no such run, or the file is corrupt.
        """
        path = self.path / CONFIG
        if not path.exists():
            names = sorted(item.parent.name for item in self.root.runs.glob(f"*/{CONFIG}"))
            raise InputError(
                f"There is no run named {self.name!r} under {self.root.runs}; "
                f"there are: {', '.join(names) or 'none'}."
            )
        return read_json(path, ("kind", "identity", "file"))

    def result(self) -> dict[str, Any] | None:
        """Return what the command printed at its end, or ``None`` before it."""
        path = self.path / RESULT
        return read_json(path, _RESULT_FIELDS[self.config()["kind"]]) if path.exists() else None

    def trial(self, trial: Trial) -> Path:
        """Return a trial's folder, made with its configuration in it."""
        folder = self.path / TRIALS / trial.name
        if not (folder / TRIAL).exists():
            write_json(folder / TRIAL, {**_printed(trial), "trial": to_plain(trial)})
        return folder

    def set_status(self, trial: Trial, status: str, error: str = "", **facts: str) -> None:
        """Write how a trial stands: ``trained``, ``finished`` or ``failed``, and why."""
        path = self.trial(trial) / TRIAL
        known = read_json(path)
        more = {"status": status, "error": error, "facts": {**known.get("facts", {}), **facts}}
        write_json(path, known | more)

    def write_curves(self, trial: Trial) -> None:
        """Write a trial's learning curves as the report reads them: points by metric."""
        curves: dict[str, list[list[float]]] = {}
        for point in read_curve(self.trial(trial)):
            for name, value in point.items():
                # JSON knows no infinity, which a loss on held-out rows can come to.
                if name != "update" and math.isfinite(value):
                    curves.setdefault(name, []).append([point["update"], value])
        write_json(self.trial(trial) / "curves.json", curves)


def read_trial(folder: Path) -> Trial:
    """Return the trial whose folder this is.

    Raises:
        InputError: If its file is missing or corrupt.
    """
    path = folder / TRIAL
    return make(Trial, Document(read_json(path).get("trial", {}), str(path), {}))


def _printed(trial: Trial) -> dict[str, Any]:
    """Return a trial as reports print it."""
    return {
        "label": f"{trial.label}, seed {trial.seed}",
        "algorithm": {"gcbc": "GC-BC", "gcdt": "GC-DT"}[trial.agent.algorithm],
        "variant": "ca2" if trial.agent.call_stack else "simple",
        "encoder": trial.agent.call_stack or "",
        "options": trial.variation,
        "seed": trial.seed,
        "status": "begun",
    }


def read_json(path: Path, fields: Iterable[str] = ()) -> dict[str, Any]:
    """Read a JSON object that has at least these fields.

    Raises:
        InputError: If there is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or corrupt: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is corrupt: it holds no object.")
    if missing := [name for name in fields if name not in value]:
        raise InputError(
            f"{path} is corrupt: it lacks {', '.join(missing)}; delete it, and the same command "
            "makes it anew."
        )
    return value


def write_error(folder: Path, message: str, traceback: str = "") -> None:
    """Keep why a trial failed beside what it has done so far."""
    write_json(folder / ERROR, {"message": message, "traceback": traceback})


def read_error(folder: Path) -> str:
    """Return the last line of why a trial failed, empty where it did not."""
    path = folder / ERROR
    if not path.exists():
        return ""
    return (str(read_json(path, ("message",))["message"]).strip().splitlines() or [""])[-1]


def append_curve(folder: Path, update: int, metrics: dict[str, float]) -> None:
    """Add one point to a trial's learning curves."""
    with (folder / CURVES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"update": update, **metrics}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_curve(folder: Path) -> list[dict[str, float]]:
    """Return a trial's learning curves: one mapping a report, ``update`` in each.

    Raises:
        InputError: If the file is corrupt in other ways than a last line cut short.
    """
    path = folder / CURVES
    points: list[dict[str, float]] = []
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if number == len(lines):
            break  # nothing, or the line that a killed process was writing
        try:
            point = json.loads(line)
            valid = isinstance(point, dict) and "update" in point
        except ValueError:
            valid = False
        if not valid:
            raise InputError(f"{path} is corrupt in line {number}; delete that line.")
        points.append(point)
    return points


def cut_curve(folder: Path, update: int) -> dict[str, float]:
    """Drop the points after an update: training that goes on from there makes them again.

    Returns:
        The last point kept, empty if there is none.
    """
    kept = [point for point in read_curve(folder) if point["update"] <= update]
    if (folder / CURVES).exists():
        write_text(folder / CURVES, "".join(f"{json.dumps(point)}\n" for point in kept))
    return kept[-1] if kept else {}


def _differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Name the fields in which two configurations differ, five at most."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = [
            item
            for key in sorted(before.keys() | after.keys())
            if not (path == "" and key in ("name", "scheduling"))
            for item in _differences(before.get(key), after.get(key), f"{path}{key}.")
        ]
        return found[:5]
    return [] if before == after else [path.rstrip(".")]


def checkpoints_of(folder: Path) -> Path:
    """Return the folder of checkpoints of a training or a trial, else the folder itself."""
    inside = folder / CHECKPOINTS
    return inside if inside.is_dir() else folder
