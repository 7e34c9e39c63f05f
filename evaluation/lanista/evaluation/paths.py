"""A tester's view: the shortest recorded way to each function, and what nobody reached."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.data.episode import Episode
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.evaluation.findings import Tape, plain_name, tape_from_json, write_json


@dataclass(frozen=True)
class RecordedPath:
    """The shortest recorded action list that reaches a function.

    Attributes:
        function: Full name of the function.
        tape: The play up to and with the step that called it.
    """

    function: str
    tape: Tape

    @property
    def steps(self) -> int:
        """Number of actions, 1 for a function that the first action reaches."""
        return len(self.tape.actions)

    @property
    def file_name(self) -> str:
        """Name of the path's file, readable and the same for the same function."""
        return f"{plain_name(self.function)}.json"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value from which :meth:`from_json` makes an equal path."""
        return {"format": "lanista-path", "version": 1, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RecordedPath":
        """Make a path of what :meth:`to_json` returned.

        Raises:
            InputError: If the value does not have that form.
        """
        try:
            return cls(str(value["function"]), tape_from_json(value["tape"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not a recorded path: {error!r}.") from error


def first_calls(episode: Episode, functions: int) -> NDArray[np.int64]:
    """Return the step that first called each function, -1 where none did.

    Reset's calls don't count: they are not what an action reached.

    Args:
        episode: A play.
        functions: Size of the catalogue.

    Returns:
        ``int64[functions]``, steps from 0.
    """
    found = np.full(functions, -1, dtype=np.int64)
    ids, positions = np.unique(episode.trace_ids.astype(np.int64), return_index=True)
    found[ids] = np.searchsorted(episode.trace_offsets, positions, side="right") - 1
    return found


def shortest_paths(
    episodes: Iterable[Episode], catalogue: Catalogue, engine: Mapping[str, str]
) -> tuple[RecordedPath, ...]:
    """Find the shortest recorded path to each function that any of the episodes reached.

    Args:
        episodes: Plays of one game under one catalogue, from an evaluation or a store.
        catalogue: What their ids mean.
        engine: The engine they were played on.

    Returns:
        One path a function reached, by name; the same in whatever order the episodes come.

    Raises:
        InputError: If an episode was recorded under another catalogue.
    """
    best: dict[str, RecordedPath] = {}
    for episode in episodes:
        if episode.key.catalogue_sha256 != catalogue.sha256:
            raise InputError(
                f"Episode {episode.key.episode_id} records other functions than this catalogue."
            )
        first = first_calls(episode, len(catalogue))
        tape: Tape | None = None
        for function in np.flatnonzero(first >= 0):
            name, steps = catalogue.name(int(function)), int(first[function]) + 1
            known = best.get(name)
            if known is not None and known.steps < steps:
                continue
            tape = tape or Tape.of(episode, engine, catalogue.scheme)
            candidate = RecordedPath(name, _cut(tape, steps))
            best[name] = candidate if known is None else min(known, candidate, key=_preference)
    return tuple(best[name] for name in sorted(best))


def merge_paths(groups: Iterable[Sequence[RecordedPath]]) -> tuple[RecordedPath, ...]:
    """Keep the shortest path to each function; the order of the groups does not matter."""
    best: dict[str, RecordedPath] = {}
    for path in (path for group in groups for path in group):
        known = best.get(path.function)
        best[path.function] = path if known is None else min(known, path, key=_preference)
    return tuple(best[name] for name in sorted(best))


def unreached(paths: Iterable[RecordedPath], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the functions of the catalogue that no path reaches, by name."""
    reached = {path.function for path in paths}
    return tuple(item.name for item in catalogue.functions if item.name not in reached)


def save_paths(paths: Sequence[RecordedPath], folder: Path) -> list[Path]:
    """Write one file a path, each playable by ``lanista replay``, and return where they are."""
    files = [folder / path.file_name for path in paths]
    for path, file in zip(paths, files, strict=True):
        write_json(file, path.to_json())
    return files


def _cut(tape: Tape, steps: int) -> Tape:
    from dataclasses import replace

    return replace(tape, actions=tape.actions[:steps], digests=tape.digests[:steps])


def _preference(path: RecordedPath) -> tuple[int, int, str, tuple[Any, ...]]:
    tape = path.tape
    return path.steps, tape.world, tape.goal or "", tape.actions
