"""From matches to one difference per opponent and world, and how the worlds hang together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Layout = Literal["shared worlds", "worlds of its own", "partly shared worlds"]


@dataclass(frozen=True)
class Side:
    """What one of the two players did against an opponent in a world.

    Attributes:
        points: Mean over the seats (and repeats) of its points.
        by_seat: Its points in seat 0 and in seat 1, each a mean over the repeats.
        games: Matches that this is made of.
        fingerprints: What the worlds really drew.
    """

    points: float
    by_seat: tuple[float, ...]
    games: int
    fingerprints: frozenset[str]


@dataclass(frozen=True)
class Pair:
    """Candidate and baseline against one opponent in one world.

    Attributes:
        opponent: Index of the opponent.
        world: Number of the world.
        candidate: What the candidate did.
        baseline: What the baseline did.
    """

    opponent: int
    world: int
    candidate: Side
    baseline: Side

    @property
    def difference(self) -> float:
        """d_js: the candidate's points less the baseline's, mean over the seats."""
        return self.candidate.points - self.baseline.points

    @property
    def same_luck(self) -> bool:
        """Whether all its matches drew the same."""
        drawn = self.candidate.fingerprints | self.baseline.fingerprints
        return len(drawn) == 1 and "" not in drawn


@dataclass(frozen=True)
class Missing:
    """An opponent and world that cannot be counted.

    Attributes:
        opponent: Index of the opponent.
        world: Number of the world.
        reason: Why, in a few words.
    """

    opponent: int
    world: int
    reason: str


@dataclass(frozen=True)
class Stratum:
    """Worlds that were played against the same opponents, and are resampled among themselves.

    Attributes:
        opponents: Indices of those opponents.
        worlds: The worlds.
        differences: d_js, shape ``[opponents, worlds]``.
    """

    opponents: tuple[int, ...]
    worlds: tuple[int, ...]
    differences: NDArray[np.float64]


def collect_pairs(
    frame: pd.DataFrame,
    candidate: str,
    baseline: str,
    opponents: Sequence[str],
    worlds: Sequence[int],
    *,
    both_seats: bool = True,
) -> tuple[list[Pair], list[Missing]]:
    """Pick the matches of a comparison and pair them.

    A world counts for an opponent only where both players have a normal match in every seat, and
    equally many of them; everything else of that world and opponent is left out and told.

    Args:
        frame: Matches with the columns ``lanista.league.record.FRAME_COLUMNS``, of one game with
            one configuration.
        candidate: Content hash of the candidate.
        baseline: Content hash of the baseline.
        opponents: Content hashes of the opponents.
        worlds: The worlds asked for.
        both_seats: Whether each plays in both seats; else in either.

    Returns:
        The pairs, and what could not be paired, both by opponent and world.
    """
    cells: dict[tuple[str, int, int], dict[int, list[tuple[str, float, str]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    wanted = set(worlds)
    numbers = {sha256: index for index, sha256 in enumerate(opponents)}
    columns = ["player0", "player1", "points0", "points1", "ending", "world", "fingerprint"]
    for one, other, won, lost, ending, world, drawn in frame[columns].itertuples(index=False):
        if int(world) not in wanted:
            continue
        for seat, (own, against, points) in enumerate(((one, other, won), (other, one, lost))):
            if own in (candidate, baseline) and against in numbers:
                kept = cells[own, numbers[against], int(world)][seat if both_seats else 0]
                kept.append((str(ending), float(points), str(drawn)))
    pairs: list[Pair] = []
    missing: list[Missing] = []
    seats = (0, 1) if both_seats else (0,)
    for number in range(len(opponents)):
        for world in worlds:
            sides = [cells[player, number, world] for player in (candidate, baseline)]
            problem = _problem(sides, seats)
            if problem:
                missing.append(Missing(number, world, problem))
            else:
                pairs.append(Pair(number, world, *(_side(side, seats) for side in sides)))
    return pairs, missing


def _problem(
    sides: Sequence[Mapping[int, list[tuple[str, float, str]]]], seats: Sequence[int]
) -> str:
    rows = [row for side in sides for seat in seats for row in side.get(seat, [])]
    endings = {ending for ending, _, _ in rows}
    for bad in ("invalid", "forfeit"):
        if bad in endings:
            return f"{sum(ending == bad for ending, _, _ in rows)} of its matches {bad}"
    counts = {len(side.get(seat, [])) for side in sides for seat in seats}
    if 0 in counts:
        return "not played in every seat by both"
    return "" if len(counts) == 1 else "not played equally often in every seat by both"


def _side(side: Mapping[int, list[tuple[str, float, str]]], seats: Sequence[int]) -> Side:
    by_seat = tuple(sum(points for _, points, _ in side[seat]) / len(side[seat]) for seat in seats)
    return Side(
        points=sum(by_seat) / len(by_seat),
        by_seat=by_seat,
        games=sum(len(side[seat]) for seat in seats),
        fingerprints=frozenset(drawn for seat in seats for _, _, drawn in side[seat]),
    )


def strata_of(pairs: Sequence[Pair]) -> list[Stratum]:
    """Group the worlds by the opponents that were met in them.

    A world's matches share its draw, so they are one sample whatever their number: worlds move as
    a whole, over all opponents met there. Worlds with the same opponents may stand for each other.
    """
    by_world: dict[int, dict[int, float]] = defaultdict(dict)
    for pair in pairs:
        by_world[pair.world][pair.opponent] = pair.difference
    grouped: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for world, found in sorted(by_world.items()):
        grouped[tuple(sorted(found))].append(world)
    return [
        Stratum(
            opponents=opponents,
            worlds=tuple(worlds),
            differences=np.array(
                [[by_world[world][opponent] for world in worlds] for opponent in opponents]
            ),
        )
        for opponents, worlds in sorted(grouped.items())
    ]


def layout_of(strata: Sequence[Stratum]) -> Layout:
    """Name how opponents and worlds hang together."""
    if len(strata) <= 1:
        return "shared worlds"
    if all(len(stratum.opponents) == 1 for stratum in strata):
        return "worlds of its own"
    return "partly shared worlds"
