"""Drawing Crafter's picture from tables of ready tiles, equal to the stock picture to the byte.

Every tile is drawn once by the stock code (per size of the picture) and copied from then on; the
light of the day, the night's noise and sleep are then put on in one compiled pass. The views ask
the world for its cells and objects with the same calls as the stock views, so that a recording
of the game's calls shows no difference.
"""

import functools
from typing import Any

import crafter
import numpy as np
from crafter import constants, engine
from numpy.typing import NDArray

from lanista.envs.crafter.compiled import compiled
from lanista.envs.crafter.determinism import night_noise

_OBJECT_TEXTURES = (
    "player-left", "player-right", "player-up", "player-down", "player-sleep", "cow", "zombie",
    "skeleton", "arrow-left", "arrow-right", "arrow-up", "arrow-down", "plant", "plant-ripe",
    "fence",
)  # fmt: skip
_MOST_OF_AN_ITEM = 9
_NIGHT_STDDEV = 0.5


@functools.cache
def _textures() -> "engine.Textures":
    return engine.Textures(constants.root / "assets")


@functools.lru_cache(8)
def _map_tiles(
    unit: tuple[int, int],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], dict[Any, int], dict[str, int]]:
    """Draw every material alone and under every object.

    Args:
        unit: Width and height of a tile in pixels.

    Returns:
        The tiles ``uint8[tiles, width, height, 3]``, where tile 0 is the void outside the world;
        the same faded by night; the tile of each material (``None``: not set); and what to add
        to a material's tile to get the one with an object of that texture on it.
    """
    materials = [None, *constants.materials]
    grounds = np.full((1 + len(materials), *unit, 3), 127, np.uint8)
    for index, name in enumerate(materials):
        engine._draw(grounds[1 + index], (0, 0), _textures().get(name, unit))
    layers = [grounds]
    for name in _OBJECT_TEXTURES:
        layer = grounds.copy()
        for tile in layer:
            engine._draw_alpha(tile, (0, 0), _textures().get(name, unit))
        layers.append(layer)
    ground_of = {name: 1 + index for index, name in enumerate(materials)}
    shift_of = {name: (1 + i) * len(grounds) for i, name in enumerate(_OBJECT_TEXTURES)}
    tiles = np.concatenate(layers)
    return tiles, _fade_tiles(tiles), ground_of, shift_of


@functools.lru_cache(8)
def _item_tiles(unit: tuple[int, int], grid: tuple[int, int]) -> NDArray[np.uint8]:
    """Draw every item with every amount, ``uint8[items, amounts, width, height, 3]``.

    Amount 0 is an empty tile, the last one stands for more than a digit can tell.
    """
    width, height = unit
    view = engine.ItemView(_textures(), grid)
    tiles = np.zeros((len(constants.items), _MOST_OF_AN_ITEM + 2, width, height, 3), np.uint8)
    for index, name in enumerate(constants.items):
        x, y = index % grid[0] * width, index // grid[0] * height
        for amount in range(1, _MOST_OF_AN_ITEM + 2):
            canvas = np.zeros((grid[0] * width, grid[1] * height, 3), np.uint8)
            view._item(canvas, index, name, np.array(unit))
            view._amount(canvas, index, amount, np.array(unit))
            tiles[index, amount] = canvas[x : x + width, y : y + height]
    return tiles


@functools.lru_cache(8)
def _vignette(width: int, height: int) -> NDArray[np.float64]:
    vignette: NDArray[np.float64] = engine.LocalView._vignette.__wrapped__(
        None, (width, height), _NIGHT_STDDEV
    )
    return np.ascontiguousarray(vignette)


_NO_NOISE = np.empty((0, 0))


@compiled
def _grey(red: Any, green: Any, blue: Any) -> Any:
    """Return a pixel's luma with Pillow's 16-bit weights (ITU-R 601-2), an integer 0 to 255."""
    return (np.int64(red) * 19595 + np.int64(green) * 38470 + np.int64(blue) * 7471 + 0x8000) >> 16


@compiled
def _fade(grey: Any, value: Any) -> Any:
    """Take 60 % of a channel's colour away, in Pillow's single precision, an integer 0 to 255."""
    return np.uint8(np.float32(grey) + np.float32(0.4) * np.float32(np.int64(value) - grey))


