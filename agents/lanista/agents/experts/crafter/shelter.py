"""Hiding: a tunnel of two cells, dug into something solid and closed behind the player."""

import numpy as np
from crafter import constants

from lanista.agents.experts.crafter import gathering
from lanista.agents.experts.crafter.pathfinding import FAR
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import (
    DIRECTIONS,
    MOVES,
    Cell,
    Direction,
    Situation,
    add,
    shifted,
)

_CLOSE = 13
"""How far off a room may be from the cell that the player wants to stay close to."""
_ROOM = 6
"""A closed room of more cells than this is no hiding place."""


def is_enclosed(now: Situation) -> bool:
    """Say whether the player is in a small room that no creature or arrow can enter or is in."""
    seen = {now.position}
    waiting = [now.position]
    while waiting:
        cell = waiting.pop()
        for direction in DIRECTIONS:
            neighbour = add(cell, direction)
            if neighbour in seen or now.is_wall(neighbour):
                continue
            if len(seen) == _ROOM or not now.is_free(neighbour):
                return False
            seen.add(neighbour)
            waiting.append(neighbour)
    return True


def hide(turn: Turn, near: Cell | None = None) -> str | None:
    """Return the next button towards a closed room.

    Args:
        turn: This step's knowledge.
        near: A cell to stay close to, if a room there can be had.

    Returns:
        A button, or ``None`` if the player is enclosed already or no place can be found.
    """
    now, memory = turn.now, turn.memory
    if is_enclosed(now):
        memory.refuge = None
        return None
    if closing := _close_behind(now):
        return closing
    if not now.has(stone=1) and "stone" not in now.diggable:
        return None
    if memory.refuge is None or not _is_begun(now, *memory.refuge):
        memory.refuge = _find(turn, near)[1] or _find(turn, None)[1]
        if memory.refuge is None:
            return None
    entry, direction = memory.refuge
    inner, innermost = add(entry, direction), add(entry, direction, 2)
    back = (-direction[0], -direction[1])
    if now.position == innermost:
        return MOVES[back] if now.has(stone=1) else gathering.collect(turn, "stone")
    if now.position not in (entry, inner):
        return turn.ways.walk_to(entry)
    # Dig both cells, turn round at the far end and close the entry from the near one.
    return turn.ways.enter(inner if now.position == entry else innermost)


def pass_time(now: Situation) -> str:
    """Return the button that passes time: asleep if the player is tired at all."""
    return "sleep" if now.inventory["energy"] < constants.items["energy"]["max"] else "noop"


def _close_behind(now: Situation) -> str | None:
    """Lay a stone where that alone closes the room: in front, on the only way in."""
    front = now.front
    if not now.has(stone=1) or not now.is_free(front):
        return None
    seen = {now.position, front}
    waiting = [now.position]
    while waiting:
        cell = waiting.pop()
        for direction in DIRECTIONS:
            neighbour = add(cell, direction)
            if neighbour in seen or now.is_wall(neighbour):
                continue
            if len(seen) > _ROOM or not now.is_free(neighbour):
                return None
            seen.add(neighbour)
            waiting.append(neighbour)
    return "place_stone"


def _is_begun(now: Situation, entry: Cell, direction: Direction) -> bool:
    """Say whether the player is at a tunnel and the walls around both its cells still stand."""
    if now.position not in [add(entry, direction, times) for times in range(3)]:
        return False
    side = (direction[1], direction[0])
    inner, innermost = add(entry, direction), add(entry, direction, 2)
    walls = [add(entry, direction, 3)]
    walls += [add(cell, side, times) for cell in (inner, innermost) for times in (-1, 1)]
    rooms = (inner, innermost)
    return all(map(now.is_wall, walls)) and all(
        now.material(room) in now.diggable or now.is_walkable(room) for room in rooms
    )


def distance(turn: Turn) -> int:
    """Return the cost of reaching and digging the nearest room, ``FAR`` if there is none."""
    return _find(turn, None)[0]


def _find(turn: Turn, near: Cell | None) -> tuple[int, tuple[Cell, Direction] | None]:
    """Find the tunnel that is reached and dug in the fewest steps, and their number."""
    now = turn.now
    reach = turn.ways.field.distance
    if near is not None:
        across = np.abs(np.arange(now.width) - near[0])[:, None]
        down = np.abs(np.arange(now.height) - near[1])[None, :]
        reach = np.where(across + down <= _CLOSE, reach, FAR)
    solid = now.wall
    diggable = now.mask(*now.diggable)
    for cell in turn.guarded:
        diggable[cell] = False
    room = diggable | now.free
    effort = np.where(diggable, 2, 0)
    has_stone = now.has(stone=1)
    stone = now.mask("stone")
    best, plan = FAR, None
    for direction in DIRECTIONS:
        dx, dy = direction
        walls = shifted(solid, (3 * dx, 3 * dy), fill=True)
        work = np.zeros(solid.shape, dtype=np.int64)
        rooms = np.ones(solid.shape, dtype=np.bool_)
        gives_stone = np.full(solid.shape, has_stone)
        for times in (1, 2):
            ahead = (times * dx, times * dy)
            rooms &= shifted(room, ahead, fill=False)
            work += shifted(effort, ahead, fill=0)
            gives_stone |= shifted(stone & diggable, ahead, fill=False)
            for sign in (-1, 1):
                beside = (ahead[0] + sign * dy, ahead[1] + sign * dx)
                walls &= shifted(solid, beside, fill=True)
        good = walls & rooms & gives_stone
        cost = np.where(good, reach + work, FAR)
        flat = int(cost.argmin())
        if int(cost.flat[flat]) < best:
            best, plan = int(cost.flat[flat]), (divmod(flat, now.height), direction)
    return best, plan
