"""Making tools and placing things, with whatever these take obtained first."""

from typing import Any

import numpy as np
from crafter import constants
from numpy.typing import NDArray

from lanista.agents.experts.crafter import gathering
from lanista.agents.experts.crafter.pathfinding import FAR
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import DIRECTIONS, MOVES, add, shifted

_WORTH_WALKING = {"table": 14, "furnace": 30}
"""Up to how far off a station is used rather than a new one placed."""


def source_of(item: str) -> str:
    """Return the material that gives an item, like tree for wood."""
    rules: dict[str, dict[str, Any]] = constants.collect
    return next(name for name, rule in rules.items() if item in rule["receive"])


def obtain(turn: Turn, item: str, amount: int = 1) -> str | None:
    """Return the next button towards holding some of an item.

    Tools that the item's material takes are made first.

    Returns:
        A button, or ``None`` if there is enough already or no way to get it.
    """
    if turn.now.inventory[item] >= amount:
        return None
    if item in constants.make:
        return make(turn, item)
    return procure(turn, source_of(item))


def procure(turn: Turn, material: str) -> str | None:
    """Return the next button towards taking a material, its tool being made first."""
    for tool, amount in constants.collect[material]["require"].items():
        if turn.now.inventory[tool] < amount:
            return obtain(turn, tool, amount)
    return gathering.collect(turn, material)


def make(turn: Turn, item: str) -> str | None:
    """Return the next button towards making a tool.

    Ingredients come first, then the stations, old or new ones.

    Returns:
        A button, or ``None`` if something that it takes cannot be had.
    """
    rule = constants.make[item]
    stations = tuple(rule["nearby"])
    beside = _beside(turn, stations)
    ready = _nearest(turn, beside)
    limit = max(_WORTH_WALKING[station] for station in stations)
    rebuild = ready > limit
    needed = dict(rule["uses"])
    if rebuild:
        near_table = "table" in stations and _nearest(turn, _beside(turn, ("table",))) <= limit
        for station in stations:
            if station == "table" and near_table:
                continue
            for name, amount in constants.place[station]["uses"].items():
                needed[name] = needed.get(name, 0) + amount
    for name, amount in needed.items():
        if turn.now.inventory[name] < amount:
            action = obtain(turn, name, amount)
            if action is None and rebuild and ready < FAR:
                break  # nothing left to build a new station from: walk to the old one
            return action
    else:
        if rebuild:
            return _build(turn, stations)
    if beside[turn.now.position]:
        return f"make_{item}"
    return _walk_to(turn, beside)


def place(turn: Turn, item: str, stands: NDArray[np.bool_] | None = None) -> str | None:
    """Return the next button towards placing something close by.

    Args:
        turn: This step's knowledge.
        item: What to place, as the game names it.
        stands: ``bool[width, height]``: cells to place it from, anywhere if ``None``.

    Returns:
        A button, or ``None`` if what it takes cannot be had or there is no room.
    """
    rule = constants.place[item]
    for name, amount in rule["uses"].items():
        if turn.now.inventory[name] < amount:
            return obtain(turn, name, amount)
    now = turn.now
    stands_here = stands is None or bool(stands[now.position])
    if now.material(now.front) in rule["where"] and now.thing(now.front) is None and stands_here:
        return f"place_{item}"
    if stands_here:
        for direction in DIRECTIONS:  # room can be dug where there is none
            if now.material(add(now.position, direction)) in now.diggable:
                return "do" if now.facing == direction else MOVES[direction]
    return turn.ways.face_free(now.mask(*rule["where"]), stands)


def _build(turn: Turn, stations: tuple[str, ...]) -> str | None:
    """Place the stations that are missing, each from where the ones before are in reach."""
    stands = np.ones(turn.now.materials.shape, dtype=np.bool_)
    for station in stations:
        beside = _beside(turn, (station,))
        if _nearest(turn, beside & stands) > _WORTH_WALKING["table"]:
            return place(turn, station, None if stands.all() else stands)
        stands &= beside
    return _walk_to(turn, stands)


def _beside(turn: Turn, stations: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return ``bool[width, height]``: cells with every station in the 3 x 3 around them."""
    result = np.ones(turn.now.materials.shape, dtype=np.bool_)
    # The game's own look around wraps at the first row and column and finds nothing there.
    result[0, :] = result[:, 0] = False
    for station in stations:
        here = turn.now.mask(station)
        rows = here | shifted(here, (-1, 0), fill=False) | shifted(here, (1, 0), fill=False)
        result &= rows | shifted(rows, (0, -1), fill=False) | shifted(rows, (0, 1), fill=False)
    return result


def _nearest(turn: Turn, cells: NDArray[np.bool_]) -> int:
    return int(turn.ways.field.distance[cells].min(initial=FAR))


def _walk_to(turn: Turn, cells: NDArray[np.bool_]) -> str | None:
    distance = np.where(cells, turn.ways.field.distance, FAR)
    flat = int(distance.argmin())
    if int(distance.flat[flat]) >= FAR:
        return None
    return turn.ways.walk_to(divmod(flat, turn.now.height))
