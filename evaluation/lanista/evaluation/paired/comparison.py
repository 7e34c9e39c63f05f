"""A paired comparison of a candidate with a baseline, from its plan to its verdict."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lanista.envs.errors import InputError
from lanista.evaluation.paired.design import (
    Layout,
    Missing,
    Pair,
    collect_pairs,
    layout_of,
    strata_of,
)
from lanista.evaluation.paired.interval import (
    GENERATOR,
    RESAMPLES,
    opponent_deltas,
    percentile_interval,
    resampled_deltas,
    weighted_delta,
)
from lanista.evaluation.paired.pairing import PairingQuality, pairing_quality

UNDECIDED = "undecided"
FEW_WORLDS = 20
"""Below so many worlds a percentile interval is too narrow to lean on."""


@dataclass(frozen=True)
class Opponent:
    """Somebody whom both players meet.

    Attributes:
        name: What people call it.
        sha256: Content hash.
        weight: Its share of the summary.
        kind: ``reactive``, or ``replayed`` or ``assisted`` for recordings.
    """

    name: str
    sha256: str
    weight: float
    kind: str = "reactive"


@dataclass(frozen=True)
class Question:
    """What is compared.

    Attributes:
        candidate: Name and content hash of the one that is new.
        baseline: Of the one that it is measured against.
        opponents: Whom they meet; the weights add up to 1.
        worlds: Where.
        both_seats: Whether each plays in both seats of every world.
    """

    candidate: tuple[str, str]
    baseline: tuple[str, str]
    opponents: tuple[Opponent, ...]
    worlds: tuple[int, ...]
    both_seats: bool = True


@dataclass(frozen=True)
class OpponentRow:
    """How the difference looks against one opponent.

    Attributes:
        name: The opponent.
        weight: Its share of the summary.
        delta: Mean difference; NaN without a world.
        low: Low end of its 95 % interval.
        high: High end.
        candidate: Mean points of the candidate.
        baseline: Mean points of the baseline.
        games: Matches counted.
        worlds: Worlds counted.
    """

    name: str
    weight: float
    delta: float
    low: float
    high: float
    candidate: float
    baseline: float
    games: int
    worlds: int


@dataclass(frozen=True)
class Comparison:
    """The answer, given these opponents and weights.

    Attributes:
        delta: Weighted difference of points; NaN if an opponent has no world.
        low: Low end of the 95 % percentile interval.
        high: High end.
        games: Matches counted.
        worlds: Pairs of an opponent and a world.
        clusters: Worlds resampled as wholes: the number of independent samples.
        layout: How opponents and worlds hang together.
        opponents: A row each.
        pairing: How much the matches of a world really share.
        verdict: ``undecided`` where no rule says more.
        reasons: Why, and what to keep in mind; sentences.
        resamples: B of the interval.
        generator: Its generator.
        seed: Its seed.
        missing: What was left out.
    """

    delta: float
    low: float
    high: float
    games: int
    worlds: int
    clusters: int
    layout: Layout
    opponents: tuple[OpponentRow, ...]
    pairing: PairingQuality
    verdict: str
    reasons: tuple[str, ...]
    resamples: int
    generator: str
    seed: int
    missing: tuple[Missing, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON; numbers that are not known are ``None``."""
        value = asdict(self)
        value["missing"] = [
            {**asdict(item), "opponent": self.opponents[item.opponent].name}
            for item in self.missing
        ]
        found: dict[str, Any] = _plain(value)
        return found


