"""The call trace: the ordered function ids that one step caused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class CallTrace:
    """The ordered ids of the functions called during one step, with repetition.

    An immutable value. It is not a bare array, since ragged arrays in ``info`` crash Gymnasium's
    vector environments.

    Attributes:
        ids: One-dimensional, read-only array of function ids, ``uint16`` where every id fits in
            it and ``uint32`` otherwise; shape ``[calls]``.
    """

    __slots__ = ("_data", "_width")

    _data: bytes
    _width: int

    def __init__(self, ids: Iterable[int] | NDArray[np.integer[Any]] = ()) -> None:
        wide = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype=np.int64)
        if wide.ndim != 1 or (wide.size and (wide.min() < 0 or wide.max() > 0xFFFFFFFF)):
            raise ValueError(f"a call trace is a flat list of ids from 0 to 2**32 - 1, got {ids!r}")
        narrow = wide.astype(np.uint16 if not wide.size or wide.max() <= 0xFFFF else np.uint32)
        _set_data(self, narrow.tobytes())
        _set_width(self, narrow.itemsize)

    @classmethod
    def from_buffer(cls, data: bytes, width: int) -> "CallTrace":
        """Make a trace of ids that lie end to end in memory, in the machine's byte order.

        This is the fast way for a recorder; the trace shares the memory.

        Args:
            data: The ids.
            width: Bytes of each id: 2 or 4.
        """
        if width != 2:
            return cls(np.frombuffer(data, np.uint32))
        trace = _new(cls)
        _set_data(trace, data)
        _set_width(trace, 2)
        return trace

    @property
    def ids(self) -> NDArray[np.unsignedinteger[Any]]:
        """The ids, read-only: ``uint16`` where every one fits in it, else ``uint32``."""
        return np.frombuffer(self._data, np.uint16 if self._width == 2 else np.uint32)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a CallTrace is a value: its {name} cannot be set")

    def __len__(self) -> int:
        """Return the number of calls, repetitions included."""
        return len(self._data) // self._width

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CallTrace):
            return NotImplemented
        return self._width == other._width and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.ids[:8]))
        return f"CallTrace([{shown}{', …' if len(self) > 8 else ''}], calls={len(self)})"

    def __reduce__(self) -> tuple[type["CallTrace"], tuple[NDArray[np.unsignedinteger[Any]]]]:
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


# The slots' own setters pass by __setattr__, which refuses; a recorder makes a trace every step.
_new = object.__new__
_set_data = CallTrace.__dict__["_data"].__set__
_set_width = CallTrace.__dict__["_width"].__set__
