"""One episode as one Parquet file: its columns, its metadata and its content hash.

A file has T + 1 rows. Row t < T holds what the policy saw at t, the action it chose, and the
reward, trace and step numbers that this action caused; row T holds the last observation alone.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lanista.data.episode import Episode, EpisodeKey, Fault
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace

ObservationMode = Literal["stored", "replayed"]

_METADATA = b"lanista"
_INFO = "info."
_COMPRESSION_LEVEL = 3


@dataclass(frozen=True)
class EncodedEpisode:
    """An episode ready to be written.

    Attributes:
        row: What the manifest says of it; plain JSON values.
        calls: How often each function was called: ``[id, steps with it, whole steps with it,
            calls]`` in rising order of ids. A step that a fault broke off is not whole.
        payload: The bytes of its file; empty in one read back from there.
    """

    row: dict[str, Any]
    calls: list[list[int]]
    payload: bytes


def hash_array(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's dtype, shape and values."""
    fixed = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    digest = hashlib.sha256(f"{fixed.dtype.str}{fixed.shape}".encode())
    digest.update(fixed.data if fixed.size else b"")
    return digest.hexdigest()


def encode_episode(episode: Episode, mode: ObservationMode = "stored") -> EncodedEpisode:
    """Turn an episode into the bytes of its file and its manifest row.

    Args:
        episode: With its observations; they are hashed even where they are not stored.
        mode: ``stored`` keeps the observations, ``replayed`` their hash alone.

    Raises:
        InputError: If the episode has no observations, or its arrays do not fit together.
    """
    observations = _check(episode)
    observations_sha256 = hash_array(observations)
    calls = _count_calls(episode)
    head = _head(episode, observations_sha256)
    content_sha256 = _hash_content(episode, head)
    row = {
        "episode_id": episode.key.episode_id,
        **head,
        "content_sha256": content_sha256,
        "observations": mode,
        "steps": episode.steps,
        "whole_steps": _whole_steps(episode),
        "calls": len(episode.trace_ids),
        "longest_trace": int(np.diff(episode.trace_offsets).max(initial=0)),
    }
    shapes = {
        "action": [episode.actions.dtype.str, list(episode.actions.shape[1:])],
        "observation": [observations.dtype.str, list(observations.shape[1:])],
    }
    described = {
        "row": row,
        "calls": calls,
        "shapes": shapes,
        "traceback": "" if episode.fault is None else episode.fault.traceback,
    }
    payload = _write_table(episode, observations if mode == "stored" else None, described)
    row["file"] = file_name(episode.key)
    row["sha256"] = hashlib.sha256(payload).hexdigest()
    row["bytes"] = len(payload)
    return EncodedEpisode(row, calls, payload)


def file_name(key: EpisodeKey) -> str:
    """Return the name of an episode's file below the store's folder."""
    return f"episodes/{key.episode_id}-{key.seat}.parquet"


def read_row(payload: bytes, file: str) -> EncodedEpisode:
    """Read back what an episode's file says of itself.

    Raises:
        InputError: If this is no episode's file.
    """
    _, described = _open(payload, file)
    row = dict(described["row"])
    row["file"] = file
    row["sha256"] = hashlib.sha256(payload).hexdigest()
    row["bytes"] = len(payload)
    return EncodedEpisode(row, described["calls"], b"")


def decode_episode(payload: bytes, file: str, *, observations: bool = True) -> Episode:
    """Read an episode from the bytes of its file.

    Args:
        payload: The whole file.
        file: Its name, for messages.
        observations: Whether to read the observations, if they are stored.

    Raises:
        InputError: If the file is corrupt.
    """
    parquet, described = _open(payload, file)
    names = parquet.schema_arrow.names
    wanted = [name for name in names if observations or name != "observation"]
    try:
        table = parquet.read(columns=wanted)
        row = described["row"]
        rows = row["steps"]
        played = table.slice(0, rows)
        traces = played.column("trace").combine_chunks()
        offsets = _list_offsets(traces, rows)
        reset = table.column("reset_trace").combine_chunks()
        return Episode(
            key=EpisodeKey(**row["key"]),
            world_fingerprint=row["world_fingerprint"],
            actions=_fixed_array(played.column("action"), described["shapes"]["action"]),
            rewards=_numbers(played.column("reward")),
            trace_ids=np.array(
                traces.values.to_numpy(zero_copy_only=False)[offsets[0] : offsets[-1]]
            ),
            trace_offsets=offsets - offsets[0],
            reset_trace=CallTrace(reset[0].values.to_numpy(zero_copy_only=False)),
            terminated=row["terminated"],
            truncated=row["truncated"],
            observations=_fixed_array(
                table.column("observation"), described["shapes"]["observation"]
            )
            if "observation" in wanted
            else None,
            step_info={
                name.removeprefix(_INFO): _numbers(played.column(name))
                for name in names
                if name.startswith(_INFO)
            },
            summary=row["summary"],
            fault=None
            if row["fault"] is None
            else Fault(**row["fault"], traceback=described["traceback"]),
        )
    except (pa.ArrowException, KeyError, TypeError, ValueError, IndexError, OSError) as error:
        raise InputError(f"{file} is corrupt: {_one_line(error)}.") from error


