"""The expert: staying alive comes first, then the subgoals on its agenda."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from crafter import constants

from lanista.agents.experts.crafter import crafting, farming, gathering, shelter, survival
from lanista.agents.experts.crafter.pathfinding import FAR
from lanista.agents.experts.crafter.turn import Memory, Turn
from lanista.agents.experts.crafter.worldmap import (
    MOVES,
    Situation,
    add,
    crafter_game,
)

_ACTIONS = {name: number for number, name in enumerate(constants.actions)}
_STUCK = 6
"""Steps without any change after which the player steps aside at random."""
_ON_THE_WAY = 3
"""A subgoal whose target is at most this far off is reached at once."""


class Expert:
    """Plays Crafter from the world map; a :class:`lanista.envs.policy.Tester`."""

    def __init__(self, agenda: Sequence[str], *, flexible: bool = True) -> None:
        """Prepare for one play.

        Args:
            agenda: The subgoals to reach, in the order to go for them.
            flexible: Whether subgoals that are close by may be taken before their turn.
        """
        self._agenda = tuple(agenda)
        self._flexible = flexible
        self._memory = Memory()

    def act(self, env: Any, rng: np.random.Generator) -> int:
        """Choose the next action for the game as it stands.

        Args:
            env: A Crafter environment, or a stock ``crafter.Env``, after its reset.
            rng: What this step's draws come from.

        Returns:
            The action's number.

        Raises:
            InputError: If ``env`` is no Crafter that has been reset.
        """
        now = Situation(crafter_game(env))
        if now.sleeping or now.inventory["health"] <= 0:
            return _ACTIONS["noop"]
        turn = Turn(now, self._memory, rng)
        action = self._decide(turn) or wander(turn)
        return _ACTIONS[self._checked(turn, action)]

    def _decide(self, turn: Turn) -> str | None:
        survival.assess(turn)
        return (
            survival.fight(turn)
            or survival.dodge(turn)
            or survival.provide(turn)
            or survival.rest(turn)
            or self._pursue(turn)
        )

    def _pursue(self, turn: Turn) -> str | None:
        open_subgoals = [name for name in self._agenda if not turn.now.achievements[name]]
        if self._flexible:
            for name in open_subgoals:
                if _distance(turn, name) <= _ON_THE_WAY and (action := pursue(turn, name)):
                    return action
        for name in open_subgoals:
            if action := pursue(turn, name):
                return action
        return farming.wait(turn) if "eat_plant" in open_subgoals else None

    def _checked(self, turn: Turn, action: str) -> str:
        """Keep out of lava, and break out of a standstill."""
        now, memory = turn.now, turn.memory
        for direction, move in MOVES.items():
            if action == move and now.material(add(now.position, direction)) == "lava":
                action = "noop"
        state = (now.position, now.facing, action)
        still = state == memory.last and (action in MOVES.values() or action == "noop")
        memory.waited = memory.waited + 1 if still else 0
        memory.last = state
        if memory.waited >= _STUCK and not shelter.is_enclosed(now):
            memory.waited = 0
            return wander(turn)
        return action


def wander(turn: Turn) -> str:
    """Return a step to a free neighbouring cell at random, ``noop`` if there is none."""
    free = [
        move
        for direction, move in MOVES.items()
        if turn.now.is_free(add(turn.now.position, direction))
    ]
    return free[int(turn.rng.integers(len(free)))] if free else "noop"


def pursue(turn: Turn, subgoal: str) -> str | None:
    """Return the next button towards a subgoal, whatever it takes being obtained first.

    Returns:
        A button, or ``None`` if nothing can be done about it at present.
    """
    verb, _, thing = subgoal.partition("_")
    if special := _SPECIAL.get(subgoal):
        return special(turn)
    if verb == "collect":
        return crafting.procure(turn, crafting.source_of(thing))
    if verb == "place":
        return crafting.place(turn, thing)
    return crafting.make(turn, thing)


def _defeat_zombie(turn: Turn) -> str | None:
    if turn.now.inventory["health"] < 5:
        return None
    return gathering.strike(turn, turn.now.zombies, fearless=True)


def _defeat_skeleton(turn: Turn) -> str | None:
    if turn.now.inventory["health"] < 6:
        return None
    return gathering.strike(turn, turn.now.skeletons, fearless=True)


def _eat_cow(turn: Turn) -> str | None:
    return gathering.strike(turn, turn.now.cows)


def _eat_plant(turn: Turn) -> str | None:
    if not turn.now.plants:
        return farming.plant(turn)
    return farming.eat(turn) or farming.fence(turn)


def _wake_up(turn: Turn) -> str | None:
    if turn.now.inventory["energy"] == constants.items["energy"]["max"]:
        return None
    if shelter.is_enclosed(turn.now):
        return "sleep"
    return shelter.hide(turn)


_SPECIAL: dict[str, Callable[[Turn], str | None]] = {
    "place_plant": farming.plant,
    "defeat_zombie": _defeat_zombie,
    "defeat_skeleton": _defeat_skeleton,
    "eat_cow": _eat_cow,
    "eat_plant": _eat_plant,
    "wake_up": _wake_up,
}


def _distance(turn: Turn, subgoal: str) -> int:
    """Return how far off the thing is that a subgoal takes, ``FAR`` if it takes more than that."""
    verb, _, thing = subgoal.partition("_")
    if subgoal == "eat_cow":
        return turn.ways.nearness(turn.now.cells_mask(turn.now.cows))
    if verb == "collect":
        material = crafting.source_of(thing)
        tools = constants.collect[material]["require"]
        if all(turn.now.inventory[tool] >= amount for tool, amount in tools.items()):
            return gathering.distance_to(turn, material)
    return FAR
