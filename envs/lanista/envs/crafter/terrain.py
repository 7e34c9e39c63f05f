"""Drawing a world as stock Crafter does, with its noise computed in compiled code.

The rules are those of ``crafter.worldgen``. The kernels decide what each cell holds; the world
itself is filled through the game's own functions, in the order of the original, so that a
recording of the calls shows no difference.
"""

import types

import crafter.env
import numpy as np
import opensimplex
from crafter import objects, worldgen
from numpy.typing import NDArray
from opensimplex import internals

from lanista.envs.crafter.compiled import compiled

MATERIALS = (
    "grass", "path", "coal", "iron", "diamond", "lava", "stone", "sand", "water", "tree",
)  # fmt: skip
GRASS, PATH, COAL, IRON, DIAMOND, LAVA, STONE, SAND, WATER, TREE = range(len(MATERIALS))
_NOTHING, _COW, _ZOMBIE, _SKELETON = range(4)
_MOST_DRAWS_PER_CELL = 3  # ore in rock, which holds no creature; else a tree, then two creatures

_noise3 = internals._noise3


@compiled
def _start_noise(
    width: int, height: int, perm: NDArray[np.int64], gradients: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the noise of the clearing around the start, ``float64[width, height]``."""
    noise = np.empty((width, height))
    for x in range(width):
        for y in range(height):
            noise[x, y] = _noise3(x / 3, y / 3, 8.0, perm, gradients)
    return noise


@compiled
def _draw_materials(
    start: NDArray[np.float64],
    draws: NDArray[np.float64],
    perm: NDArray[np.int64],
    gradients: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.bool_], int]:
    """Decide every cell's material.

    Args:
        start: How much a cell belongs to the clearing around the start, ``[width, height]``.
        draws: Uniform numbers in [0, 1) in the order in which they are to be used.
        perm: Permutation table of the noise.
        gradients: Gradient table of the noise.

    Returns:
        Index into ``MATERIALS`` per cell, whether a tunnel runs there, and the draws used.
    """
    width, height = start.shape
    cells = np.empty((width, height), np.uint8)
    tunnels = np.zeros((width, height), np.bool_)
    used = 0
    for x in range(width):
        for y in range(height):
            water = _noise3(x / 15, y / 15, 3.0, perm, gradients)
            water += 0.15 * _noise3(x / 5, y / 5, 3.0, perm, gradients)
            water += 0.1
            water -= 2 * start[x, y]
            mountain = _noise3(x / 15, y / 15, 0.0, perm, gradients)
            mountain += 0.3 * _noise3(x / 5, y / 5, 0.0, perm, gradients)
            mountain /= 1.3
            mountain -= 4 * start[x, y] + 0.3 * water
            if start[x, y] > 0.5:
                cells[x, y] = GRASS
            elif mountain > 0.15:
                if mountain > 0.3 and _noise3(x / 7, y / 7, 6.0, perm, gradients) > 0.15:
                    cells[x, y] = PATH
                    continue
                if (
                    _noise3((2 * x) / 3, (y / 5) / 3, 7.0, perm, gradients) > 0.4
                    or _noise3((x / 5) / 3, (2 * y) / 3, 7.0, perm, gradients) > 0.4
                ):
                    cells[x, y] = PATH
                    tunnels[x, y] = True
                    continue
                if _noise3(x / 8, y / 8, 1.0, perm, gradients) > 0:
                    used += 1
                    if draws[used - 1] > 0.85:
                        cells[x, y] = COAL
                        continue
                if _noise3(x / 6, y / 6, 2.0, perm, gradients) > 0.4:
                    used += 1
                    if draws[used - 1] > 0.75:
                        cells[x, y] = IRON
                        continue
                if mountain > 0.18:
                    used += 1
                    if draws[used - 1] > 0.994:
                        cells[x, y] = DIAMOND
                        continue
                if mountain > 0.3 and _noise3(x / 5, y / 5, 6.0, perm, gradients) > 0.35:
                    cells[x, y] = LAVA
                else:
                    cells[x, y] = STONE
            elif 0.25 < water <= 0.35 and _noise3(x / 9, y / 9, 4.0, perm, gradients) > -0.2:
                cells[x, y] = SAND
            elif water > 0.3:
                cells[x, y] = WATER
            else:
                cells[x, y] = GRASS
                if _noise3(x / 7, y / 7, 5.0, perm, gradients) > 0:
                    used += 1
                    if draws[used - 1] > 0.8:
                        cells[x, y] = TREE
    return cells, tunnels, used


@compiled
def _draw_creatures(
    cells: NDArray[np.uint8],
    tunnels: NDArray[np.bool_],
    distance: NDArray[np.float64],
    draws: NDArray[np.float64],
) -> tuple[NDArray[np.uint8], int]:
    """Decide which creature starts in every cell; returns them and the number of draws used."""
    width, height = cells.shape
    creatures = np.zeros((width, height), np.uint8)
    used = 0
    for x in range(width):
        for y in range(height):
            cell = cells[x, y]
            if cell not in (GRASS, PATH, SAND):
                continue
            if distance[x, y] > 3 and cell == GRASS:
                used += 1
                if draws[used - 1] > 0.985:
                    creatures[x, y] = _COW
                    continue
            if distance[x, y] > 10:
                used += 1
                if draws[used - 1] > 0.993:
                    creatures[x, y] = _ZOMBIE
                    continue
            if cell == PATH and tunnels[x, y]:
                used += 1
                if draws[used - 1] > 0.95:
                    creatures[x, y] = _SKELETON
    return creatures, used


def generate_world(world: "crafter.engine.World", player: "objects.Player") -> None:
    """Fill ``world`` with exactly what ``crafter.worldgen.generate_world`` would put there."""
    noise = opensimplex.OpenSimplex(seed=world.random.randint(0, 2**31 - 1))
    perm, gradients = noise._perm, noise._perm_grad_index3
    width, height = world.area
    offset_x = np.arange(width)[:, None] - int(player.pos[0])
    offset_y = np.arange(height)[None, :] - int(player.pos[1])
    distance = np.sqrt(offset_x**2 + offset_y**2)
    start = 4 - distance + 2 * _start_noise(width, height, perm, gradients)
    start = 1 / (1 + np.exp(-start))

    # How many numbers are drawn depends on them: draw enough, then draw the used ones again.
    before = world.random.get_state()
    draws = world.random.random_sample(_MOST_DRAWS_PER_CELL * width * height)
    cells, tunnels, used = _draw_materials(start, draws, perm, gradients)
    creatures, used_later = _draw_creatures(cells, tunnels, distance, draws[used:])
    world.random.set_state(before)
    world.random.random_sample(used + used_later)

    for x, column in enumerate(cells.tolist()):
        for y, cell in enumerate(column):
            world[x, y] = MATERIALS[cell]
    for x, column in enumerate(creatures.tolist()):
        for y, creature in enumerate(column):
            world[x, y]  # the original looks at every cell
            if creature == _COW:
                world.add(objects.Cow(world, (x, y)))
            elif creature == _ZOMBIE:
                world.add(objects.Zombie(world, (x, y), player))
            elif creature == _SKELETON:
                world.add(objects.Skeleton(world, (x, y), player))


def _generate_world(world: "crafter.engine.World", player: "objects.Player") -> None:
    generate = generate_world if hasattr(world, "lanista_fast_terrain") else worldgen.generate_world
    generate(world, player)


def use_fast_terrain(game: "crafter.Env") -> None:
    """Make ``game`` draw its worlds with this module; other games of the process do not."""
    game._world.lanista_fast_terrain = True
    # ``crafter.env`` finds the generator through its global name ``worldgen``, the one place
    # where it can be replaced; ``crafter.worldgen`` itself stays as it is.
    crafter.env.worldgen = types.SimpleNamespace(generate_world=_generate_world)
