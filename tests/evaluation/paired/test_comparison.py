"""The paired comparison: the 80-game example, and what may and may not be compared."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.evaluation.paired.comparison import Opponent, Question, compare
from lanista.evaluation.paired.design import Pair, Side, collect_pairs, layout_of, strata_of
from lanista.evaluation.paired.interval import (
    opponent_deltas,
    percentile_interval,
    resampled_deltas,
    weighted_delta,
)

MakeFrame = Callable[..., pd.DataFrame]
WEIGHTS = {"E": 0.7, "H": 0.3}
QUESTION = Question(
    candidate=("new", "c"),
    baseline=("old", "b"),
    opponents=tuple(Opponent(name, name, weight) for name, weight in WEIGHTS.items()),
    worlds=tuple(range(10)),
)


def eighty_games() -> list[tuple[str, str, int, float]]:
    """Two policies, two opponents, ten worlds and two seats; all drawn but what is said here."""
    rows = []
    for opponent, world in itertools.product(WEIGHTS, range(10)):
        first = 0.5
        if (opponent == "E" and world < 4) or (opponent == "H" and world < 2):
            first = 1.0
        elif opponent == "H" and world < 4:
            first = 0.0
        rows += [
            ("c", opponent, world, first),
            (opponent, "c", world, 0.5),
            ("b", opponent, world, 0.5),
            (opponent, "b", world, 0.5),
        ]
    return rows


def test_the_eighty_games_give_seven_hundredths(make_frame: MakeFrame) -> None:
    frame = make_frame(eighty_games())
    found = compare(frame, QUESTION)
    assert found.delta == pytest.approx(0.07)
    assert [row.delta for row in found.opponents] == pytest.approx([0.10, 0.0])
    assert (found.games, found.worlds, found.clusters) == (80, 20, 10)
    assert found.layout == "shared worlds"
    assert found.verdict == "undecided"
    assert (found.resamples, found.generator, found.seed) == (10_000, "PCG64", 0)
    # Another generator gives a neighbouring interval.
    assert (found.low, found.high) == pytest.approx((0.010, 0.135), abs=0.011)
    assert not any("drew different" in reason for reason in found.reasons)
    assert any("E 0.7, H 0.3" in reason for reason in found.reasons)


def test_the_given_draws_give_the_published_interval(make_frame: MakeFrame) -> None:
    pairs, missing = collect_pairs(make_frame(eighty_games()), "c", "b", list(WEIGHTS), range(10))
    assert missing == []
    strata = strata_of(pairs)
    rng = Random(2026)

    def draws(resamples: int, worlds: int) -> NDArray[np.int64]:
        return np.array([rng.choices(range(worlds), k=worlds) for _ in range(resamples)])

    deltas = resampled_deltas(strata, np.array(list(WEIGHTS.values())), resamples=1000, draws=draws)
    low, high = percentile_interval(deltas)
    assert (round(low, 3), round(high, 3)) == (0.010, 0.135)


def test_weights_change_the_answer(make_frame: MakeFrame) -> None:
    even = replace(
        QUESTION, opponents=tuple(replace(item, weight=0.5) for item in QUESTION.opponents)
    )
    assert compare(make_frame(eighty_games()), even).delta == pytest.approx(0.05)


def test_worlds_of_its_own_are_resampled_within_an_opponent(make_frame: MakeFrame) -> None:
    rows = [
        (one, other, world + (100 if "H" in (one, other) else 0), points)
        for one, other, world, points in eighty_games()
    ]
    question = replace(QUESTION, worlds=(*range(10), *range(100, 110)))
    found = compare(make_frame(rows), question)
    assert found.layout == "worlds of its own"
    assert (found.games, found.worlds, found.clusters) == (80, 20, 20)
    assert found.delta == pytest.approx(0.07)
    shared = compare(make_frame(eighty_games()), QUESTION)
    # The differences of E and H go together in the shared worlds, which widens the interval.
    assert found.high - found.low < shared.high - shared.low


def test_a_forfeit_takes_its_world_out(make_frame: MakeFrame) -> None:
    frame = make_frame(eighty_games())
    for ending, told in (("forfeit", "1 of its matches forfeit"), ("invalid", "invalid")):
        broken = frame.copy()
        broken.loc[0, ["ending", "points0", "points1"]] = [ending, math.nan, math.nan]
        found = compare(broken, QUESTION)
        assert [(item.opponent, item.world) for item in found.missing] == [(0, 0)]
        assert told in found.missing[0].reason
        assert found.games == 76
        assert found.clusters == 10
        assert found.layout == "partly shared worlds"
        assert found.opponents[0].delta == pytest.approx(0.25 * 3 / 9)
        assert found.delta == pytest.approx(0.7 * 0.25 * 3 / 9)


def test_a_missing_seat_takes_its_world_out(make_frame: MakeFrame) -> None:
    found = compare(make_frame(eighty_games()[1:]), QUESTION)
    assert [item.reason for item in found.missing] == ["not played in every seat by both"]
    doubled = make_frame([*eighty_games(), eighty_games()[0]])
    assert "equally often" in compare(doubled, QUESTION).missing[0].reason


def test_without_a_world_against_an_opponent_there_is_no_summary(make_frame: MakeFrame) -> None:
    rows = [row for row in eighty_games() if "H" not in row[:2]]
    found = compare(make_frame(rows), QUESTION)
    assert math.isnan(found.delta)
    assert found.to_json()["delta"] is None
    assert any("No world can be counted against H" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"opponents": ()}, "at least one opponent"),
        ({"opponents": (Opponent("E", "E", 0.7), Opponent("H", "H", 0.2))}, "add up to 0.9"),
        ({"opponents": (Opponent("E", "E", 1.5), Opponent("H", "H", -0.5))}, "negative"),
        ({"opponents": (Opponent("E", "E", math.nan),)}, "no number"),
        ({"opponents": (Opponent("E", "E", 0.7), Opponent("F", "E", 0.3))}, "same player"),
        ({"baseline": ("old", "c")}, "nothing to compare"),
        ({"opponents": (Opponent("E", "E", 1.0, "assisted"),)}, "assisted"),
        (
            {"opponents": (Opponent("E", "E", 0.7), Opponent("H", "H", 0.3, "replayed"))},
            "two plans",
        ),
        ({"worlds": (500,)}, "play the matches"),
    ],
)
def test_questions_without_sense_are_refused(
    make_frame: MakeFrame, changes: dict[str, object], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        compare(make_frame(eighty_games()), replace(QUESTION, **changes))  # type: ignore[arg-type]


def test_different_luck_is_told_with_what_is_left_of_the_pairing(make_frame: MakeFrame) -> None:
    frame = make_frame(eighty_games())
    frame["fingerprint"] = [f"f{number}" for number in range(len(frame))]
    found = compare(frame, QUESTION)
    assert found.pairing.same_luck == 0
    assert any("In 100 % of the pairs the same world drew different" in r for r in found.reasons)


def test_seats_count_alike_where_each_plays_alone(make_frame: MakeFrame) -> None:
    rows = [("c", "E", world, 1.0) for world in range(4)]
    rows += [("E", "b", world, 0.5) for world in range(4)]
    question = Question(
        ("new", "c"), ("old", "b"), (Opponent("E", "E", 1.0),), tuple(range(4)), both_seats=False
    )
    found = compare(make_frame(rows), question)
    assert (found.delta, found.games, found.clusters) == (0.5, 8, 4)


def pair(opponent: int, world: int, difference: float) -> Pair:
    side = [Side(points, (points, points), 2, frozenset({"x"})) for points in (difference, 0.0)]
    return Pair(opponent, world, *side)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 6), st.sampled_from([-1, -0.25, 0, 0.5, 1])),
        min_size=1,
        max_size=21,
        unique_by=lambda item: item[:2],
    )
)
def test_the_summary_is_the_mean_of_means(cells: list[tuple[int, int, float]]) -> None:
    strata = strata_of([pair(*cell) for cell in cells])
    plain = [
        np.mean([value for number, _, value in cells if number == opponent] or [math.nan])
        for opponent in range(3)
    ]
    assert opponent_deltas(strata, 3) == pytest.approx(plain, nan_ok=True)
    played = [opponent for opponent in range(3) if not math.isnan(plain[opponent])]
    weights = np.array([1 / len(played) if number in played else 0.0 for number in range(3)])
    used = [pair(*cell) for cell in cells]
    expected = sum(weights[opponent] * plain[opponent] for opponent in played)
    assert weighted_delta(strata_of(used), weights) == pytest.approx(expected)
    deltas = resampled_deltas(strata, weights, resamples=50)
    assert deltas.min() >= -1.0 - 1e-9
    assert deltas.max() <= 1.0 + 1e-9


def test_resampling_moves_a_world_as_a_whole() -> None:
    # Against two opponents a world helps and hurts alike: its sum never moves.
    pairs = [
        pair(number, world, (1 - 2 * number) * world / 10)
        for number in (0, 1)
        for world in range(8)
    ]
    strata = strata_of(pairs)
    assert layout_of(strata) == "shared worlds"
    deltas = resampled_deltas(strata, np.array([0.5, 0.5]), resamples=200)
    assert np.ptp(deltas) < 1e-12


def test_the_bootstrap_agrees_with_every_resample_there_is() -> None:
    differences = [0.25, -0.5, 1.0, 0.0]
    strata = strata_of([pair(0, world, value) for world, value in enumerate(differences)])
    everything = [np.mean(choice) for choice in itertools.product(differences, repeat=4)]
    low, high = percentile_interval(resampled_deltas(strata, np.ones(1), resamples=40_000))
    assert low == pytest.approx(np.quantile(everything, 0.025), abs=0.02)
    assert high == pytest.approx(np.quantile(everything, 0.975), abs=0.02)
