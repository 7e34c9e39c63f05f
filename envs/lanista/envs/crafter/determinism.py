"""What makes stock Crafter repeatable, put on from outside.

Stock Crafter differs between two runs with equal seed and actions for two reasons: a chunk's
creatures are kept in a ``set`` whose order follows memory addresses, and the noise of the night
is drawn from the world's own random stream, so that one picture more or less changes the game.
"""

import functools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import crafter
import numpy as np
from crafter import engine
from numpy.typing import NDArray

NOISE_STREAM = 1
"""Number of the random stream that draws the noise of the night."""

type Chunk = tuple[int, int, int, int]
"""Borders of a chunk: first x, x behind the last, first y, y behind the last."""


class OrderedSet[T: Hashable]:
    """The part of ``set`` that Crafter uses for a chunk's objects, in the order of insertion."""

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._members: dict[T, None] = dict.fromkeys(members)

    def add(self, member: T) -> None:
        """Put ``member`` at the end, unless it is in already."""
        self._members[member] = None

    def remove(self, member: T) -> None:
        """Take ``member`` out.

        Raises:
            KeyError: If it is not in.
        """
        del self._members[member]

    def __iter__(self) -> Iterator[T]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: object) -> bool:
        return member in self._members


def new_chunks() -> "defaultdict[Chunk, OrderedSet[Any]]":
    """Return the empty table of chunks of a world just reset."""
    return defaultdict(OrderedSet)


def night_noise(world: int, step: int, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Draw the grey noise that covers the picture of one step at night.

    A step's noise depends on nothing but the arguments, hence pictures more, fewer or of another
    size change neither the game nor a later picture.

    Args:
        world: World number.
        step: Steps played so far.
        shape: Width and height of the local view in pixels.

    Returns:
        ``float64[width, height]`` in [32, 127).
    """
    seed = np.random.SeedSequence([world, NOISE_STREAM, step])
    return np.random.default_rng(seed).uniform(32, 127, shape)


class _NoiseSource:
    """Stands in for the world's random stream while the stock view draws its noise."""

    def __init__(self, world: int, step: int) -> None:
        self._world, self._step = world, step

    def uniform(self, low: float, high: float, shape: tuple[int, int]) -> NDArray[np.float64]:
        assert (low, high) == (32, 127), "this version of Crafter draws another noise"
        return night_noise(self._world, self._step, shape)


def make_deterministic(game: "crafter.Env") -> None:
    """Give a stock Crafter ordered chunks and a night noise with a stream of its own.

    The world of the noise is the game's ``_seed``, which :func:`reset_world` sets.

    Args:
        game: A stock ``crafter.Env``; changed in place, its class and module are not.
    """
    world, view = game._world, game._local_view
    stock_reset = world.reset

    @functools.wraps(stock_reset)
    def reset(seed: int | None = None) -> None:
        stock_reset(seed)
        world._chunks = new_chunks()

    def noise(canvas: NDArray[Any], amount: float, stddev: float) -> NDArray[np.float64]:
        game_stream, world.random = world.random, _NoiseSource(game._seed, game._step)
        try:
            noisy: NDArray[np.float64] = engine.LocalView._noise(view, canvas, amount, stddev)
        finally:
            world.random = game_stream
        return noisy

    world.reset = reset
    view._noise = noise


def reset_world(game: "crafter.Env", world: int) -> NDArray[np.uint8]:
    """Begin a play in ``world``, however many plays came before, and return the first picture.

    It is the world that a new ``crafter.Env(seed=world)`` shows first.
    """
    game._seed, game._episode = world, 0
    picture: NDArray[np.uint8] = game.reset()
    return picture
