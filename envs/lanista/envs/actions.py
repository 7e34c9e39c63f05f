"""What actions a game takes: a choice of several, or numbers within bounds."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""Lowest and highest value of each number of an action."""


def draw_action(space: Any, rng: np.random.Generator) -> Any:
    """Draw one action evenly out of a Gymnasium action space, from our own generator.

    A number without bounds is drawn from the standard normal distribution, one with a single bound
    at an exponentially distributed distance from it.

    Args:
        space: A ``Discrete`` or a ``Box``.
        rng: What to draw from.

    Returns:
        An ``int``, or ``float32`` of the space's shape.

    Raises:
        TypeError: If the space is of another kind.
    """
    count = getattr(space, "n", None)
    if count is not None and np.ndim(count) == 0:
        return int(getattr(space, "start", 0)) + int(rng.integers(int(count)))
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None:
        raise TypeError(f"actions are drawn out of Discrete and Box spaces, not {space}")
    flat = draw_within((low.ravel().tolist(), high.ravel().tolist()), rng)
    return np.array(flat, dtype=np.float32).reshape(low.shape)


def draw_within(
    bounds: tuple[Sequence[float], Sequence[float]], rng: np.random.Generator
) -> list[float]:
    """Draw numbers within bounds, each in the way that :func:`draw_action` says."""
    drawn = []
    for low, high in zip(*bounds, strict=True):
        if math.isfinite(low) and math.isfinite(high):
            drawn.append(low + (high - low) * rng.random())
        elif math.isfinite(low):
            drawn.append(low + rng.exponential())
        elif math.isfinite(high):
            drawn.append(high - rng.exponential())
        else:
            drawn.append(rng.standard_normal())
    return drawn