def compare(
    frame: pd.DataFrame, question: Question, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare two players by the matches of a ledger.

    Only normal matches count. Recordings are opponents of their own kind: a question asks either
    about opponents that answer or about recordings, never about both.

    Args:
        frame: Matches of one game with one configuration, as the ledger gives them.
        question: What is compared.
        resamples: B.
        seed: Of the resampling.

    Raises:
        InputError: If the question makes no sense, or there is no match to answer it with.
    """
    _check(question)
    pairs, missing = collect_pairs(
        frame,
        question.candidate[1],
        question.baseline[1],
        [opponent.sha256 for opponent in question.opponents],
        question.worlds,
        both_seats=question.both_seats,
    )
    if not pairs:
        told = missing[0].reason if missing else "no worlds were asked for"
        raise InputError(
            f"There is no world in which {question.candidate[0]} and {question.baseline[0]} can "
            f"be compared ({told}); play the matches of this plan first."
        )
    strata = strata_of(pairs)
    weights = np.array([opponent.weight for opponent in question.opponents])
    by_opponent = opponent_deltas(strata, len(weights))
    complete = not np.isnan(by_opponent[weights > 0]).any()
    delta, low, high = math.nan, math.nan, math.nan
    if complete:
        delta = weighted_delta(strata, weights)
        found = resampled_deltas(strata, weights, resamples=resamples, seed=seed)
        low, high = percentile_interval(found)
    quality = pairing_quality(pairs)
    clusters = sum(len(stratum.worlds) for stratum in strata)
    rows = tuple(
        _row(opponent, [pair for pair in pairs if pair.opponent == number], resamples, seed)
        for number, opponent in enumerate(question.opponents)
    )
    return Comparison(
        delta=delta,
        low=low,
        high=high,
        games=sum(pair.candidate.games + pair.baseline.games for pair in pairs),
        worlds=len(pairs),
        clusters=clusters,
        layout=layout_of(strata),
        opponents=rows,
        pairing=quality,
        verdict=UNDECIDED,
        reasons=tuple(_reasons(question, rows, missing, clusters, quality, low, high)),
        resamples=resamples,
        generator=GENERATOR,
        seed=seed,
        missing=tuple(missing),
    )


def _check(question: Question) -> None:
    problems = []
    if not question.opponents:
        problems.append("A comparison needs at least one opponent.")
    total = sum(opponent.weight for opponent in question.opponents)
    if any(not opponent.weight >= 0 for opponent in question.opponents):
        problems.append("A weight of an opponent is negative or no number.")
    elif question.opponents and abs(total - 1) > 1e-9:
        problems.append(f"The opponents' weights add up to {total:g}; they must add up to 1.")
    if question.candidate[1] == question.baseline[1]:
        problems.append(
            f"{question.candidate[0]} and {question.baseline[0]} are the same player (same "
            "content hash); there is nothing to compare."
        )
    if len({opponent.sha256 for opponent in question.opponents}) < len(question.opponents):
        problems.append("Two of the opponents are the same player (same content hash).")
    kinds = {opponent.kind for opponent in question.opponents}
    if "assisted" in kinds:
        problems.append("An opponent is an assisted recording, against which nothing is scored.")
    elif len(kinds) > 1:
        problems.append(
            "Some opponents answer and some are recordings; compare against them in two plans."
        )
    if problems:
        raise InputError(*problems)


def _row(opponent: Opponent, pairs: Sequence[Pair], resamples: int, seed: int) -> OpponentRow:
    delta, low, high = math.nan, math.nan, math.nan
    points = [math.nan, math.nan]
    if pairs:
        alone = strata_of([Pair(0, *_rest(pair)) for pair in pairs])
        weight = np.ones(1)
        delta = weighted_delta(alone, weight)
        low, high = percentile_interval(
            resampled_deltas(alone, weight, resamples=resamples, seed=seed)
        )
        sides = (
            [pair.candidate.points for pair in pairs],
            [pair.baseline.points for pair in pairs],
        )
        points = [float(np.mean(side)) for side in sides]
    return OpponentRow(
        name=opponent.name,
        weight=opponent.weight,
        delta=delta,
        low=low,
        high=high,
        candidate=points[0],
        baseline=points[1],
        games=sum(pair.candidate.games + pair.baseline.games for pair in pairs),
        worlds=len(pairs),
    )


def _rest(pair: Pair) -> tuple[int, Any, Any]:
    return pair.world, pair.candidate, pair.baseline


def _reasons(
    question: Question,
    rows: Sequence[OpponentRow],
    missing: Sequence[Missing],
    clusters: int,
    quality: PairingQuality,
    low: float,
    high: float,
) -> list[str]:
    given = ", ".join(f"{row.name} {row.weight:g}" for row in rows)
    told = [f"Given these opponents and weights: {given}."]
    if any(opponent.kind != "reactive" for opponent in question.opponents):
        told.append("The opponents are recordings, which do not answer what the players do.")
    if empty := [row.name for row in rows if row.weight > 0 and not row.worlds]:
        told.append(f"No world can be counted against {', '.join(empty)}: there is no summary.")
    elif low <= 0 <= high:
        told.append("The interval holds 0: these matches do not tell the two apart.")
    else:
        told.append("The interval does not hold 0, but the plan has no rule that decides.")
    if clusters < FEW_WORLDS:
        told.append(
            f"Only {clusters} worlds: their interval is too narrow; play {FEW_WORLDS} or more."
        )
    if missing:
        told.append(
            f"{len(missing)} of {len(missing) + sum(row.worlds for row in rows)} pairs of opponent "
            f"and world were left out, the first because {missing[0].reason}."
        )
    if quality.sentence:
        told.append(quality.sentence)
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
