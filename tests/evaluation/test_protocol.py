"""The goal protocol: what it counts, refuses, and that workers don't matter."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from vault_game import NAMES, make_robber

from lanista.data.executor import SerialExecutor, WorkerFailure
from lanista.envs.errors import InputError, RunError
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.protocol import check_protocol, default_worlds, evaluate, plan_units


def protocol(**changes: Any) -> GoalProtocol:
    fields: dict[str, Any] = {
        "game": "vault_game:GAME",
        "goals": ("grab", "wait", "turn", "creak", "never", "rust"),
        "episodes": 4,
        "worlds": default_worlds(5),
        "step_cap": 10,
        "seed": 0,
    }
    return GoalProtocol(**(fields | changes))


class ShuffledExecutor:
    """Several workers that get units in turns and finish them in another order."""

    restarted = 0

    def __init__(self, workers: int, fails: Callable[[Any], WorkerFailure | None] = lambda _: None):
        self.workers, self.fails = workers, fails

    def run(self, make_worker: Any, units: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        workers = [make_worker() for _ in range(self.workers)]
        order = np.random.default_rng(self.workers).permutation(len(units))
        for turn, index in enumerate(order):
            failure = self.fails(units[index])
            yield int(index), failure or workers[turn % self.workers](units[index])


def judged(executor: Any = None, **changes: Any) -> Evaluation:
    return evaluate(protocol(**changes), make_robber, "robber", executor or SerialExecutor())


def test_it_counts_what_the_paper_counts() -> None:
    found = judged()
    rates = [found.goal_success(index).value for index in range(6)]
    # Reset calls `rust`, and nobody calls `never`: neither is a success.
    assert rates[:3] == [1.0, 1.0, 1.0]
    assert rates[4:] == [0.0, 0.0]
    assert found.reached_at[0].tolist() == [4] * 4
    assert found.reached_at[2].tolist() == [1] * 4
    # The play goes on after the goal: 1 for opening, then 2 a step for steps 4 to 10.
    assert found.returns[0].tolist() == [15.0] * 4
    assert found.steps.tolist() == [[10] * 4] * 6
    assert found.success_rate.value == pytest.approx(found.success.mean())
    assert found.success_rate.low <= found.success_rate.value <= found.success_rate.high
    assert found.episode_return.value == pytest.approx(found.returns.mean())
    covered = {NAMES[index] for index in np.flatnonzero(found.covered)}
    assert {"turn", "open", "grab", "wait", "creak"} <= covered
    assert not covered & {"never", "rust", "setup"}
    summary = found.summary()
    assert summary["function_coverage"]["functions"] == len(NAMES)
    assert summary["function_coverage"]["goals"] == 6
    assert summary["function_coverage"]["goals_covered"] == 4
    assert "vault_game:Vault.never" in summary["unreached"]


def test_coverage_in_goals_is_counted_against_the_stated_base() -> None:
    found = judged(goals=("grab",), goal_base=("grab", "wait", "open", "turn"))
    assert found.summary()["function_coverage"]["goals"] == 4
    assert found.goals_covered == 3


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_and_order_change_nothing(workers: int) -> None:
    alone, wide = judged(), judged(ShuffledExecutor(workers))
    assert json.dumps(alone.to_json()) == json.dumps(wide.to_json())


def test_a_play_does_not_depend_on_the_other_goals() -> None:
    together, alone = judged(), judged(goals=("creak",), worlds=default_worlds(4))
    assert np.array_equal(together.called[3], alone.called[0])
    other = judged(goals=("creak",), seed=1)
    assert [path.tape.actions for path in alone.paths] != [p.tape.actions for p in other.paths]


def test_units_follow_from_the_protocol_alone() -> None:
    units = plan_units(protocol(episodes=10, worlds=default_worlds(10)))
    assert [len(unit.cells) for unit in units] == [10] * 6
    assert all(len({goal for goal, _ in unit.cells}) == 1 for unit in units)
    assert sum(len(unit.cells) for unit in plan_units(protocol())) == 24


def test_json_gives_the_same_evaluation_back() -> None:
    found = judged()
    value = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again = Evaluation.from_json(value)
    assert again.to_json() == found.to_json()
    assert np.array_equal(again.called, found.called)
    with pytest.raises(InputError, match="not an evaluation"):
        Evaluation.from_json({"protocol": {}})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"episodes": 0}, "0 episodes per goal judge nothing"),
        ({"goals": ("grb",)}, "did you mean Vault.grab"),
        ({"goals": ()}, "No goal is given"),
        ({"goals": ("grab", "Vault.grab")}, "twice"),
        ({"episodes": 6}, "need as many worlds; 5 are given"),
        ({"worlds": (1, 1, 2, 3)}, "name one twice"),
        ({"step_cap": 0}, "leaves no step"),
        ({"game": "nonesuch"}, "No game is named"),
        ({"scheme": "line"}, "none of definition"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_protocol(protocol(**changes))


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        check_protocol(protocol(episodes=0, goals=("grb", "wit"), step_cap=0))
    assert len(caught.value.problems) == 4


def test_worlds_of_the_training_data_are_refused() -> None:
    with pytest.raises(InputError, match=r"trained on 2 of these worlds \(10000, 10001\)"):
        check_protocol(protocol(), training_worlds=range(9990, 10002))
    # World 10004 is given but, with four episodes, not played.
    check_protocol(protocol(), training_worlds=[10004])


def test_a_lost_unit_costs_only_the_play_at_fault(tmp_path: Any) -> None:
    def fails(unit: Any) -> WorkerFailure | None:
        return WorkerFailure("hang", "no result in 5 s", 2) if (1, 2) in unit.cells else None

    found = evaluate(
        protocol(), make_robber, "robber", ShuffledExecutor(2, fails), scratch=tmp_path
    )
    assert found.played.sum() == 23
    assert not found.played[1, 2]
    assert np.isnan(found.returns[1, 2])
    (finding,) = found.findings
    assert (finding.fault.kind, finding.tape.world) == ("hang", 10002)
    whole = judged()
    assert np.array_equal(found.called[found.played], whole.called[found.played])
    assert found.goal_success(1).samples == 3


def test_when_nothing_comes_back_it_says_so() -> None:
    failing = ShuffledExecutor(1, lambda _: WorkerFailure("crash", "worker died", 3))
    with pytest.raises(RunError, match="No play left a record"):
        evaluate(protocol(), make_robber, "robber", failing)
