"""Training an agent from recorded episodes, from its first update or on from a checkpoint."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lanista.agents.checkpoint import (
    Checkpoint,
    checkpoint_name,
    latest_checkpoint,
    newest_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.learner import BadUpdate, Learner, Measures
from lanista.data.dataset import GoalDataset
from lanista.data.files import write_json
from lanista.envs.errors import InputError, RunError

FREE_TO_CHANGE = frozenset(
    {
        "device",
        "threads",
        "metrics_every",
        "validate_every",
        "validation_batches",
        "checkpoint_every",
        "keep_checkpoints",
    }
)
"""Fields of ``TrainConfig`` that may differ when training goes on."""

ROWS_NAMED = 5
"""Rows that the error of a failed update names; a file beside the checkpoints lists all."""


@dataclass(frozen=True)
class TrainResult:
    """What training led to.

    Attributes:
        checkpoint: The last checkpoint.
        updates: Updates done, those before a resume included.
        loss: Latest reported training loss.
        metrics: Latest value of every metric.
        finished: Whether all updates were done; false if ``should_stop`` said so before.
    """

    checkpoint: Path
    updates: int
    loss: float
    metrics: Mapping[str, float]
    finished: bool


def train(
    agent: AgentConfig,
    train: TrainConfig,
    dataset: GoalDataset,
    out: Path,
    *,
    validation: GoalDataset | None = None,
    on_metrics: Callable[[int, dict[str, float]], None] | None = None,
    on_checkpoint: Callable[[Path, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    resume: bool = True,
    data_manifest_sha256: str = "",
    engine: Mapping[str, str] | None = None,
) -> TrainResult:
    """Train an agent; the same arguments give the same weights on one machine's CPU.

    Going on from a checkpoint gives exactly the weights that an uninterrupted run gives. PyTorch's
    global generator and thread count are put back at the end.

    Args:
        agent: Architecture.
        train: How to train.
        dataset: Episodes to learn from.
        out: Folder of the checkpoints.
        validation: Held-out episodes, with the same goals.
        on_metrics: Called with the updates done and metrics by name.
        on_checkpoint: Called with each checkpoint and the updates done.
        should_stop: Asked after each update; a yes writes a checkpoint and ends.
        resume: Go on from the latest checkpoint in ``out``, if there is one.
        data_manifest_sha256: Hash of the recording's manifest, kept in the checkpoints.
        engine: The game's engine, kept in the checkpoints.

    Raises:
        InputError: If arguments do not fit, or ``out`` holds checkpoints of other training.
        RunError: If loss or gradient is not a finite number; names the update and the rows.
    """
    data = {
        "manifest_sha256": data_manifest_sha256,
        "episodes": len(dataset.episode_ids),
        "rows": len(dataset),
    }
    previous = _previous(out, resume=resume)
    if previous is not None:
        _check_same(out, previous, agent, train, dataset, data)
    with _threads(train.threads):
        learner = Learner(agent, train, dataset, validation)
        devices = [learner.device] if learner.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(train.seed)
            latest: dict[str, float] = {}
            if previous is not None:
                learner.restore(previous)
                latest = dict(previous.metrics)
            run = _Run(learner, dataset, out, data, dict(engine or {}), latest)
            return run.go(on_metrics, on_checkpoint, should_stop)


class _Run:
    """The loop around a learner: reports, checkpoints, and what to do when an update fails."""

    def __init__(
        self,
        learner: Learner,
        dataset: GoalDataset,
        out: Path,
        data: Mapping[str, object],
        engine: Mapping[str, str],
        latest: dict[str, float],
    ) -> None:
        self.learner = learner
        self.dataset = dataset
        self.out = out
        self.data = data
        self.engine = engine
        self.latest = latest

    def go(
        self,
        on_metrics: Callable[[int, dict[str, float]], None] | None,
        on_checkpoint: Callable[[Path, int], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> TrainResult:
        learner, config = self.learner, self.learner.config
        path = self.out / checkpoint_name(learner.update)
        since: list[Measures] = []
        started = time.perf_counter()
        stop = False
        while learner.update < config.steps and not stop:
            since.append(self._step())
            update = learner.update
            last = update == config.steps
            stop = should_stop is not None and should_stop()
            metrics: dict[str, float] = {}
            if last or stop or update % config.metrics_every == 0:
                elapsed = time.perf_counter() - started
                metrics |= self._training_metrics(since, elapsed)
                since = []
            if last or update % config.validate_every == 0:
                metrics |= self._validation_metrics()
            if metrics:
                self.latest |= metrics
                if on_metrics is not None:
                    on_metrics(update, metrics)
            if last or stop or update % config.checkpoint_every == 0:
                path = self._save()
                if on_checkpoint is not None:
                    on_checkpoint(path, update)
            if not since:
                started = time.perf_counter()
        return TrainResult(
            checkpoint=path,
            updates=learner.update,
            loss=self.latest.get("train/loss", float("nan")),
            metrics=dict(self.latest),
            finished=learner.update >= config.steps,
        )

    def _step(self) -> Measures:
        try:
            return self.learner.step()
        except BadUpdate as bad:
            update = self.learner.update + 1
            where = ", ".join(map(self._row_name, bad.rows[:ROWS_NAMED]))
            if len(bad.rows) > ROWS_NAMED:
                listing = self._list_rows(update, bad.rows)
                where += f" and {len(bad.rows) - ROWS_NAMED} more rows, all listed in {listing}"
            raise RunError(
                f"Update {update} stopped: the {bad.what} is {bad.value} in its batch at {where}."
            ) from bad

    def _row_name(self, row: int) -> str:
        episode = self.dataset.episode_ids[self.dataset.episode_of_row[row]]
        return f"episode {episode} step {self.dataset.step_of_row[row]}"

    def _list_rows(self, update: int, rows: NDArray[np.int64]) -> Path:
        file = self.out / f"failed-update-{update}.json"
        listing = [
            {
                "episode": self.dataset.episode_ids[self.dataset.episode_of_row[row]],
                "step": int(self.dataset.step_of_row[row]),
            }
            for row in rows
        ]
        write_json(file, {"update": update, "rows": listing})
        return file

    def _training_metrics(self, since: list[Measures], elapsed: float) -> dict[str, float]:
        hits = [part.accuracy for part in since if part.accuracy is not None]
        return {
            "train/loss": float(np.mean([part.loss for part in since])),
            **({"train/accuracy": float(np.mean(hits))} if hits else {}),
            "train/gradient_norm": float(np.mean([part.gradient_norm for part in since])),
            "train/learning_rate": self.learner.config.learning_rate_at(self.learner.update - 1),
            "train/samples_per_second": sum(part.rows for part in since) / max(elapsed, 1e-9),
        }

    def _validation_metrics(self) -> dict[str, float]:
        seen = self.learner.validate()
        if seen is None:
            return {}
        known = {} if seen.accuracy is None else {"validation/accuracy": seen.accuracy}
        return {"validation/loss": seen.loss, **known}

    def _save(self) -> Path:
        learner = self.learner
        optimiser, sampler_rng = learner.state()
        path = save_checkpoint(
            self.out / checkpoint_name(learner.update),
            Checkpoint(
                agent=learner.agent.config,
                train=learner.config,
                spaces=learner.agent.spaces,
                catalogue=self.dataset.catalogue,
                goals=self.dataset.goal_names,
                update=learner.update,
                rows=learner.rows,
                weights=learner.agent.state_dict(),
                data=self.data,
                engine=self.engine,
                metrics=self.latest,
                sampler_rng=sampler_rng,
                optimiser=optimiser,
            ),
        )
        remove_checkpoints(self.out, learner.config.keep_checkpoints)
        return path


def _previous(out: Path, *, resume: bool) -> Checkpoint | None:
    path = latest_checkpoint(out)
    if path is not None and not resume:
        raise InputError(f"{out} already holds {path.name}; resume it or train into a new folder.")
    return newest_checkpoint(out)


def _check_same(
    out: Path,
    previous: Checkpoint,
    agent: AgentConfig,
    train: TrainConfig,
    dataset: GoalDataset,
    data: Mapping[str, object],
) -> None:
    """Refuse to go on with anything that would make the weights another run's."""
    pairs: list[tuple[str, object, object]] = [
        (f"agent.{name}", getattr(previous.agent, name), value)
        for name, value in asdict(agent).items()
    ]
    pairs += [
        (f"train.{name}", getattr(previous.train, name), value)
        for name, value in asdict(train).items()
        if name not in FREE_TO_CHANGE
    ]
    pairs += [(f"data.{name}", previous.data.get(name), value) for name, value in data.items()]
    pairs.append(("catalogue", previous.catalogue.sha256, dataset.catalogue.sha256))
    pairs.append(("goals", list(previous.goals), list(dataset.goal_names)))
    problems = [
        f"{out} was trained with {name} {_short(old)}, not {_short(new)}; "
        "train into a new folder or keep it."
        for name, old, new in pairs
        if old != new
    ]
    if problems:
        raise InputError(*problems)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        yield
    finally:
        torch.set_num_threads(before)