def content_hash(episode: Episode, observations_sha256: str) -> str:
    """Return the hash of what happened in an episode, however it is stored.

    A fault's traceback is left out of it.
    """
    return _hash_content(episode, _head(episode, observations_sha256))


def _head(episode: Episode, observations_sha256: str) -> dict[str, Any]:
    fault = None if episode.fault is None else asdict(episode.fault)
    if fault is not None:
        # The traceback tells of the code around the game too, which may change.
        del fault["traceback"]
    return {
        "key": asdict(episode.key),
        "world_fingerprint": episode.world_fingerprint,
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "summary": {str(name): int(count) for name, count in episode.summary.items()},
        "fault": fault,
        "observations_sha256": observations_sha256,
    }


def _hash_content(episode: Episode, head: Mapping[str, Any]) -> str:
    arrays = {
        "actions": episode.actions,
        "rewards": episode.rewards,
        # The ids' values count, whichever width a producer chose for them.
        "trace_ids": episode.trace_ids.astype(np.uint32),
        "trace_offsets": episode.trace_offsets,
        "reset_trace": episode.reset_trace.ids.astype(np.uint32),
        **{_INFO + name: values for name, values in episode.step_info.items()},
    }
    value = {**head, "arrays": {name: hash_array(array) for name, array in arrays.items()}}
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _check(episode: Episode) -> NDArray[Any]:
    """Return the observations of an episode whose parts fit together."""
    key, steps, observations = episode.key, episode.steps, episode.observations
    where = f"The episode of world {key.world}, seat {key.seat}"
    if observations is None:
        raise InputError(f"{where} has no observations; play it with keep_observations=True.")
    offsets = episode.trace_offsets
    problems = []
    if len(observations) != steps + 1:
        problems.append(f"{where} has {steps} actions, {len(observations)} observations.")
    if observations.dtype.hasobject or episode.actions.dtype.hasobject:
        problems.append(f"{where} holds objects, not numbers.")
    if len(episode.rewards) != steps:
        problems.append(f"{where} has {steps} actions, {len(episode.rewards)} rewards.")
    if len(offsets) != steps + 1 or offsets[0] != 0 or offsets[-1] != len(episode.trace_ids):
        problems.append(f"{where} has trace offsets that do not match its traces.")
    elif np.any(np.diff(offsets) < 0):
        problems.append(f"{where} has falling trace offsets.")
    if episode.trace_ids.dtype not in (np.uint16, np.uint32):
        problems.append(f"{where} has trace ids that are {episode.trace_ids.dtype}.")
    for name, values in episode.step_info.items():
        if values.shape != (steps,) or values.dtype.kind not in "biuf":
            problems.append(f"{where}: step_info {name!r} is no number a step.")
    if problems:
        raise InputError(*problems)
    return observations


def _whole_steps(episode: Episode) -> int:
    """Count the steps that ran to their end; a fault of the game breaks its step off."""
    broken = episode.fault is not None and episode.fault.kind != "player" and episode.steps > 0
    return episode.steps - int(broken)


