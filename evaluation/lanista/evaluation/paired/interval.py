"""The weighted difference and its interval, by resampling whole worlds."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lanista.evaluation.paired.design import Stratum

Draws = Callable[[int, int], NDArray[np.int64]]
"""``draws(resamples, worlds)`` returns indices of worlds, shape ``[resamples, worlds]``."""

GENERATOR = "PCG64"
RESAMPLES = 10_000


def weighted_delta(strata: Sequence[Stratum], weights: NDArray[np.float64]) -> float:
    """Return Δ̂ = Σⱼ wⱼ (1/nⱼ) Σₛ dⱼₛ (the paired design's summary).

    Args:
        strata: All worlds.
        weights: Of each opponent, adding up to 1.
    """
    return float(_deltas(strata, weights, None)[0])


def opponent_deltas(strata: Sequence[Stratum], opponents: int) -> NDArray[np.float64]:
    """Return the mean difference against each opponent; NaN where there is no world."""
    total, count = np.zeros(opponents), np.zeros(opponents)
    for stratum in strata:
        places = list(stratum.opponents)
        total[places] += stratum.differences.sum(axis=1)
        count[places] += len(stratum.worlds)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def resampled_deltas(
    strata: Sequence[Stratum],
    weights: NDArray[np.float64],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    draws: Draws | None = None,
) -> NDArray[np.float64]:
    """Resample whole worlds, each within its stratum, and return Δ̂ of each resample.

    Args:
        strata: All worlds.
        weights: Of each opponent, adding up to 1; they and the opponents stay fixed.
        resamples: B.
        seed: Of the generator.
        draws: Which worlds are drawn, in place of that generator.

    Returns:
        Shape ``[resamples]``, ``float64``.
    """
    if draws is None:
        rng = np.random.Generator(np.random.PCG64(seed))

        def draws(count: int, worlds: int) -> NDArray[np.int64]:
            return rng.integers(0, worlds, size=(count, worlds))

    chosen = [draws(resamples, len(stratum.worlds)) for stratum in strata]
    return _deltas(strata, weights, chosen)


def percentile_interval(
    deltas: NDArray[np.float64], confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval, interpolated linearly between order statistics."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(deltas, [tail, 1 - tail])
    return float(low), float(high)


def _deltas(
    strata: Sequence[Stratum],
    weights: NDArray[np.float64],
    chosen: Sequence[NDArray[np.int64]] | None,
) -> NDArray[np.float64]:
    # Resampling within strata keeps the number of worlds of each opponent as it is.
    count = np.zeros(len(weights))
    for stratum in strata:
        count[list(stratum.opponents)] += len(stratum.worlds)
    rows = 1 if chosen is None else len(chosen[0]) if chosen else 1
    found = np.zeros(rows)
    for number, stratum in enumerate(strata):
        places = list(stratum.opponents)
        by_world = (weights[places] / count[places]) @ stratum.differences
        if chosen is None:
            found += by_world.sum()
        else:
            found += by_world[chosen[number]].sum(axis=1)
    return found
