"""Taking a play's whole state out of a game and putting it back, into any game alike."""

from dataclasses import dataclass
from typing import Any

import crafter
import numpy as np
from crafter import objects
from numpy.typing import NDArray

from lanista.envs.crafter.determinism import OrderedSet, new_chunks

_LINKS = ("world", "random", "player")
_KINDS = {
    kind.__name__: kind
    for kind in (
        objects.Player, objects.Cow, objects.Zombie, objects.Skeleton, objects.Arrow,
        objects.Plant, objects.Fence,
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class CrafterState:
    """Everything that decides how a play goes on; a value of plain data that nothing changes.

    Attributes:
        world: World number, which also decides the noise of the night.
        step: Steps played so far.
        daylight: 0 (night) to 1 (day).
        last_health: The player's health after the step before.
        unlocked: Achievements that have been rewarded.
        materials: Material id of every cell, ``uint8[width, height]``.
        occupants: Index into ``objects`` of what stands on every cell (0: nothing),
            ``uint32[width, height]``.
        objects: Kind and attributes of each object, ``None`` where one was removed.
        chunks: Per chunk the indices of its objects, both in the game's order.
        player: Index of the player.
        random: State of the world's random stream, as NumPy gives it.
        ended: Whether the play was over by death or length.
    """

    world: int
    step: int
    daylight: float
    last_health: float
    unlocked: tuple[str, ...]
    materials: NDArray[np.uint8]
    occupants: NDArray[np.uint32]
    objects: tuple[tuple[str, dict[str, Any]] | None, ...]
    chunks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    player: int
    random: tuple[Any, ...]
    ended: bool


def take_state(game: "crafter.Env", ended: bool) -> CrafterState:
    """Copy the state of a game that has been reset."""
    world = game._world
    index = {id(item): i for i, item in enumerate(world._objects) if item is not None}
    return CrafterState(
        world=game._seed,
        step=game._step,
        daylight=world.daylight,
        last_health=game._last_health,
        unlocked=tuple(sorted(game._unlocked)),
        materials=world._mat_map.copy(),
        occupants=world._obj_map.copy(),
        objects=tuple(None if item is None else _describe(item) for item in world._objects),
        chunks=tuple(
            (key, tuple(index[id(item)] for item in members))
            for key, members in world._chunks.items()
        ),
        player=index[id(game._player)],
        random=world.random.get_state(),
        ended=ended,
    )


def put_state(game: "crafter.Env", state: CrafterState) -> None:
    """Make a game go on from ``state``; the game may be another one than it was taken from."""
    world = game._world
    game._seed, game._episode, game._step = state.world, 1, state.step
    game._last_health, game._unlocked = state.last_health, set(state.unlocked)
    world.daylight = state.daylight
    world.random.set_state(state.random)
    world._mat_map, world._obj_map = state.materials.copy(), state.occupants.copy()
    # The objects are made without their constructors, which are game logic and would be recorded.
    items = [
        None if description is None else _KINDS[description[0]].__new__(_KINDS[description[0]])
        for description in state.objects
    ]
    player = items[state.player]
    for item, description in zip(items, state.objects, strict=True):
        if item is not None and description is not None:
            vars(item).update({name: _copy(value) for name, value in description[1].items()})
            for link, target in zip(_LINKS, (world, world.random, player), strict=True):
                if link in vars(item):
                    setattr(item, link, target)
    world._objects = items
    world._chunks = new_chunks()
    for key, members in state.chunks:
        world._chunks[key] = OrderedSet(items[member] for member in members)
    game._player = player


def _describe(item: Any) -> tuple[str, dict[str, Any]]:
    attributes = {
        name: None if name in _LINKS else _copy(value) for name, value in vars(item).items()
    }
    return type(item).__name__, attributes


def _copy(value: Any) -> Any:
    """Copy an attribute of an object: an array, a flat dictionary or an immutable value."""
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value
