"""What the parts of the expert share within one step, and what they remember between steps."""

from dataclasses import dataclass, field

import numpy as np

from lanista.agents.experts.crafter.movement import Navigator
from lanista.agents.experts.crafter.worldmap import (
    DIRECTIONS,
    Cell,
    Direction,
    Situation,
    add,
)


@dataclass
class Memory:
    """What the expert keeps between steps; everything else is read off the map anew.

    Attributes:
        need: ``drink`` or ``eat`` while the player is on its way to do so until it has enough.
        resting: Whether the player hides until its health is back.
        refuge: Entry and direction of the tunnel that the player is digging to hide in.
        waited: Steps since the last one that moved, for telling that the player is stuck.
        last: Position, facing and action of the step before.
    """

    need: str | None = None
    resting: bool = False
    refuge: tuple[Cell, Direction] | None = None
    waited: int = 0
    last: tuple[Cell, Direction, str] | None = None


@dataclass
class Turn:
    """One step's knowledge.

    Attributes:
        now: The game as it stands.
        memory: What is kept between steps.
        rng: What this step's draws come from.
        guarded: Cells around a sapling that must stay as they are.
        ways: Ways through the map that keep clear of hostile creatures and guarded cells.
    """

    now: Situation
    memory: Memory
    rng: np.random.Generator
    guarded: tuple[Cell, ...] = field(init=False)
    ways: Navigator = field(init=False)

    def __post_init__(self) -> None:
        """Work out the guarded cells and the ways."""
        self.guarded = tuple(
            cell
            for plant in self.now.plants
            for direction in DIRECTIONS
            if self.now.inside(cell := add(plant, direction)) and not self.now.is_walkable(cell)
        )
        caution = 1 if self.now.inventory["health"] > 5 else 3
        self.ways = Navigator(self.now, caution=caution, forbidden=self.guarded)
