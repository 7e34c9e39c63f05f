"""The record that calls are appended to, and the traces taken from it.

A step's calls stay in the record's list, and its trace remembers where they lie. Packing the calls
of one step into an array costs more than recording them, since the game has meanwhile used the
processor's cache for other things; packing those of many steps at once does not.
"""

import sys

import numpy as np

from lanista.envs.tracing.trace import CallTrace, Ids, inside

SEGMENT_CALLS = 8192
"""Calls after which a record is packed: the list's 64 KiB stay in the processor's cache."""


Piece = int | bytes
"""A call as it is recorded: the id itself where all are below 256, else its bytes."""


class Sink(list[Piece]):
    """The list that records: one piece per call.

    It hashes by identity, since code objects hash their constants.
    """

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


class Segment:
    """A stretch of a record that the calls of many traces lie in.

    Attributes:
        packed: The ids, or ``None`` while they are still in the record's list.
    """

    __slots__ = ("_record", "packed")

    def __init__(self, record: "Record") -> None:
        self._record = record
        self.packed: Ids | None = None

    def read(self, start: int, stop: int) -> Ids:
        """Return the ids of the calls from number ``start`` to before ``stop``."""
        packed = self.packed
        if packed is None:
            found = self._record.join(self._record.sink[start:stop])
            # Another thread may have packed the segment, and emptied the list, before it was read.
            packed = self.packed
            if packed is None:
                return found
        return packed[start:stop]


class Record:
    """The calls of one scope and scheme in this process.

    Attributes:
        sink: The list that every call is appended to, as a piece; the same one for good.
    """

    __slots__ = ("_complete", "_mark", "_segment", "_small", "_width", "sink")

    def __init__(self, functions: int, *, complete: bool) -> None:
        """Make an empty record.

        Args:
            functions: Number of ids that there are.
            complete: Whether every piece is an id; otherwise some are none, for calls that are
                left out.
        """
        self.sink = Sink()
        self._width = 2 if functions <= 0x10000 else 4
        self._small = complete and functions <= 0x100
        self._complete = complete
        self._mark = 0
        self._segment = Segment(self)

    def piece(self, function_id: int | None) -> Piece:
        """Return what to append for a call of a function, ``None`` for one that is left out."""
        if function_id is None:
            return b""
        # Python keeps small numbers for good, and turns a list of them into bytes the fastest.
        return function_id if self._small else function_id.to_bytes(self._width, sys.byteorder)

    def join(self, pieces: list[Piece]) -> Ids:
        """Return the ids of some pieces, ``uint16`` or ``uint32``, read-only."""
        if self._small:
            ids: Ids = np.frombuffer(bytearray(pieces), np.uint8).astype(np.uint16)  # type: ignore[arg-type]
            ids.flags.writeable = False
            return ids
        return np.frombuffer(b"".join(pieces), f"u{self._width}")  # type: ignore[arg-type]

    def clear(self) -> None:
        """Leave the calls since the last trace out of the next."""
        self._mark = len(self.sink)
        if self._mark > SEGMENT_CALLS:
            self.pack()

    def drain(self) -> CallTrace:
        """Return the calls since the last trace or clear."""
        return self.take(self._mark)

    def take(self, start: int) -> CallTrace:
        """Return the calls from item ``start`` of the list on; those before are left out."""
        self._mark = stop = len(self.sink)
        if start > stop:
            # Emptied meanwhile, by a game of this scope that was played inside another.
            start = 0
        trace = inside(self._segment, start, stop)
        if not self._complete:
            # Reads it at once, while every item of the list has its place.
            len(trace.ids)
        if stop > SEGMENT_CALLS:
            self.pack()
        return trace

    def pack(self) -> None:
        """Pack the calls for the traces that lie in the list, and empty it."""
        # Python turns a plain list into bytes in half the time that it takes for a kind of list.
        self._segment.packed = self.join(self.sink[:])
        self._segment = Segment(self)
        self._mark = 0
        self.sink.clear()
