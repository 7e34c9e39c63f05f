"""Hindsight goals against a slow oracle that reads the episodes' traces one by one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lanista.data.dataset import GoalDataset
from lanista.data.episode import Episode, EpisodeKey
from lanista.data.sampler import HindsightSampler
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

CATALOGUE = Catalogue.of(
    (Function(f"toy:Game.f{place}", "toy.py", 1, "Game") for place in range(8)), "class"
)
GOALS = (5, 0, 2, 7)
TRACES = st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=1, max_size=9)


def make_dataset(plays: list[list[list[int]]]) -> GoalDataset:
    episodes = [
        Episode(
            key=EpisodeKey("toy", "1", "0" * 64, CATALOGUE.sha256, world, 0, "p", None, 100),
            world_fingerprint="",
            actions=np.zeros(len(traces), dtype=np.int64),
            rewards=np.zeros(len(traces), dtype=np.float32),
            trace_ids=np.array([call for trace in traces for call in trace], dtype=np.uint16),
            trace_offsets=np.cumsum([0, *map(len, traces)]),
            reset_trace=CallTrace(GOALS),  # what reset calls reaches no goal
            terminated=True,
            truncated=False,
            observations=np.zeros((len(traces) + 1, 2), dtype=np.float32),
        )
        for world, traces in enumerate(plays)
    ]
    return GoalDataset.from_episodes(episodes, GOALS, CATALOGUE, action_count=1)


def goals_left(plays: list[list[list[int]]]) -> list[set[int]]:
    """Say for every row which goals its own or a later action of its episode calls."""
    return [
        {GOALS.index(call) for trace in traces[step:] for call in trace if call in GOALS}
        for traces in plays
        for step in range(len(traces))
    ]


@given(st.lists(TRACES, min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 2**32))
def test_windows_are_valid_and_choices_are_the_oracles(
    plays: list[list[list[int]]], context: int, seed: int
) -> None:
    dataset, left = make_dataset(plays), goals_left(plays)
    if not any(left):
        with pytest.raises(InputError, match="None of the 4 goals is reached"):
            HindsightSampler(dataset, context)
        return
    sampler = HindsightSampler(dataset, context)
    for row, goals in enumerate(left):
        assert set(sampler.goals_left(row).tolist()) == goals
        assert sampler.choices[row] == len(goals)
    assert sampler.eligible.tolist() == [row for row, goals in enumerate(left) if goals]
    windows = sampler.sample(np.random.default_rng(seed), 32)
    assert windows.rows.shape == windows.valid.shape == (32, context)
    for rows, valid, goal in zip(windows.rows, windows.valid, windows.goals, strict=True):
        end = rows[-1]
        length = min(context, int(dataset.step_of_row[end]) + 1)
        assert valid.tolist() == [place < length for place in range(context)]
        assert rows[valid].tolist() == list(range(end - length + 1, end + 1))
        assert (rows[~valid] == end).all()
        assert all(goal in left[row] for row in rows)


def test_draws_are_even_over_rows_and_then_over_distinct_goals() -> None:
    # Goal 0 is called ten times as often as goal 2, and must be no likelier for it.
    plays = [[[0] * 10, [0] * 10, [2], []], [[1], [7, 5, 0], [5]], [[], [1]]]
    dataset, left = make_dataset(plays), goals_left(plays)
    draws = 60_000
    windows = HindsightSampler(dataset).sample(np.random.default_rng(3), draws)
    seen = Counter(zip(windows.rows[:, 0].tolist(), windows.goals.tolist(), strict=True))
    eligible = sum(bool(goals) for goals in left)
    expected = {
        (row, goal): draws / eligible / len(goals)
        for row, goals in enumerate(left)
        for goal in goals
    }
    assert set(seen) == set(expected)
    pairs = sorted(expected)
    test = stats.chisquare([seen[pair] for pair in pairs], [expected[pair] for pair in pairs])
    assert test.pvalue > 1e-4


def test_a_generator_put_back_draws_the_same_windows() -> None:
    sampler = HindsightSampler(make_dataset([[[0], [2], [7], [5]]]), 3)
    rng = np.random.default_rng(1)
    sampler.sample(rng, 5)
    state = rng.bit_generator.state
    first = sampler.sample(rng, 20)
    again = np.random.default_rng(2)
    again.bit_generator.state = state
    second = sampler.sample(again, 20)
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.goals, second.goals)


def test_a_window_holds_at_least_one_row() -> None:
    with pytest.raises(InputError, match="at least 1 row"):
        HindsightSampler(make_dataset([[[0]]]), 0)
