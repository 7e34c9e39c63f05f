"""Shortest ways over a grid of entry costs: Dial's bucket queue, compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numba
import numpy as np
from numpy.typing import NDArray

BLOCKED = 255
"""The cost of a cell that cannot be entered."""
MAX_COST = 63
"""The highest cost of a cell that can be entered; what is above it counts as this much."""
FAR = 1 << 29
"""The distance of a cell that cannot be reached."""

Cell = tuple[int, int]


@dataclass(frozen=True)
class DistanceField:
    """How far every cell is from a source, and over which neighbour it is reached.

    Attributes:
        source: The cell that distances are counted from.
        distance: ``int32[width, height]``, ``FAR`` where no way leads.
        parent: ``int32[width, height]``, flat index of the cell before on a shortest way, itself
            at the source and where no way leads.
    """

    source: Cell
    distance: NDArray[np.int32]
    parent: NDArray[np.int32]

    def first_step(self, cell: Cell) -> Cell | None:
        """Return the source's neighbour on the way to ``cell``, or ``None`` if there is no way."""
        height = self.parent.shape[1]
        if cell == self.source or self.distance[cell] >= FAR:
            return None
        start = self.source[0] * height + self.source[1]
        current = cell
        while True:
            before = int(self.parent[current])
            if before == start:
                return current
            current = divmod(before, height)


def distance_field(cost: NDArray[np.uint8], source: Cell) -> DistanceField:
    """Compute the shortest distances from ``source`` to every cell by steps in four directions.

    Args:
        cost: ``uint8[width, height]``: what it costs to enter each cell, at least 1, capped at
            ``MAX_COST``; ``BLOCKED`` where it cannot be entered. The source's own cost is not paid.
        source: The cell to start from.

    Returns:
        The distances and the ways; among equally short ways always the same one.
    """
    distance, parent = _search(np.ascontiguousarray(cost), source[0], source[1])
    return DistanceField(source, distance, parent)


def _dial(cost: NDArray[np.uint8], x: int, y: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    width, height = cost.shape
    cells = width * height
    distance = np.full(cells, FAR, dtype=np.int32)
    parent = np.arange(cells).astype(np.int32)
    # A cell is queued at most once per neighbour, so this many entries are enough.
    entry_cell = np.empty(4 * cells + 1, dtype=np.int32)
    entry_next = np.empty(4 * cells + 1, dtype=np.int32)
    heads = np.full(MAX_COST + 1, -1, dtype=np.int32)
    source = x * height + y
    distance[source] = 0
    entry_cell[0], entry_next[0] = source, -1
    heads[0] = 0
    entries, waiting, current = 1, 1, 0
    while waiting:
        bucket = current % (MAX_COST + 1)
        entry = heads[bucket]
        heads[bucket] = -1
        while entry >= 0:
            cell = entry_cell[entry]
            entry = entry_next[entry]
            waiting -= 1
            if distance[cell] != current:
                continue
            row, column = cell // height, cell % height
            for direction in range(4):
                if direction == 0:
                    if row == 0:
                        continue
                    neighbour = cell - height
                elif direction == 1:
                    if row == width - 1:
                        continue
                    neighbour = cell + height
                elif direction == 2:
                    if column == 0:
                        continue
                    neighbour = cell - 1
                else:
                    if column == height - 1:
                        continue
                    neighbour = cell + 1
                step = cost[neighbour // height, neighbour % height]
                if step == BLOCKED:
                    continue
                reached = current + min(max(step, 1), MAX_COST)
                if reached < distance[neighbour]:
                    distance[neighbour] = reached
                    parent[neighbour] = cell
                    slot = reached % (MAX_COST + 1)
                    entry_cell[entries] = neighbour
                    entry_next[entries] = heads[slot]
                    heads[slot] = entries
                    entries += 1
                    waiting += 1
        current += 1
    return distance.reshape(width, height), parent.reshape(width, height)


_search = cast(
    "Callable[[NDArray[np.uint8], int, int], tuple[NDArray[np.int32], NDArray[np.int32]]]",
    numba.njit(cache=True)(_dial),
)
