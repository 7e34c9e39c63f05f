"""Export to Minari and import from it, without loss.

Minari holds rectangular arrays, so each step's trace is padded with -1 to the longest of the
dataset (reset's included). Its infos have T + 1 rows, the first of reset:
``infos["call_trace"][t + 1]`` is what the action of row t caused, ``infos["call_trace"][0]`` what
reset called. Frames are stored as they are (``jpeg_encoding=False``); Minari's default would
change them.
"""

import contextlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.data.episode import Episode, EpisodeKey, Fault
from lanista.data.episode_file import encode_episode
from lanista.data.manifest import check_header
from lanista.data.store import EpisodeStore
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace

_METADATA = "lanista"
_TRACE = "call_trace"
_COUNT = "call_count"
_INFO = "step_info."
PADDING = -1
"""Stands in a padded trace where there was no call."""


def export_minari(store: EpisodeStore, dataset_id: str) -> int:
    """Write a store's episodes as a Minari dataset, where ``MINARI_DATASETS_PATH`` says.

    Args:
        store: What to export; its observations are read, or replayed.
        dataset_id: Minari's name for it, such as ``crafter/testers-v0``.

    Returns:
        Number of episodes written.

    Raises:
        InputError: If Minari is not installed, refuses the name or has such a dataset, or the
            store is empty.
    """
    minari = _minari()
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    if not len(store):
        raise InputError(f"{store.path} has no episodes to export.")
    first = next(store.episodes())
    assert first.observations is not None
    observation_space = _box(spaces, first.observations[0])
    action_space = _action_space(spaces, store, first.actions)
    # Minari wants all episodes' infos to be of one form.
    width, numbers = 1, dict[str, np.dtype[Any]]()
    for episode in _bare(store):
        width = max(width, len(episode.reset_trace), *np.diff(episode.trace_offsets))
        numbers |= {name: values.dtype for name, values in episode.step_info.items()}
    try:
        with warnings.catch_warnings():
            # Minari warns of each optional description that is left out.
            warnings.simplefilter("ignore", UserWarning)
            dataset = minari.create_dataset_from_buffers(
                dataset_id=dataset_id,
                # One episode at a time is in memory.
                buffer=(
                    EpisodeBuffer(
                        id=number,
                        options={"world": episode.key.world},
                        **_arrays(episode, width, numbers),
                    )
                    for number, episode in enumerate(store.episodes())
                ),
                observation_space=observation_space,
                action_space=action_space,
                algorithm_name="lanista testers",
                description=f"Recorded plays of {store.game_id}, with the functions called.",
                data_format="parquet",
                jpeg_encoding=False,
            )
    except ValueError as error:
        raise InputError(f"Minari refuses {dataset_id!r}: {error}.") from error
    storage = dataset.storage
    storage.update_metadata({_METADATA: json.dumps(store.header)})
    storage.update_episode_metadata(
        [
            {_METADATA: json.dumps(_head(episode, row))}
            for episode, row in zip(_bare(store), store.rows(), strict=True)
        ]
    )
    return len(store)


def import_minari(dataset_id: str, path: Path | str) -> EpisodeStore:
    """Make a store of a Minari dataset that :func:`export_minari` wrote.

    Args:
        dataset_id: Minari's name for it.
        path: Folder of the new store.

    Raises:
        InputError: If Minari is not installed or has no such dataset, or the dataset was not
            exported by Lanista and so has neither calls nor catalogue.
    """
    minari = _minari()
    try:
        dataset = minari.load_dataset(dataset_id)
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"Minari has no dataset {dataset_id!r} here: {error}.") from error
    stated = dataset.storage.metadata.get(_METADATA)
    if stated is None:
        raise InputError(
            f"Minari's {dataset_id!r} was not exported by Lanista: it does not say which "
            "functions were called."
        )
    header = json.loads(stated)
    check_header(header, dataset_id)
    heads = dataset.storage.get_episode_metadata(range(dataset.total_episodes))
    with EpisodeStore.from_header(path, header) as store:
        for data, metadata in zip(dataset.iterate_episodes(), heads, strict=True):
            head = json.loads(metadata[_METADATA])
            episode = _episode(data, head)
            if encode_episode(episode, "replayed").row["content_sha256"] != head["content_sha256"]:
                raise InputError(
                    f"Minari's {dataset_id!r}: episode {data.id} is not what was exported."
                )
            store.add(episode)
    return store


