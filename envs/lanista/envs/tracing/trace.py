"""The call trace: the ordered function ids that one step caused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_set = object.__setattr__


class CallTrace:
    """The ordered ids of the functions called during one step, with repetition.

    An immutable value. It is not a bare array, since ragged arrays in ``info`` crash Gymnasium's
    vector environments.

    Attributes:
        ids: One-dimensional, read-only array of function ids, ``uint16`` where every id fits in
            it and ``uint32`` otherwise; shape ``[calls]``.
    """

    __slots__ = ("ids",)

    ids: NDArray[np.unsignedinteger[Any]]

    def __init__(self, ids: Iterable[int] | NDArray[np.integer[Any]] = ()) -> None:
        wide = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype=np.int64)
        if wide.ndim != 1 or (wide.size and (wide.min() < 0 or wide.max() > 0xFFFFFFFF)):
            raise ValueError(f"a call trace is a flat list of ids from 0 to 2**32 - 1, got {ids!r}")
        narrow = wide.astype(np.uint16 if not wide.size or wide.max() <= 0xFFFF else np.uint32)
        narrow.flags.writeable = False
        object.__setattr__(self, "ids", narrow)

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
        trace = cls.__new__(cls)
        _set(trace, "ids", np.frombuffer(data, np.uint16))
        return trace

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a CallTrace is a value: its {name} cannot be set")

    def __len__(self) -> int:
        """Return the number of calls, repetitions included."""
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallTrace) and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash(self.ids.tobytes())

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
