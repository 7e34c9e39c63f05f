"""A picture of each step: the game's own, or one drawn of the numbers that it shows."""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from lanista.data.episode import Episode
from lanista.envs.errors import InputError

SIDE = 448
"""Width and height of a picture, in pixels."""

INK, MUTED, PAPER = (236, 240, 245), (140, 150, 165), (17, 22, 30)
_HIGH, _LOW, _GROUND = (255, 150, 60), (70, 150, 255), (34, 41, 52)
_COLUMNS, _MOST_ROWS, _MOST_NUMBERS = 64, 96, 13
_STRIP = 210
_PLANES = (("position.0", "position.2"), ("position.0", "position.1"), ("x", "z"), ("x", "y"))


class Pictures:
    """Pictures of one play.

    Observations that are pictures are shown as they are. Of a vector, the last steps are drawn as
    a strip, a row for each number (blue for its lowest in this play, orange for its highest);
    below it stand the step's own numbers by name, and the way so far seen from above where they
    hold a position (``position.0`` and ``position.2``, or ``x`` and ``z``; else ``y``).
    """

    def __init__(self, episode: Episode) -> None:
        """Look at a play.

        Raises:
            InputError: If it was kept without observations, or they are neither pictures nor
                vectors.
        """
        seen = episode.observations
        if seen is None:
            raise InputError("A video needs observations; this play was kept without them.")
        self._seen = seen
        self._drawn = seen.ndim != 4
        if seen.ndim == 4 and seen.shape[-1] in {1, 3}:
            return
        if seen.ndim != 2:
            raise InputError(
                f"A video needs pictures or vectors as observations; this play has "
                f"{seen.shape[1:]}."
            )
        self._numbers = episode.step_info
        values = seen[:, :_MOST_ROWS].astype(np.float64)
        low, high = values.min(axis=0), values.max(axis=0)
        self._values = (values - low) / np.where(high > low, high - low, 1.0)
        self._still = high <= low
        plane = next((pair for pair in _PLANES if set(pair) <= set(self._numbers)), None)
        self._way = (
            None
            if plane is None
            else np.stack([np.asarray(self._numbers[name], np.float64) for name in plane], axis=1)
        )

    def after(self, step: int) -> Image.Image:
        """Return the picture after the action at ``step``, ``SIDE`` by ``SIDE``."""
        if not self._drawn:
            return _scaled(self._seen[step + 1])
        canvas = Image.new("RGB", (SIDE, SIDE), PAPER)
        canvas.paste(self._strip(step + 1), (0, 0))
        draw = ImageDraw.Draw(canvas)
        draw.text((8, _STRIP + 6), "what the player saw, step by step", MUTED, font(13))
        top = _STRIP + 30
        half = SIDE if self._way is None else SIDE // 2
        # Single numbers first: those of a list say less by themselves.
        names = sorted(self._numbers.keys() - self._hidden(), key=lambda n: ("." in n, n))
        for row, name in enumerate(names[:_MOST_NUMBERS]):
            y = top + row * 16
            draw.text((8, y), cut(name, 22), MUTED, font(12))
            draw.text((half - 12, y), _shown(self._numbers[name][step]), INK, font(12), anchor="ra")
        if self._way is not None:
            self._draw_way(draw, step, (half + 8, top, SIDE - 10, SIDE - 12))
        return canvas

    def _hidden(self) -> set[str]:
        """Names that say nothing here: those that keep one value all along, if many are there."""
        if len(self._numbers) <= _MOST_NUMBERS:
            return set()
        return {name for name, column in self._numbers.items() if len(set(column.tolist())) == 1}

    def _strip(self, frame: int) -> Image.Image:
        first = max(0, frame + 1 - _COLUMNS)
        part = self._values[first : frame + 1].T[:, :, None]
        low, ground, high = (np.array(colour, np.float64) for colour in (_LOW, _GROUND, _HIGH))
        below, above = np.clip(1 - 2 * part, 0, 1), np.clip(2 * part - 1, 0, 1)
        colours = ground + below * (low - ground) + above * (high - ground)
        colours[self._still] = ground
        strip = np.full((part.shape[0], _COLUMNS, 3), PAPER, np.float64)
        strip[:, : part.shape[1]] = colours
        image = Image.fromarray(strip.astype(np.uint8))
        return image.resize((SIDE, _STRIP), Image.Resampling.NEAREST)

    def _draw_way(
        self, draw: ImageDraw.ImageDraw, step: int, box: tuple[int, int, int, int]
    ) -> None:
        assert self._way is not None
        known = self._way[np.isfinite(self._way).all(axis=1)]
        if not len(known):
            return
        low, high = known.min(axis=0), known.max(axis=0)
        room = np.array([box[2] - box[0], box[3] - box[1]], np.float64)
        scale = float((room / np.maximum(high - low, 1e-9)).min())
        offset = np.array(box[:2]) + (room - (high - low) * scale) / 2
        places = [
            tuple((offset + (place - low) * scale).tolist())
            for place in self._way[: step + 1]
            if np.isfinite(place).all()
        ]
        draw.rectangle(box, outline=_GROUND)
        if len(places) > 1:
            draw.line(places, fill=_LOW, width=2)
        if places:
            x, y = places[-1]
            draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=_HIGH)


def cut(text: str, letters: int) -> str:
    """Shorten a text to a number of letters."""
    return text if len(text) <= letters else text[: letters - 1] + "…"


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return the font of all text, in pixels of height."""
    return ImageFont.load_default(size)


def _shown(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = float(value)
    if not math.isfinite(number):
        return "-"
    return str(int(number)) if number == int(number) else f"{number:.2f}"


def _scaled(picture: NDArray[Any]) -> Image.Image:
    wide = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture
    image = Image.fromarray(np.ascontiguousarray(wide, dtype=np.uint8))
    return image.resize((SIDE, SIDE), Image.Resampling.NEAREST)