def _minari() -> ModuleType:
    try:
        import minari
    except ImportError as error:
        raise InputError(
            'Minari is not installed; install it with pip install "lanista[minari]".'
        ) from error
    module: ModuleType = minari
    return module


def _bare(store: EpisodeStore) -> Iterator[Episode]:
    return store.episodes(observations=False)


def _action_space(spaces: Any, store: EpisodeStore, actions: NDArray[Any]) -> Any:
    """Return the game's action space, or if the game is not here one that holds what was done."""
    from lanista.envs.game import Game, load_game

    game: Game | None = None
    with contextlib.suppress(InputError):
        game = load_game(store.game_id)
    shape = actions.shape[1:]
    if not shape:
        most = max(int(item.actions.max(initial=0)) for item in _bare(store))
        return spaces.Discrete(max(1 + most, len(game.actions) if game else 0))
    if game is None or game.action_shape != shape:
        return spaces.Box(-np.inf, np.inf, shape, actions.dtype)
    low, high = (
        np.array(bound, actions.dtype).reshape(shape)
        for bound in (game.action_low, game.action_high)
    )
    return spaces.Box(low, high, shape, actions.dtype)


def _box(spaces: Any, observation: NDArray[Any]) -> Any:
    if observation.dtype.kind in "iu":
        limits = np.iinfo(observation.dtype)
        return spaces.Box(limits.min, limits.max, observation.shape, observation.dtype)
    return spaces.Box(-np.inf, np.inf, observation.shape, observation.dtype)


def _head(episode: Episode, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "content_sha256": row["content_sha256"],
        "step_info": list(episode.step_info),
        "key": asdict(episode.key),
        "world_fingerprint": episode.world_fingerprint,
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "summary": dict(episode.summary),
        "fault": None if episode.fault is None else asdict(episode.fault),
    }


def _arrays(episode: Episode, width: int, numbers: Mapping[str, np.dtype[Any]]) -> dict[str, Any]:
    steps = episode.steps
    ends = np.zeros((2, steps), dtype=np.bool_)
    ends[:, -1:] = [[episode.terminated], [episode.truncated]]
    traces = [episode.reset_trace, *(episode.trace(step) for step in range(steps))]
    padded = np.full((steps + 1, width), PADDING, dtype=np.int64)
    for row, trace in zip(padded, traces, strict=True):
        row[: len(trace)] = trace.ids
    counts = np.array([[len(trace)] for trace in traces], dtype=np.int32)
    infos: dict[str, NDArray[Any]] = {_TRACE: padded, _COUNT: counts}
    for name, dtype in numbers.items():
        column = infos[_INFO + name] = np.zeros((steps + 1, 1), dtype)
        column[1:, 0] = episode.step_info.get(name, 0)
    return {
        "observations": episode.observations,
        "actions": episode.actions,
        "rewards": episode.rewards,
        "terminations": ends[0],
        "truncations": ends[1],
        "infos": infos,
    }


def _episode(data: Any, head: dict[str, Any]) -> Episode:
    padded = np.asarray(data.infos[_TRACE])
    counts = np.asarray(data.infos[_COUNT]).reshape(-1)
    traces = [CallTrace(row[:count]) for row, count in zip(padded, counts, strict=True)]
    ids = [trace.ids for trace in traces[1:]]
    return Episode(
        key=EpisodeKey(**head["key"]),
        world_fingerprint=head["world_fingerprint"],
        actions=np.asarray(data.actions),
        rewards=np.asarray(data.rewards, dtype=np.float32),
        trace_ids=np.concatenate(ids) if ids else np.zeros(0, dtype=np.uint16),
        trace_offsets=np.concatenate([[0], np.cumsum(counts[1:], dtype=np.int64)]),
        reset_trace=traces[0],
        terminated=head["terminated"],
        truncated=head["truncated"],
        observations=np.asarray(data.observations),
        step_info={name: np.asarray(data.infos[_INFO + name])[1:, 0] for name in head["step_info"]},
        summary=head["summary"],
        fault=None if head["fault"] is None else Fault(**head["fault"]),
    )
