"""What the expert knows at one step: the whole map, its creatures and the player."""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from crafter import constants, objects
from numpy.typing import NDArray

from lanista.envs.errors import InputError

Cell = tuple[int, int]
Direction = tuple[int, int]

MOVES: dict[Direction, str] = {
    (-1, 0): "move_left",
    (1, 0): "move_right",
    (0, -1): "move_up",
    (0, 1): "move_down",
}
"""The action that faces, and if free enters, the next cell in each direction."""
DIRECTIONS: tuple[Direction, ...] = tuple(MOVES)

DAY = 300
"""Steps of one day."""


def add(cell: Cell, direction: Direction, times: int = 1) -> Cell:
    """Return the cell that lies ``times`` steps away in a direction."""
    return cell[0] + times * direction[0], cell[1] + times * direction[1]


def between(start: Cell, end: Cell) -> int:
    """Return the steps between two cells if nothing stood in the way."""
    return abs(start[0] - end[0]) + abs(start[1] - end[1])


def shifted(grid: NDArray[Any], direction: Direction, fill: Any) -> NDArray[Any]:
    """Return a grid whose cell c holds what ``grid`` holds at c + direction.

    Args:
        grid: ``[width, height]``.
        direction: One of the four directions, or a multiple of one.
        fill: What cells hold whose neighbour lies beyond the border.
    """
    result = np.full_like(grid, fill)
    (width, height), (dx, dy) = grid.shape, direction
    result[max(0, -dx) : width - max(0, dx), max(0, -dy) : height - max(0, dy)] = grid[
        max(0, dx) : width - max(0, -dx), max(0, dy) : height - max(0, -dy)
    ]
    return result


def crafter_game(env: Any) -> Any:
    """Return the stock ``crafter.Env`` inside an environment, or the thing itself if it is one.

    Raises:
        InputError: If there is no such game inside, or it has not been reset.
    """
    inner = getattr(env, "unwrapped", env)
    game = getattr(inner, "game", inner)
    if getattr(game, "_world", None) is None or getattr(game, "_player", None) is None:
        raise InputError(
            f"A Crafter tester plays Crafter after its reset, not a {type(game).__name__}."
        )
    return game


