"""How much the matches of one world really have in common."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanista.evaluation.paired.design import Pair


@dataclass(frozen=True)
class PairingQuality:
    """What is left of the pairing once the players have changed what their worlds drew.

    Attributes:
        same_luck: Share of the pairs all of whose matches have one fingerprint.
        correlation: Between candidate's and baseline's points over the pairs; NaN without spread.
        variance_ratio: Variance of the differences over that of unpaired ones: below 1, pairing
            pays; NaN without spread.
        sentence: What to keep in mind; empty if all is well.
    """

    same_luck: float
    correlation: float
    variance_ratio: float
    sentence: str


def pairing_quality(pairs: Sequence[Pair]) -> PairingQuality:
    """Measure the pairing; see :class:`PairingQuality`. Opponents' own means are taken out."""
    same = sum(pair.same_luck for pair in pairs) / len(pairs) if pairs else math.nan
    points = np.array([[pair.candidate.points, pair.baseline.points] for pair in pairs])
    opponents = np.array([pair.opponent for pair in pairs])
    for number in np.unique(opponents):
        points[opponents == number] -= points[opponents == number].mean(axis=0)
    spread = points.var(axis=0)
    correlation, ratio = math.nan, math.nan
    if len(pairs) > 1 and (spread > 0).all():
        correlation = float((points[:, 0] * points[:, 1]).mean() / math.sqrt(spread.prod()))
    if len(pairs) > 1 and spread.sum() > 0:
        ratio = float((points[:, 0] - points[:, 1]).var() / spread.sum())
    sentence = ""
    if pairs and same < 1:
        left = (
            ""
            if math.isnan(ratio)
            else (f"; the variance of the differences is {ratio:.2f} of that of unpaired ones")
        )
        sentence = (
            f"In {100 * (1 - same):.0f} % of the pairs the same world drew different things, as "
            f"its players acted differently{left}."
        )
    return PairingQuality(same, correlation, ratio, sentence)
