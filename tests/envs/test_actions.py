"""Drawing actions evenly out of the spaces that games have."""

import gymnasium
import numpy as np
import pytest
from scipy import stats

from lanista.envs.actions import draw_action


def test_discrete_actions_are_drawn_evenly_from_their_start() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_action(gymnasium.spaces.Discrete(3, start=5), rng) for _ in range(3000)]
    assert all(type(action) is int for action in drawn)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [5, 6, 7]
    assert stats.chisquare(counts).pvalue > 0.001


def test_numbers_are_drawn_evenly_between_their_bounds() -> None:
    space = gymnasium.spaces.Box(np.array([[-1, 2]], np.float32), np.array([[3, 4]], np.float32))
    rng = np.random.default_rng(1)
    drawn = np.stack([draw_action(space, rng) for _ in range(3000)])
    assert (drawn.shape, drawn.dtype) == ((3000, 1, 2), np.float32)
    for values, low, width in ((drawn[:, 0, 0], -1, 4), (drawn[:, 0, 1], 2, 2)):
        assert stats.kstest(values, stats.uniform(low, width).cdf).pvalue > 0.001


def test_numbers_without_bounds_stay_on_their_side() -> None:
    low = np.array([-np.inf, 1, -np.inf], np.float32)
    high = np.array([np.inf, np.inf, -1], np.float32)
    rng = np.random.default_rng(2)
    drawn = np.stack([draw_action(gymnasium.spaces.Box(low, high), rng) for _ in range(1000)])
    assert np.isfinite(drawn).all()
    assert drawn[:, 1].min() >= 1
    assert drawn[:, 2].max() <= -1
    assert stats.kstest(drawn[:, 0], stats.norm.cdf).pvalue > 0.001


def test_other_spaces_are_refused() -> None:
    with pytest.raises(TypeError, match="out of Discrete and Box spaces"):
        draw_action(gymnasium.spaces.MultiDiscrete([2, 3]), np.random.default_rng(0))
