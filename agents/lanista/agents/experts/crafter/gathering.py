"""Taking what lies or walks about: materials and creatures."""

from collections.abc import Collection

import numpy as np
from crafter import constants
from numpy.typing import NDArray

from lanista.agents.experts.crafter.movement import Navigator
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import Cell


def collect(turn: Turn, material: str) -> str | None:
    """Return the next button towards taking the nearest piece of a material.

    Returns:
        A button, or ``None`` if there is none that can be reached or the tool for it is wanting.
    """
    if any(
        turn.now.inventory[tool] < amount
        for tool, amount in constants.collect[material]["require"].items()
    ):
        return None
    target = available(turn, material)
    front = turn.now.front
    if turn.now.inside(front) and target[front] and not turn.now.occupied[front]:
        return "do"
    if material in constants.walkable:
        return turn.ways.face_free(target)
    return turn.ways.face(target)


def available(turn: Turn, material: str) -> NDArray[np.bool_]:
    """Return ``bool[width, height]``: pieces of a material that no sapling's fence needs."""
    target = turn.now.mask(material)
    for cell in turn.guarded:
        target[cell] = False
    return target


def distance_to(turn: Turn, material: str) -> int:
    """Return the cost of the way to the nearest piece of a material, ``FAR`` if none."""
    return turn.ways.nearness(available(turn, material))


def strike(turn: Turn, creatures: Collection[Cell], *, fearless: bool = False) -> str | None:
    """Return the next button towards hitting the nearest of these creatures.

    Args:
        turn: This step's knowledge.
        creatures: The cells that they are on.
        fearless: Whether to walk up to hostile creatures without a detour.

    Returns:
        A button, or ``None`` if there are none or none can be reached.
    """
    if turn.now.front in creatures:
        return "do"
    if not creatures:
        return None
    ways = Navigator(turn.now, fearless=True, forbidden=turn.guarded) if fearless else turn.ways
    return ways.face(turn.now.cells_mask(creatures))
