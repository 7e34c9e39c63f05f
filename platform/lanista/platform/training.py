"""What one training does, in the driver or in a Tune worker: data, learner, curves, checkpoints."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lanista.agents.checkpoint import newest_checkpoint
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.training import train
from lanista.data.dataset import GoalDataset
from lanista.data.split import split_of
from lanista.data.store import EpisodeStore
from lanista.envs.errors import InputError, LanistaError
from lanista.envs.game import Game, load_game
from lanista.platform.experiment import GoalRule, Trial
from lanista.platform.provenance import write_json
from lanista.platform.run_folder import (
    CHECKPOINTS,
    ERROR,
    TRAINED,
    append_curve,
    cut_curve,
    read_json,
    write_error,
)


@dataclass(frozen=True)
class Data:
    """An episode store and what learning from it needs to know; opened anew in each process."""

    folder: Path
    rule: GoalRule

    @cached_property
    def store(self) -> EpisodeStore:
        """The store.

        Raises:
            InputError: If there is none, or it is corrupt.
        """
        return EpisodeStore.open(self.folder)

    @cached_property
    def game(self) -> Game:
        """The game that was recorded."""
        return load_game(self.store.game_id)

    @cached_property
    def goals(self) -> tuple[int, ...]:
        """Ids of the goals."""
        found = self.store.goals(self.rule)
        if not found:
            raise InputError(f"{self.folder} has no goals: too little was recorded in it.")
        return found

    @cached_property
    def goal_names(self) -> tuple[str, ...]:
        """Full names of the goals."""
        return tuple(self.store.catalogue.name(goal) for goal in self.goals)

    @cached_property
    def worlds(self) -> frozenset[int]:
        """Worlds that were recorded, which no evaluation may use."""
        return frozenset(int(row["key"]["world"]) for row in self.store.manifest["episodes"])

    def hashes(self) -> dict[str, Any]:
        """Return the hashes that every run of this data is marked with."""
        return {
            "data_manifest_sha256": self.store.manifest_sha256,
            "catalogue_sha256": self.store.catalogue.sha256,
            "engine": self.game.engine(),
        }

    def load(self, split: str) -> GoalDataset | None:
        """Load one side of the split, ``None`` where no episode is on it."""
        if not any(split_of(episode_id) == split for episode_id, _ in self.store.keys()):  # noqa: SIM118
            return None
        return GoalDataset.from_episodes(
            self.store.episodes(split),
            self.goals,
            self.store.catalogue,
            action_count=len(self.game.actions) or None,
            action_bounds=self.game.action_bounds,
        )


def train_trial(
    agent: AgentConfig,
    config: TrainConfig,
    data: Data,
    folder: Path,
    on_progress: Callable[[int, dict[str, float]], None] | None = None,
) -> dict[str, Any]:
    """Train one agent in its folder, from where it stands; a finished one is returned at once.

    Args:
        agent: Architecture.
        config: How to train.
        data: What to learn from.
        folder: The trial's folder; takes ``checkpoints/``, ``metrics.jsonl``, ``trained.json``.
        on_progress: Called with the updates done and the metrics of each report.

    Returns:
        ``checkpoint``, ``updates``, ``resumed_from`` (updates that an earlier, interrupted part
        had done), ``loss`` and ``seconds`` (of all parts together).

    Raises:
        InputError: If the data cannot be used, or the folder holds another training.
        RunError: If loss or gradient is not a finite number.
    """
    done = folder / TRAINED
    if done.exists():
        return read_trained(folder)
    began = time.monotonic()
    checkpoints = folder / CHECKPOINTS
    before = newest_checkpoint(checkpoints, optimiser=False)
    spent = cut_curve(folder, before.update if before else 0).get("train/seconds", 0.0)
    dataset = data.load("train")
    if dataset is None:
        raise InputError(f"{data.folder} has no episodes to train on; record more.")

    def report(update: int, metrics: dict[str, float]) -> None:
        metrics["train/seconds"] = spent + time.monotonic() - began
        metrics["train/updates"] = float(update)
        append_curve(folder, update, metrics)
        if on_progress is not None:
            on_progress(update, metrics)

    result = train(
        agent,
        config,
        dataset,
        checkpoints,
        validation=data.load("validation"),
        on_metrics=report,
        data_manifest_sha256=data.store.manifest_sha256,
        engine={**data.game.engine(), "game": data.store.game_id},
    )
    value = {
        "checkpoint": str(result.checkpoint.relative_to(folder)),
        "updates": result.updates,
        "resumed_from": before.update if before else 0,
        "loss": result.loss,
        "seconds": spent + time.monotonic() - began,
    }
    write_json(done, value)
    (folder / ERROR).unlink(missing_ok=True)
    return read_trained(folder)


def read_trained(folder: Path) -> dict[str, Any]:
    """Return what training in a folder led to, with the whole path of its checkpoint."""
    value = read_json(
        folder / TRAINED, ("checkpoint", "updates", "resumed_from", "loss", "seconds")
    )
    return value | {"checkpoint": str(folder / value["checkpoint"])}


def attempt_trial(
    trial: Trial,
    data: Data,
    folder: Path,
    on_progress: Callable[[int, dict[str, float]], None],
) -> str:
    """Train a trial; keep what went wrong in its folder and return it, empty if nothing did.

    Only what was raised on purpose is returned, since trying that again would give the same.
    Anything else is kept and raised, for the caller to try again.
    """
    try:
        train_trial(trial.agent, trial.train, data, folder, on_progress)
    except LanistaError as error:
        write_error(folder, str(error), traceback.format_exc())
        return str(error)
    except Exception as error:
        write_error(folder, f"{type(error).__name__}: {error}", traceback.format_exc())
        raise
    return ""
