"""The call trace: the ordered function ids that one step caused."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.unsignedinteger[Any]]


class Calls(Protocol):
    """What holds the ids of many traces until they are asked for."""

    def read(self, start: int, stop: int) -> Ids:
        """Return the ids of the calls from number ``start`` to before ``stop``.

        Returns:
            Read-only array of ``uint16`` or ``uint32``, shape ``[stop - start]``.
        """


class CallTrace:
    """The ordered ids of the functions called during one step, with repetition.

    An immutable value. It is not a bare array, since ragged arrays in ``info`` crash Gymnasium's
    vector environments.

    Attributes:
        ids: One-dimensional, read-only array of function ids, ``uint16`` where every id fits in
            it and ``uint32`` otherwise; shape ``[calls]``.
    """

    __slots__ = ("_ids",)

    _ids: Ids | tuple[Calls, int, int]

    def __init__(self, ids: Iterable[int] | NDArray[np.integer[Any]] = ()) -> None:
        if type(ids) is tuple and not ids:
            # Every step of a game makes an empty one, for the recorder to replace.
            _set_ids(self, _NO_IDS)
            return
        wide = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype=np.int64)
        if wide.ndim != 1 or (wide.size and (wide.min() < 0 or wide.max() > 0xFFFFFFFF)):
            raise ValueError(f"a call trace is a flat list of ids from 0 to 2**32 - 1, got {ids!r}")
        _set_ids(self, _narrowed(wide))

    @property
    def ids(self) -> Ids:
        """The ids, read-only: ``uint16`` where every one fits in it, else ``uint32``."""
        found = self._ids
        if type(found) is tuple:
            calls, start, stop = found
            found = calls.read(start, stop)
            if found.itemsize != 2:
                found = _narrowed(found)
            _set_ids(self, found)
        return found  # type: ignore[return-value]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a CallTrace is a value: its {name} cannot be set")

    def __len__(self) -> int:
        """Return the number of calls, repetitions included."""
        found = self._ids
        return found[2] - found[1] if type(found) is tuple else len(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CallTrace):
            return NotImplemented
        return bool(np.array_equal(self.ids, other.ids))

    def __hash__(self) -> int:
        return hash(self.ids.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.ids[:8]))
        return f"CallTrace([{shown}{', …' if len(self) > 8 else ''}], calls={len(self)})"

    def __reduce__(self) -> tuple[type["CallTrace"], tuple[Ids]]:
        return CallTrace, (self.ids,)

    def __contains__(self, function_id: object) -> bool:
        return bool(np.any(self.ids == function_id))

    def bag(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct ids in rising order and how often each was called.

        Returns:
            Two ``int64`` arrays of shape ``[distinct]``: the ids and their counts.
        """
        ids, counts = np.unique(self.ids.astype(np.int64), return_counts=True)
        return ids, counts.astype(np.int64)


def _narrowed(wide: NDArray[np.integer[Any]]) -> Ids:
    narrow: Ids = wide.astype(np.uint16 if not wide.size or wide.max() <= 0xFFFF else np.uint32)
    narrow.flags.writeable = False
    return narrow


def inside(calls: Calls, start: int, stop: int) -> CallTrace:
    """Make a trace of ids that are read when they are first asked for.

    This is the fast way for a recorder, which makes a trace in every step.

    Args:
        calls: What holds the ids; those meant must never change.
        start: Number of the first call.
        stop: Number after that of the last.
    """
    trace = _new(CallTrace)
    _set_ids(trace, (calls, start, stop))
    return trace


_NO_IDS = _narrowed(np.zeros(0, np.int64))
# The slot's own setter passes by __setattr__, which refuses; a recorder makes a trace every step.
_new = object.__new__
_set_ids = CallTrace.__dict__["_ids"].__set__
