"""Intervals against independent oracles, and their coverage in simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lanista.evaluation.statistics import (
    paired_difference,
    t_interval,
    wilson_interval,
    world_interval,
    world_means,
)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_the_one_of_scipy(case: tuple[int, int]) -> None:
    successes, trials = case
    oracle = stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    found = wilson_interval(successes, trials)
    assert found.value == successes / trials
    assert found.low == pytest.approx(oracle.low, abs=1e-9)
    assert found.high == pytest.approx(oracle.high, abs=1e-9)


def test_wilson_known_values() -> None:
    # Five of ten at 95 %: a value printed in many tables of the score interval.
    found = wilson_interval(5, 10)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2366, 0.7634)
    assert math.isnan(wilson_interval(0, 0).value)
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(3, 2)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
def test_t_interval_is_the_one_of_scipy(values: list[float]) -> None:
    found = t_interval(values, "worlds")
    sample = np.array(values)
    error = stats.sem(sample)
    assert found.value == pytest.approx(sample.mean(), abs=1e-9)
    if len(set(values)) == 1:
        assert math.isnan(found.low)
        assert "gave the same value" in found.method
    elif error > 1e-12:
        low, high = stats.t.interval(0.95, len(sample) - 1, loc=sample.mean(), scale=error)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-7)


def test_t_interval_of_one_or_none_has_no_ends() -> None:
    one = t_interval([3.0, math.nan], "training seeds")
    assert one.value == 3.0
    assert math.isnan(one.low)
    assert one.to_json()["low"] is None
    assert "training seeds" in one.method
    assert t_interval([], "worlds").samples == 0


def test_world_means_leave_out_what_is_missing() -> None:
    table = np.array([[1.0, math.nan, math.nan], [0.0, 1.0, math.nan]])
    means = world_means(table)
    assert means[:2].tolist() == [0.5, 1.0]
    assert math.isnan(means[2])
    assert world_interval(table, rate=True).samples == 2


def test_a_rate_of_zero_everywhere_keeps_a_width() -> None:
    found = world_interval(np.zeros((94, 10)), rate=True)
    oracle = stats.binomtest(0, 10).proportion_ci(0.95, method="wilson")
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(oracle.high)
    assert "each world as one trial" in found.method


def test_worlds_that_agree_on_a_rate_do_not_make_it_certain() -> None:
    table = np.array([[1.0] * 4, [0.0] * 4, [0.0] * 4])
    found = world_interval(table, rate=True)
    assert found.value == pytest.approx(1 / 3)
    assert found.low < 0.15
    assert found.high > 0.55
    assert math.isnan(world_interval(table).low)
    assert math.isnan(paired_difference(table, np.zeros_like(table)).low)
    assert math.isnan(world_interval(table[:, :1], rate=True).low)


def test_a_rate_stays_within_its_bounds() -> None:
    table = np.zeros((1, 4))
    table[0, 0] = 1
    found = world_interval(table, rate=True)
    assert found.low == 0.0
    assert found.high <= 1.0


def test_paired_difference_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 5, size=(1, 12))
    first, second = rng.normal(1, 1, (6, 12)) + hard, rng.normal(0, 1, (6, 12)) + hard
    found = paired_difference(first, second)
    oracle = stats.ttest_rel(first.mean(axis=0), second.mean(axis=0)).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))
    unpaired = t_interval(first.mean(axis=0), "worlds")
    assert found.high - found.low < (unpaired.high - unpaired.low) / 2
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_difference(first, second[:, :3])


def test_the_world_interval_covers_as_often_as_it_says() -> None:
    # Goals succeed with a rate that depends on the world: plays of one world are correlated, so
    # an interval that took all plays as independent would cover far less often.
    rng = np.random.default_rng(11)
    goals, worlds, rounds = 40, 10, 2000
    clustered = naive = 0
    for _ in range(rounds):
        rates = rng.beta(4, 4, size=worlds)
        table = (rng.random((goals, worlds)) < rates).astype(float)
        found = world_interval(table, rate=True)
        clustered += found.low <= 0.5 <= found.high
        plain = wilson_interval(int(table.sum()), table.size)
        naive += plain.low <= 0.5 <= plain.high
    assert 0.93 <= clustered / rounds <= 0.97
    assert naive / rounds < 0.75


def test_worlds_that_are_alike_by_chance_leave_doubt() -> None:
    table = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    found = world_interval(table, rate=True)
    oracle = stats.binomtest(4, 8).proportion_ci(0.95, method="wilson")
    assert (found.low, found.value, found.high) == pytest.approx((oracle.low, 0.5, oracle.high))
    assert "no narrower than Wilson" in found.method


@pytest.mark.parametrize("worlds", [2, 3, 5])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
def test_the_rate_interval_covers_with_few_worlds(worlds: int, rate: float) -> None:
    rng = np.random.default_rng([worlds, int(100 * rate)])
    rounds = 600
    hits = sum(
        found.low <= rate <= found.high
        for found in (
            world_interval((rng.random((4, worlds)) < rate).astype(float), rate=True)
            for _ in range(rounds)
        )
    )
    assert hits / rounds >= 0.93


def test_rounding_alone_makes_no_interval() -> None:
    table = np.array([[np.float32(0.1), np.float32(0.1) + np.float32(1e-8)]], dtype=np.float64)
    table[0, 1] += 1e-8
    found = world_interval(table)
    assert found.value == pytest.approx(0.1)
    assert math.isnan(found.low)
    assert math.isnan(paired_difference(table, np.zeros_like(table)).low)


@pytest.mark.parametrize("worlds", [2, 3, 10])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.98])
@pytest.mark.parametrize("together", [False, True])
def test_a_rate_covers_with_few_worlds_and_near_its_bounds(
    worlds: int, rate: float, together: bool
) -> None:
    rng = np.random.default_rng([worlds, round(100 * rate), together])
    rounds, covered = 800, 0
    for _ in range(rounds):
        shape = (1 if together else 8, worlds)
        table = np.broadcast_to(rng.random(shape) < rate, (8, worlds)).astype(float)
        found = world_interval(table, rate=True)
        assert found.high - found.low > 0.05
        covered += found.low <= rate <= found.high
    assert covered / rounds > 0.93
