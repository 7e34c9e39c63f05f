"""Staying alive: fighting, drinking, eating, and hiding at night or when hurt."""

import enum

from crafter import constants

from lanista.agents.experts.crafter import farming, gathering, shelter
from lanista.agents.experts.crafter.turn import Turn
from lanista.agents.experts.crafter.worldmap import DAY, DIRECTIONS, MOVES, add

_DUSK, _DAWN = 148, 272
"""Steps of the day between which so little light is left that zombies gather on the grass."""
_EVENING = 85
"""From this step of the day on the player eats and drinks its fill for the night."""
_ENOUGH = {"drink": 9, "eat": 7}
_HURT, _HEALED = 4, 7


class Daytime(enum.Enum):
    """What the light is good for."""

    DAY = enum.auto()
    EVENING = enum.auto()
    NIGHT = enum.auto()


def daytime(step: int) -> Daytime:
    """Return the time of day at a step of the game."""
    phase = step % DAY
    if _DUSK <= phase < _DAWN:
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


def provide(turn: Turn) -> str | None:
    """Return the next button towards water or food, if either is wanting.

    Returns:
        A button, or ``None`` if there is enough of both, or neither can be reached.
    """
    now, memory = turn.now, turn.memory
    drink, food = now.inventory["drink"], now.inventory["food"]
    time = daytime(now.step)
    armed = now.has(wood_pickaxe=1)
    limit = 3
    if armed and time is Daytime.EVENING:
        limit = 6
    elif armed and time is Daytime.NIGHT:
        limit = 1
    if memory.resting and shelter.is_enclosed(now):
        limit = min(limit, 1)
    level = {"drink": drink, "eat": food}
    if memory.need is not None and level[memory.need] >= _ENOUGH[memory.need]:
        memory.need = None
    if memory.need is None:
        wants = [("drink", drink, limit), ("eat", food, min(limit, 5))]
        short = [(amount, need) for need, amount, least in wants if amount <= least]
        memory.need = min(short)[1] if short else None
    elif min(drink, food) <= 1 and level[memory.need] > min(drink, food) + 1:
        memory.need = "drink" if drink < food else "eat"
    if armed and time is Daytime.NIGHT and min(drink, food) > 2:
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
    health, energy = now.inventory["health"], now.inventory["energy"]
    if health <= _HURT:
        memory.resting = True
    elif health >= _HEALED:
        memory.resting = False
    night = daytime(now.step) is Daytime.NIGHT and now.has(wood_pickaxe=1)
    if not (memory.resting or night or energy <= tired_at):
        return None
    if min(now.inventory["food"], now.inventory["drink"]) == 0:
        return None
    if not shelter.is_enclosed(now):
        action = shelter.hide(turn)
        if action is None and energy <= 1:
            return "sleep"
        return action
    return sleep(turn)


def sleep(turn: Turn) -> str:
    """Return the button that passes time: asleep if the player is tired at all."""
    return "sleep" if turn.now.inventory["energy"] < constants.items["energy"]["max"] else "noop"