def _count_calls(episode: Episode) -> list[list[int]]:
    ids = episode.trace_ids.astype(np.int64)
    steps = np.repeat(np.arange(episode.steps), np.diff(episode.trace_offsets))
    if not len(ids):
        return []
    functions, within, calls = np.unique(ids, return_inverse=True, return_counts=True)
    # A pair of a function and a step is one number, since sorting those is quick.
    pairs = np.unique(within * episode.steps + steps)
    function, step = np.divmod(pairs, episode.steps)
    present = np.bincount(function, minlength=len(functions))
    whole = np.bincount(function[step < _whole_steps(episode)], minlength=len(functions))
    columns = zip(functions, present, whole, calls, strict=True)
    return [[int(value) for value in column] for column in columns]


def _write_table(
    episode: Episode,
    observations: NDArray[Any] | None,
    described: Mapping[str, Any],
) -> bytes:
    steps = episode.steps
    reset = pa.array(episode.reset_trace.ids)
    columns: dict[str, Any] = {
        "action": _action_column(episode.actions),
        "reward": _with_null(pa.array(episode.rewards.astype(np.float32))),
        "trace": _trace_column(episode),
        "reset_trace": pa.ListArray.from_arrays(
            pa.array([0, *([len(reset)] * (steps + 1))], type=pa.int32()),
            reset,
            mask=pa.array([False, *([True] * steps)]),
        ),
    }
    for name, values in episode.step_info.items():
        columns[_INFO + name] = _with_null(pa.array(values))
    if observations is not None:
        columns["observation"] = _byte_rows(observations)
    metadata = json.dumps(described, sort_keys=True).encode()
    table = pa.table(columns).replace_schema_metadata({_METADATA: metadata})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=len(table),
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        use_dictionary=False,
        write_statistics=False,
    )
    return bytes(sink.getvalue())


def _byte_rows(array: NDArray[Any]) -> Any:
    """Return an array's rows as fixed-size binary values, without copying them."""
    fixed = np.ascontiguousarray(array)
    width = fixed.nbytes // len(fixed) if len(fixed) else fixed.dtype.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(fixed), [None, pa.py_buffer(fixed.tobytes())]
    )


def _action_column(actions: NDArray[Any]) -> Any:
    if actions.ndim == 1:
        return _with_null(pa.array(actions))
    width = int(np.prod(actions.shape[1:]))
    offsets = pa.array(np.arange(len(actions) + 1, dtype=np.int32) * width)
    return _with_null(pa.ListArray.from_arrays(offsets, pa.array(actions.reshape(-1))))


def _with_null(column: Any) -> Any:
    """Add the empty value of the last row, at which no action was taken."""
    return pa.concat_arrays([column, pa.nulls(1, column.type)])


def _trace_column(episode: Episode) -> Any:
    offsets = episode.trace_offsets.astype(np.int32)
    column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(episode.trace_ids))
    return _with_null(column)


def _open(payload: bytes, file: str) -> tuple[Any, dict[str, Any]]:
    try:
        parquet = pq.ParquetFile(pa.BufferReader(payload))
        described = json.loads(parquet.schema_arrow.metadata[_METADATA])
        if missing := {"row", "calls", "shapes", "traceback"} - described.keys():
            raise KeyError(*sorted(missing))
    except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{file} is no episode's file: {_one_line(error)}.") from error
    return parquet, described


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")


def _numbers(column: Any) -> NDArray[Any]:
    joined = column.combine_chunks()
    return np.array(joined.to_numpy(zero_copy_only=False), dtype=joined.type.to_pandas_dtype())


def _list_offsets(lists: Any, rows: int) -> NDArray[np.int64]:
    if not rows:
        return np.zeros(1, dtype=np.int64)
    return np.asarray(lists.offsets.to_numpy(), dtype=np.int64)[: rows + 1]


def _fixed_array(column: Any, form: list[Any]) -> NDArray[Any]:
    """Read a column whose rows all have one shape: ``form`` is its dtype and that shape."""
    joined = column.combine_chunks()
    dtype, shape = np.dtype(form[0]), tuple(form[1])
    if pa.types.is_fixed_size_binary(joined.type):
        width = joined.type.byte_width
        data = np.frombuffer(joined.buffers()[1] or b"", dtype=np.uint8)
        flat = data[joined.offset * width : (joined.offset + len(joined)) * width].view(dtype)
    elif pa.types.is_list(joined.type):
        flat = joined.flatten().to_numpy(zero_copy_only=False)
    else:
        flat = joined.to_numpy(zero_copy_only=False)
    return np.array(flat, dtype=dtype).reshape(len(joined), *shape)
