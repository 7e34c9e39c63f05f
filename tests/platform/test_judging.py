"""The table that a sweep prints: seeds together, rates that stay rates."""

import numpy as np

from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.platform.judging import make_table

CATALOGUE = Catalogue.of([Function("maze:walk", "maze.py", 1)], "class")


def evaluation(successes: int) -> Evaluation:
    reached = np.zeros((1, 10), dtype=np.int64)
    reached[0, :successes] = 1
    return Evaluation(
        protocol=GoalProtocol("maze:MAZE", ("maze:walk",), 10, tuple(range(10)), 5, 0),
        player="p",
        engine={},
        catalogue=CATALOGUE,
        played=np.ones((1, 10), dtype=np.bool_),
        reached_at=reached,
        returns=np.ones((1, 10)),
        steps=np.ones((1, 10), dtype=np.int64),
        called=reached.astype(np.bool_)[:, :, None],
    )


def test_the_interval_of_a_rate_over_seeds_stays_between_0_and_1() -> None:
    [row] = make_table({"agent": [evaluation(0), evaluation(1)]})
    cell = row["success_rate"]
    # Student's t alone would say from -0.59 to 0.69.
    assert (cell["value"], cell["low"]) == (0.05, 0.0)
    assert 0.6 < cell["high"] < 0.7
    [row] = make_table({"agent": [evaluation(9), evaluation(10)]})
    assert row["success_rate"]["high"] == 1.0
