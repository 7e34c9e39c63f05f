"""From a target to the next button: walking, digging, bridging and facing."""

import functools
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from lanista.agents.experts.crafter.pathfinding import (
    BLOCKED,
    FAR,
    MAX_COST,
    DistanceField,
    distance_field,
)
from lanista.agents.experts.crafter.worldmap import (
    DIRECTIONS,
    MOVES,
    Cell,
    Direction,
    Situation,
    add,
    shifted,
)

_DIG_COST = 2
_TREE_COST = 3
_BRIDGE_COST = 5
_CREATURE_COST = 5
"""Entering a cell costs one step, and these where something has to be cleared first."""


class Navigator:
    """Finds ways through one situation. Every method returns an action's name, or ``None``."""

    def __init__(
        self,
        situation: Situation,
        *,
        fearless: bool = False,
        caution: int = 1,
        forbidden: Collection[Cell] = (),
    ) -> None:
        """Prepare for one step.

        Args:
            situation: The game as it stands.
            fearless: Whether nearness to hostile creatures is no reason for a detour.
            caution: How many steps of detour one hostile creature is worth at its own cell.
            forbidden: Cells that must be neither entered nor dug, like a sapling's fence.
        """
        self.situation = situation
        self._fearless = fearless
        self._caution = caution
        self._forbidden = tuple(forbidden)

    @functools.cached_property
    def _cost(self) -> NDArray[np.uint8]:
        situation = self.situation
        by_material = np.full(256, BLOCKED, dtype=np.int32)
        costs = dict.fromkeys(situation.diggable, _DIG_COST)
        costs.update(grass=1, sand=1, path=1)
        if "tree" in costs:
            costs["tree"] = _TREE_COST
        if situation.can_bridge:
            costs["water"] = _BRIDGE_COST
        for identity, name in situation._names.items():
            if name in costs:
                by_material[identity] = costs[name]
        cost = by_material[situation.materials]
        cost[situation.occupied] += _CREATURE_COST
        for cell in (*situation.plants, *self._forbidden):
            if situation.inside(cell):
                cost[cell] = BLOCKED
        if not self._fearless:
            for cell in situation.zombies:
                self._add_fear(cost, cell, 3, self._caution)
            for cell in situation.skeletons:
                self._add_fear(cost, cell, 7, self._caution)
        passable = cost < BLOCKED
        return np.where(passable, np.minimum(cost, MAX_COST), BLOCKED).astype(np.uint8)

    @staticmethod
    def _add_fear(cost: NDArray[np.int32], cell: Cell, radius: int, weight: int) -> None:
        x, y = cell
        left, top = max(0, x - radius), max(0, y - radius)
        area = cost[left : x + radius + 1, top : y + radius + 1]
        across = np.abs(np.arange(left, left + area.shape[0]) - x)[:, None]
        down = np.abs(np.arange(top, top + area.shape[1]) - y)[None, :]
        fear = weight * np.maximum(radius - across - down, 0)
        area += np.where(area < BLOCKED, fear, 0)

    @functools.cached_property
    def field(self) -> DistanceField:
        """Distances from the player to everywhere, worked out once a step."""
        return distance_field(self._cost, self.situation.position)

    def distance(self, cell: Cell) -> int:
        """Return the cost of the way to a cell, ``FAR`` or more if none leads there."""
        return int(self.field.distance[cell]) if self.situation.inside(cell) else FAR

    def nearness(self, target: NDArray[np.bool_]) -> int:
        """Return the cost of the way to the nearest cell beside a target, ``FAR`` if none."""
        return self._stand(target)[0]

    def enter(self, cell: Cell) -> str | None:
        """Return the button that brings the player closer to standing on a neighbouring cell."""
        situation = self.situation
        direction = (cell[0] - situation.position[0], cell[1] - situation.position[1])
        material, thing = situation.material(cell), situation.thing(cell)
        if material == "lava" or direction not in MOVES:
            return None
        if thing is not None:
            if situation.facing != direction:
                return MOVES[direction]
            return "do" if cell in situation.hostiles or cell in situation.cows else "noop"
        if situation.is_walkable(cell) or situation.facing != direction:
            return MOVES[direction]
        if material in situation.diggable:
            return "do"
        if material == "water" and situation.can_bridge:
            return "place_stone"
        return None

    def walk_to(self, cell: Cell) -> str | None:
        """Return the next button on the way to standing on a cell; ``None`` if there or no way."""
        step = self.field.first_step(cell)
        return None if step is None else self.enter(step)

    def face(self, target: NDArray[np.bool_]) -> str | None:
        """Return the next button towards facing a cell that blocks the way, like a tree.

        Args:
            target: ``bool[width, height]``: the cells that will do.

        Returns:
            A button, or ``None`` if no such cell can be reached (or the player faces one).
        """
        distance, stand, direction = self._stand(target)
        if distance >= FAR or direction is None:
            return None
        if stand == self.situation.position:
            return MOVES[direction]
        return self.walk_to(stand)

    def _stand(self, target: NDArray[np.bool_]) -> tuple[int, Cell, Direction | None]:
        best: tuple[int, Cell, Direction | None] = (FAR, (0, 0), None)
        if not target.any():
            return best
        for direction in DIRECTIONS:
            reached = np.where(shifted(target, direction, fill=False), self.field.distance, FAR)
            flat = int(reached.argmin())
            distance = int(reached.flat[flat])
            if distance < best[0]:
                best = distance, divmod(flat, self.situation.height), direction
        return best

    def face_free(
        self, target: NDArray[np.bool_], stands: NDArray[np.bool_] | None = None
    ) -> str | None:
        """Return the next button towards facing a cell that is free.

        Moving towards a free cell enters it, so one has to come from the far side of the stand.

        Args:
            target: ``bool[width, height]``: the cells that will do.
            stands: ``bool[width, height]``: cells to face it from, everywhere if ``None``.

        Returns:
            A button, or ``None`` if no such place can be reached (or the player faces one).
        """
        situation = self.situation
        standing = situation.standable if stands is None else situation.standable & stands
        placeable = target & situation.standable  # from its own cell the player will step off
        best, plan = FAR, None
        for direction in DIRECTIONS:
            facing = shifted(placeable, direction, fill=False) & standing
            back = (-direction[0], -direction[1])
            distance = np.where(facing, shifted(self.field.distance, back, fill=FAR), FAR)
            flat = int(distance.argmin())
            reached = int(distance.flat[flat])
            if reached < best:
                best, plan = reached, (divmod(flat, situation.height), direction)
        if plan is None:
            return None
        stand, direction = plan
        start = add(stand, direction, -1)
        return MOVES[direction] if start == situation.position else self.walk_to(start)

    def leave(self) -> str | None:
        """Return a button that steps on any free neighbouring cell, the lowest direction first."""
        for direction in DIRECTIONS:
            if self.situation.is_free(add(self.situation.position, direction)):
                return MOVES[direction]
        return None
