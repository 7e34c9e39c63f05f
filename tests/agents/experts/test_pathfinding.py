import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from lanista.agents.experts.crafter.pathfinding import BLOCKED, FAR, MAX_COST, distance_field

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))
ENTRY = st.one_of(st.integers(1, 6), st.integers(1, 254), st.just(BLOCKED))
GRIDS = SHAPES.flatmap(lambda shape: hnp.arrays(np.uint8, shape, elements=ENTRY))


def by_scipy(cost: NDArray[np.uint8], source: tuple[int, int]) -> NDArray[np.float64]:
    """Distances over an explicit graph of the grid's cells."""
    width, height = cost.shape
    rows, columns, weights = [], [], []
    for x in range(width):
        for y in range(height):
            for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                u, v = x + dx, y + dy
                if 0 <= u < width and 0 <= v < height and cost[u, v] != BLOCKED:
                    rows.append(x * height + y)
                    columns.append(u * height + v)
                    weights.append(min(int(cost[u, v]), MAX_COST))
    cells = width * height
    graph = coo_matrix((weights, (rows, columns)), shape=(cells, cells)).tocsr()
    return dijkstra(graph, indices=source[0] * height + source[1]).reshape(cost.shape)


@settings(max_examples=200, deadline=None)
@given(cost=GRIDS, data=st.data())
def test_distances_are_those_of_an_independent_search(
    cost: NDArray[np.uint8], data: st.DataObject
) -> None:
    source = tuple(data.draw(st.integers(0, size - 1)) for size in cost.shape)
    field = distance_field(cost, source)
    expected = by_scipy(cost, source)
    reachable = np.isfinite(expected)
    assert np.array_equal(field.distance[reachable], expected[reachable])
    assert (field.distance[~reachable] == FAR).all()


@settings(max_examples=100, deadline=None)
@given(cost=GRIDS, data=st.data())
def test_following_first_steps_arrives_at_the_cost_that_was_promised(
    cost: NDArray[np.uint8], data: st.DataObject
) -> None:
    source = tuple(data.draw(st.integers(0, size - 1)) for size in cost.shape)
    goal = tuple(data.draw(st.integers(0, size - 1)) for size in cost.shape)
    field = distance_field(cost, source)
    if goal == source or field.distance[goal] == FAR:
        assert field.first_step(goal) is None
        return
    cell, paid = source, 0
    while cell != goal:
        step = distance_field(cost, cell).first_step(goal)
        assert step is not None
        assert abs(step[0] - cell[0]) + abs(step[1] - cell[1]) == 1
        paid += min(int(cost[step]), MAX_COST)
        cell = step
    assert paid == field.distance[goal]


def test_a_large_grid_is_searched_whole() -> None:
    cost = np.random.default_rng(5).integers(1, 30, (64, 64)).astype(np.uint8)
    assert np.array_equal(distance_field(cost, (31, 40)).distance, by_scipy(cost, (31, 40)))
