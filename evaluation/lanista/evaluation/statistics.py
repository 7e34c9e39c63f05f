"""Intervals: per goal, over worlds, over training seeds, and of paired differences.

Every goal is tried in the same worlds, so the plays of one world are correlated: a hard world is
hard for most goals. Totals are therefore computed per world first and the interval is taken over
the worlds (a cluster each), with Student's t because there are few of them. The t interval is
exact for normal world means, needs no resampling and stays honest with as few as three worlds,
where a percentile bootstrap over worlds is too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with its interval.

    Attributes:
        value: Point estimate; NaN where nothing was observed.
        low: Lower end; NaN where the data cannot give one (a single world or seed).
        high: Upper end, likewise.
        samples: How many independent units (plays, worlds, seeds) it rests on.
        method: What the interval is over and how it was computed, in words.
    """

    value: float
    low: float
    high: float
    samples: int
    method: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; what is unknown is ``None``."""
        return {
            name: None if isinstance(item, float) and not math.isfinite(item) else item
            for name, item in asdict(self).items()
        }


def wilson_interval(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Interval of one proportion by Wilson's score.

    It is used per goal, where the plays are in different worlds and hence independent; unlike
    the normal approximation it keeps its coverage for ten plays and for rates of 0 and 1.

    Args:
        successes: Plays that succeeded.
        trials: Plays, 0 for an unknown rate.
        confidence: Nominal coverage, inside (0, 1).

    Raises:
        ValueError: If there are more successes than trials or either is negative.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials make no proportion")
    method = "Wilson score interval over plays"
    if trials == 0:
        return Interval(math.nan, math.nan, math.nan, 0, method)
    low, high = _wilson(successes / trials, trials, confidence)
    return Interval(successes / trials, low, high, trials, method)


def t_interval(
    values: Sequence[float] | NDArray[np.floating[Any]],
    over: str,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Interval of the mean of independent values by Student's t.

    Values that are all the same show no spread to make an interval of: it then has no ends,
    rather than the width 0 that the formula would give.

    Args:
        values: One per independent unit; NaN entries are left out.
        over: What a unit is, for the label (``worlds``, ``training seeds``).
        confidence: Nominal coverage, inside (0, 1).
    """
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[~np.isnan(sample)]
    method = f"Student's t interval over {over}"
    if sample.size == 0:
        return Interval(math.nan, math.nan, math.nan, 0, method)
    mean = float(sample.mean())
    if sample.size == 1:
        return Interval(mean, math.nan, math.nan, 1, f"no interval: one of {over} only")
    if np.all(sample == sample[0]):
        label = f"no interval: all {sample.size} {over} gave the same value"
        return Interval(float(sample[0]), math.nan, math.nan, int(sample.size), label)
    from scipy.stats import t

    error = float(sample.std(ddof=1)) / math.sqrt(sample.size)
    margin = float(t.ppf((1 + confidence) / 2, sample.size - 1)) * error
    return Interval(mean, mean - margin, mean + margin, int(sample.size), method)


def world_interval(
    table: NDArray[np.floating[Any]], *, rate: bool = False, confidence: float = CONFIDENCE
) -> Interval:
    """Interval of the mean over goals and worlds, with each world as one cluster.

    Args:
        table: ``float[goals, worlds]``; NaN where a play gave no result. The value is the mean of
            the world means, which is the plain mean where nothing is missing.
        rate: Whether the entries are successes and failures. The interval is then cut to [0, 1]
            and is no narrower than Wilson's over the plays: with few worlds their rates are
            alike by chance, and t alone would show no doubt at all. Where every world has the
            same rate of 0 or 1 it is Wilson's with worlds as trials (which takes the plays of one
            world as one).
        confidence: Nominal coverage, inside (0, 1).
    """
    means = world_means(table)
    found = t_interval(_without_rounding(means), "worlds", confidence)
    if not rate:
        return found
    if found.samples < 2:
        return found
    known = means[~np.isnan(means)]
    if np.all(known == known[0]) and known[0] in {0.0, 1.0}:
        wilson = wilson_interval(int(known.sum()), known.size, confidence)
        label = "Wilson score interval with each world as one trial (every world has this rate)"
        return Interval(found.value, wilson.low, wilson.high, known.size, label)
    plays = np.asarray(table, dtype=np.float64)
    plays = plays[~np.isnan(plays)]
    floor = wilson_interval(round(float(plays.sum())), plays.size, confidence)
    # Worlds that all have one rate give t no width: what is left is the doubt of the plays.
    low, high = (found.value,) * 2 if math.isnan(found.low) else (found.low, found.high)
    return Interval(
        found.value,
        max(0.0, min(low, floor.low)),
        min(1.0, max(high, floor.high)),
        found.samples,
        "Student's t interval over worlds, no narrower than Wilson's over plays",
    )


def rate_interval(
    values: Sequence[float] | NDArray[np.floating[Any]],
    over: str,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Interval of the mean of independent proportions: :func:`t_interval`, cut to [0, 1]."""
    return _within_bounds(t_interval(values, over, confidence))


def _within_bounds(found: Interval) -> Interval:
    if math.isnan(found.low):
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def world_means(table: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the mean over goals in each world, ``float64[worlds]``; NaN where nothing is known.

    Args:
        table: ``float[goals, worlds]``, NaN where a play gave no result.
    """
    wide = np.asarray(table, dtype=np.float64)
    known = ~np.isnan(wide)
    counts = known.sum(axis=0)
    sums = np.where(known, wide, 0.0).sum(axis=0)
    means = np.full(wide.shape[1], np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _without_rounding(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make equal what differs by no more than rewards of 32 bits are rounded by."""
    known = means[~np.isnan(means)]
    if known.size and np.ptp(known) <= 1e-6 * max(1.0, float(np.abs(known).max())):
        return np.where(np.isnan(means), np.nan, known.mean())
    return means


def paired_difference(
    first: NDArray[np.floating[Any]],
    second: NDArray[np.floating[Any]],
    confidence: float = CONFIDENCE,
) -> Interval:
    """Interval of first minus second, paired by goal and world, clustered by world.

    Both players met the same goals in the same worlds, so what makes a world hard cancels out.

    Args:
        first: ``float[goals, worlds]``; NaN where a play gave no result.
        second: The other player's, for the same goals and worlds in the same order.
        confidence: Nominal coverage, inside (0, 1).

    Raises:
        ValueError: If the shapes differ.
    """
    if first.shape != second.shape:
        raise ValueError(f"tables of shape {first.shape} and {second.shape} cannot be paired")
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    found = t_interval(_without_rounding(world_means(difference)), "worlds", confidence)
    return Interval(found.value, found.low, found.high, found.samples, f"paired, {found.method}")


def _wilson(rate: float, trials: int, confidence: float) -> tuple[float, float]:
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = quantile**2 / trials
    centre = (rate + spread / 2) / (1 + spread)
    margin = quantile / (1 + spread) * math.sqrt(rate * (1 - rate) / trials + spread / trials / 4)
    # At the ends the formula gives 0 and 1 exactly, but for rounding.
    low = 0.0 if rate == 0 else max(0.0, centre - margin)
    high = 1.0 if rate == 1 else min(1.0, centre + margin)
    return low, high
