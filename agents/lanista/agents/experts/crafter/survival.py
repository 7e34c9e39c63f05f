"""Staying alive: fighting, drinking, eating, and hiding at night or when hurt."""

import enum

from lanista.agents.experts.crafter import farming, gathering, shelter
from lanista.agents.experts.crafter.pathfinding import FAR
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import (
    DAY,
    DIRECTIONS,
    MOVES,
    Situation,
    add,
    between,
)

_DUSK, _DAWN, _MORNING = 148, 265, 282
"""Steps of the day: zombies gather on the grass, grow fewer, and are few again."""
_BRIGHT = 12
"""From this step of the next day on zombies vanish faster than they come."""
_BESIEGED = 8
"""A player in hiding stays there while a hostile creature is at most this near."""
_EVENING = 85
"""From this step of the day on the player eats and drinks its fill for the night."""
_HOMEWARD = 105
"""From this step of the day on the player sees to it that it reaches a hiding place by dusk."""
_ENOUGH = {"drink": 9, "eat": 7}
_HURT, _HEALED = 4, 7


class Daytime(enum.Enum):
    """What the light is good for."""

    DAY = enum.auto()
    EVENING = enum.auto()
    NIGHT = enum.auto()


def daytime(now: Situation, *, hidden: bool) -> Daytime:
    """Return the time of day; for those in hiding the night is longer, above all if besieged."""
    phase = now.step % DAY
    if _DUSK <= phase < (_MORNING if hidden else _DAWN):
        return Daytime.NIGHT
    if hidden and now.step >= _MORNING and (phase < _BRIGHT or phase >= _MORNING):
        wants = min(now.inventory["food"], now.inventory["drink"]) < 2
        if not wants and any(between(cell, now.position) <= _BESIEGED for cell in now.hostiles):
            return Daytime.NIGHT
    return Daytime.EVENING if _EVENING <= phase < _DUSK else Daytime.DAY


def fight(turn: Turn) -> str | None:
    """Return the button that hits, or turns towards, a hostile creature right beside the player.

    Returns:
        A button, or ``None`` if no hostile creature is beside the player.
    """
    now = turn.now
    if now.front in now.hostiles:
        return "do"
    for direction in DIRECTIONS:
        if add(now.position, direction) in now.hostiles:
            return MOVES[direction]
    return None


def dodge(turn: Turn) -> str | None:
    """Return the button that gets out of the way of an arrow, or lays a stone in its way.

    Returns:
        A button, or ``None`` if no arrow is about to hit, or there is no way out.
    """
    now = turn.now
    for cell, arrow in now.arrows.items():
        flight = (int(arrow.facing[0]), int(arrow.facing[1]))
        steps = next((n for n in (1, 2) if add(cell, flight, n) == now.position), None)
        if steps is None:
            continue
        if steps > 1 and now.has(stone=1) and now.front == add(cell, flight):
            return "place_stone"
        for side in ((flight[1], flight[0]), (-flight[1], -flight[0])):
            if now.is_free(aside := add(now.position, side)) and not any(
                add(aside, direction) in now.hostiles for direction in DIRECTIONS
            ):
                return MOVES[side]
    return None


def assess(turn: Turn) -> None:
    """Notice whether the player is hurt so much that it had better rest, or has healed."""
    health = turn.now.inventory["health"]
    if health <= _HURT:
        turn.memory.resting = True
    elif health >= _HEALED:
        turn.memory.resting = False


def provide(turn: Turn) -> str | None:
    """Return the next button towards water or food, if either is wanting.

    Returns:
        A button, or ``None`` if there is enough of both, or neither can be reached.
    """
    now, memory = turn.now, turn.memory
    drink, food = now.inventory["drink"], now.inventory["food"]
    hidden = shelter.is_enclosed(now)
    time = daytime(now, hidden=hidden)
    armed = now.has(wood_pickaxe=1)
    limit = 3
    if armed and time is Daytime.EVENING:
        limit = 6
    elif armed and time is Daytime.NIGHT:
        limit = 0 if hidden else 1
    if memory.resting:  # asleep, thirst and hunger grow at half the pace and wounds heal at twice
        limit = min(limit, 1)
    level = {"drink": drink, "eat": food}
    if memory.need is not None and level[memory.need] >= _ENOUGH[memory.need]:
        memory.need = None
    if memory.resting and memory.need is not None and level[memory.need] > 3:
        memory.need = None
    if memory.need is None:
        wants = [("drink", drink, limit), ("eat", food, limit)]
        short = [(amount, need) for need, amount, least in wants if amount <= least]
        memory.need = min(short)[1] if short else None
    elif min(drink, food) <= 1 and level[memory.need] > min(drink, food) + 1:
        memory.need = "drink" if drink < food else "eat"
    if (
        armed
        and time is Daytime.NIGHT
        and (min(drink, food) > 2 or (hidden and now.inventory["health"] > _HURT))
    ):
        memory.need = None
    if memory.need == "drink":
        return gathering.collect(turn, "water")
    if memory.need == "eat":
        return farming.eat(turn) or gathering.strike(turn, now.cows)
    return None


def rest(turn: Turn, *, tired_at: int = 2) -> str | None:
    """Return the next button towards sleep or safety, if the player needs either.

    Args:
        turn: This step's knowledge.
        tired_at: The energy at which it sleeps by day.

    Returns:
        A button, or ``None`` if it needs no rest, or can find none.
    """
    now, memory = turn.now, turn.memory
    energy = now.inventory["energy"]
    hidden = shelter.is_enclosed(now)
    time = daytime(now, hidden=hidden)
    night = time is Daytime.NIGHT
    if time is Daytime.EVENING and now.step % DAY >= _HOMEWARD and not hidden:
        night = _DUSK - now.step % DAY <= shelter.distance(turn) < FAR
    night = night and now.has(wood_pickaxe=1)
    if not (memory.resting or night or energy <= tired_at):
        return None
    if min(now.inventory["food"], now.inventory["drink"]) == 0 and not (night and hidden):
        return None
    if not hidden:
        action = shelter.hide(turn)
        if action is None and energy <= 1:
            return "sleep"
        return action
    return shelter.pass_time(now)