class Situation:
    """The game as it stands at one step; parts that are costly are worked out when asked for.

    Attributes:
        step: Steps played so far.
        materials: ``uint8[width, height]`` material ids, the game's own array: read only.
        occupied: ``bool[width, height]``: where a creature, a plant, an arrow or the player is.
        position: The player's cell.
        facing: The direction that the player looks in.
        front: The cell that the player faces.
        inventory: Items by name.
        achievements: How often each was unlocked.
    """

    def __init__(self, game: Any) -> None:
        world, player = game._world, game._player
        self._world = world
        self._objects = world._objects
        self._object_at: NDArray[np.uint32] = world._obj_map
        self._names: dict[int, str | None] = world._mat_names
        self.step = int(game._step)
        self.daylight = float(world.daylight)
        self.materials: NDArray[np.uint8] = world._mat_map
        self.occupied: NDArray[np.bool_] = self._object_at > 0
        self.width: int
        self.height: int
        self.width, self.height = self.materials.shape
        self.position: Cell = (int(player.pos[0]), int(player.pos[1]))
        self.facing: Direction = (int(player.facing[0]), int(player.facing[1]))
        self.front = add(self.position, self.facing)
        self.sleeping = bool(player.sleeping)
        self.inventory: dict[str, int] = player.inventory
        self.achievements: dict[str, int] = player.achievements
        self.plants: dict[Cell, Any] = {}
        self.zombies: dict[Cell, Any] = {}
        self.skeletons: dict[Cell, Any] = {}
        self.cows: dict[Cell, Any] = {}
        self.arrows: dict[Cell, Any] = {}
        kinds = {
            objects.Plant: self.plants,
            objects.Zombie: self.zombies,
            objects.Skeleton: self.skeletons,
            objects.Cow: self.cows,
            objects.Arrow: self.arrows,
        }
        for thing in self._objects:
            kind = kinds.get(type(thing))
            if kind is not None:
                kind[int(thing.pos[0]), int(thing.pos[1])] = thing

    def has(self, **items: int) -> bool:
        """Say whether the inventory holds at least these amounts."""
        return all(self.inventory[name] >= amount for name, amount in items.items())

    def inside(self, cell: Cell) -> bool:
        """Say whether a cell lies on the map."""
        return 0 <= cell[0] < self.width and 0 <= cell[1] < self.height

    def material(self, cell: Cell) -> str | None:
        """Return the material of a cell, ``None`` beyond the border."""
        return self._names[int(self.materials[cell])] if self.inside(cell) else None

    def thing(self, cell: Cell) -> Any:
        """Return the creature, plant or arrow on a cell, or ``None``."""
        return self._objects[int(self._object_at[cell])] if self.inside(cell) else None

    def mask(self, *names: str) -> NDArray[np.bool_]:
        """Return ``bool[width, height]``: where one of these materials lies."""
        table = np.zeros(256, dtype=np.bool_)
        for name in names:
            table[self._world._mat_ids[name]] = True
        return table[self.materials]

    def cells_mask(self, cells: Iterable[Cell]) -> NDArray[np.bool_]:
        """Return ``bool[width, height]``: true on these cells."""
        result = np.zeros(self.materials.shape, dtype=np.bool_)
        for cell in cells:
            if self.inside(cell):
                result[cell] = True
        return result

    @functools.cached_property
    def walkable(self) -> NDArray[np.bool_]:
        """``bool[width, height]``: whose material creatures can walk on, occupied or not."""
        return self.mask(*constants.walkable)

    @functools.cached_property
    def wall(self) -> NDArray[np.bool_]:
        """``bool[width, height]``: what neither creatures nor arrows (over water, lava) pass."""
        return ~(self.walkable | self.mask("water", "lava"))

    @functools.cached_property
    def free(self) -> NDArray[np.bool_]:
        """``bool[width, height]``: walkable and with nothing on it."""
        return self.walkable & ~self.occupied

    @functools.cached_property
    def standable(self) -> NDArray[np.bool_]:
        """``bool[width, height]``: free, or where the player stands."""
        result = self.free.copy()
        result[self.position] = self.walkable[self.position]
        return result

    def is_walkable(self, cell: Cell) -> bool:
        """Say whether creatures can walk on the cell's material."""
        return self.inside(cell) and bool(self.walkable[cell])

    def is_wall(self, cell: Cell) -> bool:
        """Say whether neither creatures nor arrows can pass a cell; none can beyond the border."""
        return not self.inside(cell) or bool(self.wall[cell])

    def is_free(self, cell: Cell) -> bool:
        """Say whether the player could step on the cell without harm."""
        return self.inside(cell) and bool(self.free[cell])

    @functools.cached_property
    def diggable(self) -> frozenset[str]:
        """Solid materials that leave a walkable cell when taken with the tools at hand."""
        return frozenset(
            name
            for name, rule in constants.collect.items()
            if rule["leaves"] in constants.walkable
            and name not in constants.walkable
            and all(self.inventory[tool] >= amount for tool, amount in rule["require"].items())
        )

    @property
    def can_bridge(self) -> bool:
        """Whether a stone can be laid on water and dug away again."""
        return self.has(stone=1, wood_pickaxe=1)

    @property
    def damage(self) -> int:
        """The harm that one blow of the player does."""
        blows = {"iron_sword": 5, "stone_sword": 3, "wood_sword": 2}
        return next((blow for sword, blow in blows.items() if self.inventory[sword]), 1)

    @property
    def hostiles(self) -> dict[Cell, Any]:
        """Zombies and skeletons by cell."""
        return {**self.zombies, **self.skeletons}
