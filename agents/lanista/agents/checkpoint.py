"""Checkpoints: a folder with two safetensors files and one JSON file, enough to go on or to play.

``model.safetensors`` holds the weights, ``optimizer.safetensors`` the optimiser's moments and
PyTorch's generator states, ``checkpoint.json`` everything else. A checkpoint appears under its name
in one step and is never changed. Nothing is unpickled.
"""

import contextlib
import hashlib
import json
import logging
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lanista.agents.config import AgentConfig, Spaces, TrainConfig
from lanista.data.files import cannot_write, sync
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue

_log = logging.getLogger(__name__)

FORMAT = 1
"""Version of the layout; a reader refuses any other."""

_NO_BOUND = {"action_low": -math.inf, "action_high": math.inf}

MODEL, OPTIMISER, DESCRIPTION = "model.safetensors", "optimizer.safetensors", "checkpoint.json"


class CorruptCheckpointError(InputError):
    """A checkpoint whose files are not what they were when it was written."""


@dataclass(frozen=True)
class Checkpoint:
    """An agent in training at one update.

    Attributes:
        agent: Architecture.
        train: How it is being trained.
        spaces: What goes in and comes out.
        catalogue: What the function ids in its traces mean.
        goals: Full names of the goals, in the order of the agent's goal embedding.
        update: Updates done.
        rows: Rows learned from so far, repetitions counted.
        weights: By name.
        data: What it learns from: ``manifest_sha256``, ``episodes``, ``rows``.
        engine: The game's engine: ``name``, ``version``, ``sha256``, as far as known, and
            ``game``, the id of the game.
        metrics: Latest value of each metric.
        sampler_rng: State of the NumPy generator that draws batches.
        optimiser: Moments and step counts by ``kind/parameter``; PyTorch's generator states
            under ``rng/``. Empty if they were not read.
    """

    agent: AgentConfig
    train: TrainConfig
    spaces: Spaces
    catalogue: Catalogue
    goals: tuple[str, ...]
    update: int
    rows: int
    weights: Mapping[str, Tensor] = field(repr=False)
    data: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    sampler_rng: Mapping[str, Any] = field(default_factory=dict, repr=False)
    optimiser: Mapping[str, Tensor] = field(default_factory=dict, repr=False)


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint to the folder ``path`` in one step, in place of what was there.

    Raises:
        InputError: If the folder cannot be written.
    """
    building = path.with_name(f".{path.name}.building-{os.getpid()}")
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        save_file(_storable(checkpoint.weights), building / MODEL)
        save_file(_storable(checkpoint.optimiser), building / OPTIMISER)
        description = _describe(checkpoint) | {
            "files": {name: _sha256(building / name) for name in (MODEL, OPTIMISER)}
        }
        (building / DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
        for item in (*building.iterdir(), building):
            sync(item)
        if path.exists():
            shutil.rmtree(path)
        building.rename(path)
        sync(path.parent)
    except OSError as error:
        shutil.rmtree(building, ignore_errors=True)
        raise cannot_write(path, error) from error
    return path


def load_checkpoint(path: Path, *, optimiser: bool = True) -> Checkpoint:
    """Read a checkpoint, or the latest one of a training folder.

    Args:
        path: A checkpoint's folder, or a folder that holds ``checkpoint-…`` folders.
        optimiser: Whether to read what is only needed to go on training.

    Raises:
        InputError: If a file is missing, corrupt, or of a version that this Lanista cannot read.
    """
    folder = path
    if not (path / DESCRIPTION).exists() and (latest := latest_checkpoint(path)):
        folder = latest
    file = folder / DESCRIPTION
    try:
        description = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path} is not a checkpoint: {file} is missing.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise CorruptCheckpointError(
            f"{file} is corrupt: {error}; take another checkpoint."
        ) from error
    found = description.get("format") if isinstance(description, dict) else None
    if found != FORMAT:
        raise InputError(f"{file} has format {found!r}; this Lanista reads format {FORMAT}.")
    weights = _read_tensors(folder / MODEL, description)
    moments = _read_tensors(folder / OPTIMISER, description) if optimiser else {}
    try:
        return Checkpoint(
            agent=_from_json(AgentConfig, description["agent"]),
            train=_from_json(TrainConfig, description["train"]),
            spaces=_from_json(Spaces, _bounds_from_json(description["spaces"])),
            catalogue=Catalogue.from_json(description["catalogue"]),
            goals=tuple(description["goals"]),
            update=int(description["update"]),
            rows=int(description["rows"]),
            weights=weights,
            data=description["data"],
            engine=description["engine"],
            metrics=description["metrics"],
            sampler_rng=description["sampler_rng"],
            optimiser=moments,
        )
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise CorruptCheckpointError(
            f"{file} is corrupt: {error!s}; take another checkpoint."
        ) from error


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint with the most updates in a training folder, ``None`` if none is."""
    found = sorted(path for path in folder.glob("checkpoint-*") if (path / DESCRIPTION).exists())
    return found[-1] if found else None


