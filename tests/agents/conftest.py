"""Synthetic episodes for the agents' tests: made from rules that a test can state in a line."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lanista.data.dataset import GoalDataset
from lanista.data.episode import Episode, EpisodeKey
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace


def toy_catalogue(functions: int, prefix: str = "f", scheme: Any = "class") -> Catalogue:
    names = (f"toy:Game.{prefix}{place:04d}" for place in range(functions))
    return Catalogue.of((Function(name, "toy.py", 1, "Game") for name in names), scheme)


def toy_episode(
    catalogue: Catalogue,
    observations: NDArray[Any],
    actions: Sequence[int],
    traces: Sequence[Sequence[int]],
    reset: Sequence[int] = (),
    world: int = 0,
) -> Episode:
    key = EpisodeKey("toy", "1", "0" * 64, catalogue.sha256, world, 0, "player", None, 1000)
    return Episode(
        key=key,
        world_fingerprint=str(world),
        actions=np.asarray(actions, dtype=np.int64),
        rewards=np.zeros(len(actions), dtype=np.float32),
        trace_ids=np.array([call for trace in traces for call in trace], dtype=np.uint16),
        trace_offsets=np.cumsum([0, *map(len, traces)]),
        reset_trace=CallTrace(reset),
        terminated=False,
        truncated=True,
        observations=observations,
    )


def random_dataset(
    seed: int = 0,
    episodes: int = 6,
    functions: int = 12,
    goals: Sequence[int] = (1, 3, 5, 7),
    images: bool = False,
    actions: int = 4,
) -> GoalDataset:
    """Episodes of 3 to 29 steps in which nothing depends on anything."""
    rng = np.random.default_rng(seed)
    catalogue = toy_catalogue(functions)
    made = []
    for world in range(episodes):
        steps = int(rng.integers(3, 30))
        shape: tuple[int, ...] = (steps + 1, 36, 36, 3) if images else (steps + 1, 5)
        seen = rng.integers(0, 256, shape) if images else rng.normal(size=shape)
        made.append(
            toy_episode(
                catalogue,
                seen.astype(np.uint8 if images else np.float32),
                rng.integers(0, actions, steps).tolist(),
                [rng.integers(0, functions, rng.integers(0, 9)).tolist() for _ in range(steps)],
                reset=rng.integers(0, functions, 7).tolist(),
                world=world,
            )
        )
    return GoalDataset.from_episodes(made, goals, catalogue, action_count=actions)


def checkpoint_bytes(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors gain nothing from threads, and lose much where cores are shared."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def toys() -> SimpleNamespace:
    """Hand the makers of synthetic episodes to a test."""
    return SimpleNamespace(
        catalogue=toy_catalogue,
        episode=toy_episode,
        random_dataset=random_dataset,
        checkpoint_bytes=checkpoint_bytes,
    )