@compiled
def _fade_tiles(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return ``uint8[tiles, width, height, 3]`` as they look by night, before the tint."""
    faded = np.empty_like(tiles)
    for tile in range(tiles.shape[0]):
        for x in range(tiles.shape[1]):
            for y in range(tiles.shape[2]):
                pixel = tiles[tile, x, y]
                grey = _grey(pixel[0], pixel[1], pixel[2])
                for channel in range(3):
                    faded[tile, x, y, channel] = _fade(grey, pixel[channel])
    return faded


@compiled
def _paint(
    tiles: NDArray[np.uint8],
    faded: NDArray[np.uint8],
    cells: NDArray[np.int64],
    daylight: float,
    noise: NDArray[np.float64],
    vignette: NDArray[np.float64],
    sleeping: bool,
) -> NDArray[np.uint8]:
    """Copy tiles into a picture and put the light on it.

    Args:
        tiles: ``uint8[tiles, width, height, 3]``.
        faded: The same tiles as :func:`_fade_tiles` returns them.
        cells: Tile of each cell, ``int64[columns, rows]``.
        daylight: 0 (night) to 1 (day).
        noise: Night's noise per pixel, empty by day.
        vignette: Share of the noise per pixel at full night, empty by day.
        sleeping: Whether the player has closed the eyes.

    Returns:
        ``uint8[columns * width, rows * height, 3]``.
    """
    columns, rows = cells.shape
    _, width, height, _ = tiles.shape
    picture = np.empty((columns * width, rows * height, 3), np.uint8)
    darkness = 1 - daylight
    shade = 2 * (0.5 - daylight)
    for column in range(columns):
        for row in range(rows):
            tile = cells[column, row]
            for tile_x in range(width):
                x = column * width + tile_x
                for tile_y in range(height):
                    y = row * height + tile_y
                    red, green, blue = (
                        tiles[tile, tile_x, tile_y, 0],
                        tiles[tile, tile_x, tile_y, 1],
                        tiles[tile, tile_x, tile_y, 2],
                    )
                    if noise.size:
                        mask = shade * vignette[x, y]
                        speck = mask * noise[x, y]
                        noisy_red = np.uint8((1 - mask) * red + speck)
                        noisy_green = np.uint8((1 - mask) * green + speck)
                        noisy_blue = np.uint8((1 - mask) * blue + speck)
                        grey = _grey(noisy_red, noisy_green, noisy_blue)
                        dark_red = _fade(grey, noisy_red)
                        dark_green = _fade(grey, noisy_green)
                        dark_blue = _fade(grey, noisy_blue)
                    else:
                        dark_red = faded[tile, tile_x, tile_y, 0]
                        dark_green = faded[tile, tile_x, tile_y, 1]
                        dark_blue = faded[tile, tile_x, tile_y, 2]
                    # The night is tinted half with (0, 16, 64), a sleeper's eyes with (0, 0, 16).
                    red = np.uint8(daylight * red + darkness * (0.5 * dark_red))
                    green = np.uint8(daylight * green + darkness * (0.5 * dark_green + 8.0))
                    blue = np.uint8(daylight * blue + darkness * (0.5 * dark_blue + 32.0))
                    if sleeping:
                        half_grey = 0.5 * _grey(red, green, blue)
                        red, green = np.uint8(half_grey), np.uint8(half_grey)
                        blue = np.uint8(half_grey + 8.0)
                    picture[x, y, 0] = red
                    picture[x, y, 1] = green
                    picture[x, y, 2] = blue
    return picture


class FastLocalView:
    """Stands in for ``crafter.engine.LocalView`` of one game."""

    def __init__(self, game: "crafter.Env") -> None:
        stock = game._local_view
        self._game = game
        self._world = game._world
        self._columns, self._rows = (int(size) for size in stock._grid)
        self._left, self._top = (int(size) for size in stock._offset)

    def __call__(
        self, player: "crafter.objects.Player", unit: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """Draw the surroundings of ``player``, ``uint8[width, height, 3]``; ``unit`` in pixels."""
        tile_width, tile_height = int(unit[0]), int(unit[1])
        tiles, faded, ground_of, shift_of = _map_tiles((tile_width, tile_height))
        world, columns, rows = self._world, self._columns, self._rows
        width, height = world.area
        x, y = player.pos.tolist()
        left, top = x - self._left, y - self._top
        cells = [
            ground_of[world[column, row][0]] if 0 <= column < width and 0 <= row < height else 0
            for column in range(left, left + columns)
            for row in range(top, top + rows)
        ]
        for item in world.objects:
            column, row = item.pos.tolist()
            column, row = column - left, row - top
            if 0 <= column < columns and 0 <= row < rows:
                cells[column * rows + row] += shift_of[item.texture]
        daylight = float(world.daylight)
        noise = vignette = _NO_NOISE
        if daylight < 0.5:
            shape = columns * tile_width, rows * tile_height
            noise = night_noise(self._game._seed, self._game._step, shape)
            vignette = _vignette(*shape)
        grid = np.array(cells).reshape(columns, rows)
        return _paint(tiles, faded, grid, daylight, noise, vignette, bool(player.sleeping))


class FastItemView:
    """Stands in for ``crafter.engine.ItemView`` of one game."""

    def __init__(self, game: "crafter.Env") -> None:
        self._columns, self._rows = (int(size) for size in game._item_view._grid)
        self._last: tuple[Any, NDArray[np.uint8]] | None = None

    def __call__(self, inventory: dict[str, int], unit: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Draw the inventory, ``uint8[width, height, 3]``; ``unit`` in pixels."""
        shape = int(unit[0]), int(unit[1])
        shown = shape, tuple(inventory.values())
        if self._last is None or self._last[0] != shown:
            self._last = shown, self._draw(*shown)
        return self._last[1]

    def _draw(self, unit: tuple[int, int], amounts: tuple[int, ...]) -> NDArray[np.uint8]:
        width, height = unit
        tiles = _item_tiles(unit, (self._columns, self._rows))
        picture = np.zeros((self._columns * width, self._rows * height, 3), np.uint8)
        for index, amount in enumerate(amounts):
            x, y = index % self._columns * width, index // self._columns * height
            digit = max(0, min(amount, _MOST_OF_AN_ITEM + 1))
            picture[x : x + width, y : y + height] = tiles[index, digit]
        return picture


class _NoSemanticView:
    """Leaves the map of ``info["semantic"]`` out; it looks at the objects as the original does."""

    def __init__(self, game: "crafter.Env") -> None:
        self._world = game._world

    def __call__(self) -> None:
        _ = self._world.objects


def use_fast_views(game: "crafter.Env") -> None:
    """Replace the views of one stock game; its pictures stay the same, its class untouched."""
    game._local_view = FastLocalView(game)
    game._item_view = FastItemView(game)
    game._sem_view = _NoSemanticView(game)
    # Its maximum is taken once per object and step, which is slow on an array.
    game._view = tuple(int(cells) for cells in game._view)