def newest_checkpoint(folder: Path, *, optimiser: bool = True) -> Checkpoint | None:
    """Read the checkpoint of a training folder to go on from, ``None`` if there is none.

    One that is corrupt is set aside as ``corrupt-…``, with a warning, and the one before it taken:
    training goes on from there to the same weights.

    Raises:
        InputError: If the checkpoint is of a version that this Lanista cannot read, or cannot be
            set aside.
    """
    while (latest := latest_checkpoint(folder)) is not None:
        try:
            return load_checkpoint(latest, optimiser=optimiser)
        except CorruptCheckpointError as error:
            aside = latest.with_name(f"corrupt-{latest.name}")
            _log.warning("%s It is set aside as %s.", error, aside.name)
            try:
                shutil.rmtree(aside, ignore_errors=True)
                latest.rename(aside)
            except OSError as failure:
                raise InputError(
                    f"{latest} is corrupt and cannot be set aside: {failure.strerror}."
                ) from failure
    return None


def checkpoint_name(update: int) -> str:
    """Return the folder name of an update's checkpoint; names sort as updates do."""
    return f"checkpoint-{update:09d}"


def _describe(checkpoint: Checkpoint) -> dict[str, Any]:
    try:
        lanista = version("lanista")
    except PackageNotFoundError:
        lanista = "unknown"
    return {
        "format": FORMAT,
        "versions": {"lanista": lanista, "torch": torch.__version__},
        "agent": asdict(checkpoint.agent),
        "train": asdict(checkpoint.train),
        "spaces": _bounds_as_json(asdict(checkpoint.spaces)),
        "catalogue_sha256": checkpoint.catalogue.sha256,
        "goals": list(checkpoint.goals),
        "update": checkpoint.update,
        "rows": checkpoint.rows,
        "data": dict(checkpoint.data),
        "engine": dict(checkpoint.engine),
        "metrics": dict(checkpoint.metrics),
        "sampler_rng": dict(checkpoint.sampler_rng),
        "catalogue": checkpoint.catalogue.to_json(),
    }


def _bounds_as_json(spaces: dict[str, Any]) -> dict[str, Any]:
    """Write the bound that a number of an action lacks as null, since JSON knows no infinity."""
    bounds = {
        name: [value if math.isfinite(value) else None for value in spaces[name]]
        for name in _NO_BOUND
    }
    return spaces | bounds


def _bounds_from_json(spaces: dict[str, Any]) -> dict[str, Any]:
    bounds = {
        name: tuple(missing if value is None else value for value in spaces.get(name, ()))
        for name, missing in _NO_BOUND.items()
    }
    return spaces | bounds


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _read_tensors(file: Path, description: Mapping[str, Any]) -> dict[str, Tensor]:
    try:
        expected = description["files"][file.name]
        if _sha256(file) != expected:
            raise CorruptCheckpointError(
                f"{file} is corrupt: its hash is not the recorded one; take another checkpoint."
            )
        tensors: dict[str, Tensor] = load_file(file)
    except FileNotFoundError as error:
        raise CorruptCheckpointError(f"{file} is missing; take another checkpoint.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, SafetensorError) as error:
        raise CorruptCheckpointError(
            f"{file} is corrupt: {error}; take another checkpoint."
        ) from error
    return tensors


def _from_json[T](kind: type[T], value: Mapping[str, Any]) -> T:
    """Make a flat dataclass of its JSON form, lists back to tuples."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(value) - known):
        raise ValueError(f"{kind.__name__} has no field {', '.join(unknown)}")
    return kind(**{name: tuple(x) if isinstance(x, list) else x for name, x in value.items()})


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_checkpoints(folder: Path, keep: int) -> None:
    """Remove all but the latest ``keep`` checkpoints of a training folder."""
    for old in sorted(folder.glob("checkpoint-*"))[:-keep]:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(old)
