"""A sapling's life: planted where little fencing is needed, fenced, waited for and eaten."""

import numpy as np
from crafter import constants

from lanista.agents.experts.crafter import crafting, gathering, shelter
from lanista.agents.experts.crafter.movement import Navigator
from lanista.agents.experts.crafter.pathfinding import FAR
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import DIRECTIONS, Cell, add, between, shifted

_FENCE_COST = 7
"""Steps that closing one more side of a sapling takes."""
_SIGHT = 16
"""A sapling grows only while the player is at most this many steps off."""


def plant(turn: Turn) -> str | None:
    """Return the next button towards planting a sapling where few sides are open.

    Returns:
        A button, or ``None`` if there is no sapling to be had or no place for it.
    """
    now = turn.now
    if not now.has(sapling=1):
        return gathering.collect(turn, "grass")
    grass, tree = now.mask("grass") & now.free, now.mask("tree")
    if constants.collect["tree"]["leaves"] != "grass":
        tree[:] = False
    open_sides = np.zeros(now.materials.shape, dtype=np.int64)
    for direction in DIRECTIONS:
        open_sides += shifted(now.walkable, direction, fill=False)
    # The side that it is planted from counts too, and is always open.
    fences = _FENCE_COST * np.maximum(open_sides - 1, 0)
    distance = turn.ways.field.distance
    best, site, free = FAR, None, False
    for direction in DIRECTIONS:
        back = (-direction[0], -direction[1])
        twice = (2 * back[0], 2 * back[1])
        stand = shifted(distance, back, fill=FAR)
        run_up = np.where(
            shifted(now.standable, back, fill=False), shifted(distance, twice, fill=FAR), FAR
        )
        if now.facing == direction and now.inside(now.front):
            run_up[now.front] = 0
        for target, cost, is_free in ((grass, run_up + 1, True), (tree, stand + 2, False)):
            total = np.where(target & (cost < FAR), cost + fences, FAR)
            flat = int(total.argmin())
            if int(total.flat[flat]) < best:
                best, site, free = int(total.flat[flat]), divmod(flat, now.height), is_free
    if site is None:
        return None
    if now.front == site:
        return "place_plant" if free else "do"
    mask = now.cells_mask([site])
    return turn.ways.face_free(mask) if free else turn.ways.face(mask)


def open_sides(turn: Turn, cell: Cell) -> list[Cell]:
    """Return the neighbours of a sapling from which a creature could trample it."""
    return [side for direction in DIRECTIONS if turn.now.is_walkable(side := add(cell, direction))]


def fence(turn: Turn) -> str | None:
    """Return the next button towards closing every side of the saplings that stand.

    Returns:
        A button, or ``None`` if all are closed, or stones or a way to them are wanting.
    """
    now = turn.now
    for cell in sorted(now.plants, key=lambda cell: between(cell, now.position)):
        sides = open_sides(turn, cell)
        if not sides:
            continue
        if not now.has(stone=1):
            return crafting.obtain(turn, "stone")
        if now.front in sides and now.is_free(now.front):
            return "place_stone"
        intruders = [side for side in sides if side in now.cows or side in now.hostiles]
        if intruders:
            return gathering.strike(turn, intruders, fearless=True)
        action = turn.ways.face_free(now.cells_mask(sides))
        if action is not None:
            return action
    return None


def eat(turn: Turn) -> str | None:
    """Return the next button towards eating a ripe plant, its fence being dug away for that.

    Returns:
        A button, or ``None`` if no ripe plant can be reached.
    """
    now = turn.now
    ripe = [cell for cell, thing in now.plants.items() if thing.ripe]
    if now.front in ripe:
        return "do"
    return Navigator(now).face(now.cells_mask(ripe)) if ripe else None


def wait(turn: Turn) -> str | None:
    """Return the next button towards passing time in safety where the nearest sapling grows.

    Returns:
        A button, or ``None`` if there is no sapling.
    """
    now = turn.now
    if not now.plants:
        return None
    nearest = min(now.plants, key=lambda cell: between(cell, now.position))
    if between(nearest, now.position) > _SIGHT:
        around = now.cells_mask(add(nearest, way, times) for way in DIRECTIONS for times in (1, 2))
        if action := turn.ways.face(around):
            return action
    if shelter.is_enclosed(now):
        return shelter.pass_time(now)
    return shelter.hide(turn, near=nearest)
