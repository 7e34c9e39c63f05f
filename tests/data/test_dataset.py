"""Episodes end to end: every row and frame of the arrays is the episodes' own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.data.dataset import GoalDataset
from lanista.data.episode import Episode, EpisodeKey
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

CATALOGUE = Catalogue.of(
    (Function(f"toy:Game.f{place}", "toy.py", 1, "Game") for place in range(7)), "class"
)
TRACES = st.lists(st.integers(0, 6), max_size=12)
PLAYS = st.lists(st.tuples(TRACES, st.lists(TRACES, max_size=6)), min_size=1, max_size=5)


def make_episode(reset: list[int], traces: list[list[int]], world: int = 0) -> Episode:
    rng = np.random.default_rng(world)
    return Episode(
        key=EpisodeKey("toy", "1", "0" * 64, CATALOGUE.sha256, world, 0, "player", None, 100),
        world_fingerprint="",
        actions=rng.integers(0, 5, len(traces)),
        rewards=np.zeros(len(traces), dtype=np.float32),
        trace_ids=np.array([call for trace in traces for call in trace], dtype=np.uint16),
        trace_offsets=np.cumsum([0, *map(len, traces)]),
        reset_trace=CallTrace(reset),
        terminated=True,
        truncated=False,
        observations=rng.integers(0, 256, (len(traces) + 1, 4, 6, 3), dtype=np.uint8),
    )


@given(PLAYS)
def test_rows_and_bags_are_those_of_the_episodes(plays: list[tuple[list[int], Any]]) -> None:
    episodes = [make_episode(*play, world=world) for world, play in enumerate(plays)]
    played = [episode for episode in episodes if episode.steps]
    if not played:
        with pytest.raises(InputError, match="no episode with an action"):
            GoalDataset.from_episodes(episodes, [0], CATALOGUE)
        return
    dataset = GoalDataset.from_episodes(episodes, [0], CATALOGUE, action_count=5)
    row = 0
    for place, episode in enumerate(played):
        assert dataset.episode_offsets[place] == row
        for step in range(episode.steps):
            frame = dataset.frame_of_row[row]
            assert dataset.episode_ids[dataset.episode_of_row[row]] == episode.key.episode_id
            assert dataset.step_of_row[row] == step
            assert dataset.actions[row] == episode.actions[step]
            assert np.array_equal(dataset.observations[frame], episode.observations[step])
            assert np.array_equal(dataset.observations[frame + 1], episode.observations[step + 1])
            for found, trace in (
                (dataset.bag(frame), episode.input_trace(step)),
                (dataset.bag(frame + 1), episode.trace(step)),
            ):
                assert np.array_equal(found, trace.bag())
            row += 1
    assert len(dataset) == row == dataset.episode_offsets[-1]
    assert dataset.observations.dtype == np.uint8
    assert dataset.longest_bag == max(
        1,
        *(len(set(e.trace(t).ids)) for e in played for t in range(e.steps)),
        *(len(set(e.reset_trace.ids)) for e in played),
    )


def test_changing_an_action_and_its_trace_changes_no_input_of_its_row() -> None:
    before = make_episode([1], [[2], [3, 3], [4]])
    after = make_episode([1], [[2], [5, 6, 0], [4]])
    first, second = (GoalDataset.from_episodes([e], [2], CATALOGUE) for e in (before, after))
    for row in (0, 1):
        assert np.array_equal(first.bag(row), second.bag(row))
    assert not np.array_equal(first.bag(2), second.bag(2))


def test_float_vectors_are_kept_as_float32() -> None:
    episode = replace(make_episode([], [[1], [2]]), observations=np.ones((3, 4)))
    dataset = GoalDataset.from_episodes([episode], [1, 2], CATALOGUE)
    assert dataset.observations.dtype == np.float32
    assert dataset.goal_names == ("toy:Game.f1", "toy:Game.f2")


GOOD = make_episode([1], [[2], [3]])


@pytest.mark.parametrize(
    ("episode", "goals", "count", "says"),
    [
        (GOOD, [], None, "no goal"),
        (GOOD, [1, 1], None, "more than once"),
        (GOOD, [9], None, r"\[9\] are not in the catalogue of 7"),
        (replace(GOOD, observations=None), [1], None, "without observations"),
        (replace(GOOD, observations=GOOD.observations[:2]), [1], None, "one more than actions"),
        (replace(GOOD, actions=np.ones((2, 2), np.float32)), [1], 3, "actions made of numbers"),
        (GOOD, [1], 1, "they must lie in 0 to 0"),
        (replace(GOOD, actions=np.array([0, -1])), [1], None, "actions from -1"),
        (replace(GOOD, observations=np.array([[1.0], [np.nan], [0]])), [1], None, "at step 1"),
        (replace(GOOD, observations=np.ones((3, 2), np.int64)), [1], None, "uint8 images"),
        (replace(GOOD, key=replace(GOOD.key, catalogue_sha256="f" * 64)), [1], None, "ffff"),
        (replace(GOOD, trace_ids=np.array([2, 7], np.uint16)), [1], None, "calls function 7"),
    ],
)
def test_episodes_that_cannot_be_learned_from_are_refused(
    episode: Episode, goals: list[int], count: int | None, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        GoalDataset.from_episodes([episode], goals, CATALOGUE, action_count=count)


def test_actions_made_of_numbers_are_kept_a_row_a_step() -> None:
    episode = replace(GOOD, actions=np.array([[[0.5, -1.0]], [[1.0, 0.25]]], np.float32))
    bounds = ((-1.0, -1.0), (1.0, np.inf))
    dataset = GoalDataset.from_episodes([episode], [1, 2], CATALOGUE, action_bounds=bounds)
    assert dataset.actions.dtype == np.float32
    assert dataset.actions.tolist() == [[0.5, -1.0], [1.0, 0.25]]
    assert (dataset.action_count, dataset.action_bounds) == (0, bounds)


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        ([[0.5, 0.0], [0.0, 1.5]], r"out of the game's bounds at step 1: \[0.0, 1.5\]"),
        ([[np.nan, 0.0], [0.0, 0.0]], "out of the game's bounds at step 0"),
        ([[0.0], [0.0]], "actions of 1 numbers, the game of 2"),
        ([0, 1], "has discrete actions, but the game's are made of 2 numbers"),
    ],
)
def test_actions_that_are_not_the_games_are_refused(actions: list[object], says: str) -> None:
    kind = np.int64 if isinstance(actions[0], int) else np.float32
    episode = replace(GOOD, actions=np.array(actions, kind))
    bounds = ((-1.0, -1.0), (1.0, 1.0))
    with pytest.raises(InputError, match=says):
        GoalDataset.from_episodes([episode], [1, 2], CATALOGUE, action_bounds=bounds)


def test_two_kinds_of_observation_are_refused() -> None:
    other = replace(make_episode([], [[1]], 1), observations=np.ones((2, 3)))
    with pytest.raises(InputError, match=f"Episode {other.key.episode_id} has observations float"):
        GoalDataset.from_episodes([GOOD, other], [1], CATALOGUE)
