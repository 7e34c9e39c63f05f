"""Units on Ray actors: kills, hangs, crashes and errors."""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from ray import cloudpickle

from lanista.data.executor import WorkerFailure
from lanista.envs.errors import InputError, RunError
from lanista.platform.executor import RayExecutor

# Workers cannot import test modules, so what is sent to them goes by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.usefixtures("ray_cluster")


def make_square() -> Callable[[int], int]:
    return lambda number: number * number


def make_killed_once(folder: Path) -> Callable[[int], tuple[int, int]]:
    def work(number: int) -> tuple[int, int]:
        flag = folder / f"{number}.tried"
        if number == 3 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number, os.getpid()

    return work


def make_trouble() -> Callable[[str], str]:
    def work(unit: str) -> str:
        if unit == "crash":
            os._exit(7)
        if unit == "hang":
            time.sleep(600)
        if unit == "bug":
            raise ZeroDivisionError("planted")
        return unit

    return work


def make_refuser(kind: type[Exception]) -> Callable[[int], int]:
    def work(number: int) -> int:
        raise kind("unit", str(number)) if kind is InputError else kind(f"unit {number}")

    return work


def make_nothing() -> Callable[[int], int]:
    raise OSError("no such game folder")


def make_thread_counter() -> Callable[[int], int]:
    import torch

    return lambda _: torch.get_num_threads()


def test_every_unit_comes_back_once_with_its_index() -> None:
    executor = RayExecutor(2)
    results = list(executor.run(make_square, list(range(11))))
    assert sorted(results) == [(number, number * number) for number in range(11)]
    assert executor.restarted == 0


def test_no_units_start_no_workers() -> None:
    assert list(RayExecutor(500).run(make_square, [])) == []


def test_a_killed_worker_is_replaced_and_its_unit_tried_again(tmp_path: Path) -> None:
    executor = RayExecutor(2)
    results = dict(executor.run(partial(make_killed_once, tmp_path), list(range(8))))
    numbers = [result[0] for result in results.values() if not isinstance(result, WorkerFailure)]
    assert sorted(numbers) == list(range(8))
    assert (tmp_path / "3.tried").exists()
    assert executor.restarted == 1


def test_units_that_crash_hang_or_raise_are_failures_and_the_rest_goes_on() -> None:
    executor = RayExecutor(2, hang_timeout_s=2, max_tries=1)
    units = ["a", "hang", "b", "crash", "c", "bug", "d"]
    results = dict(executor.run(make_trouble, units))
    kinds = {
        units[index]: (result.kind, result.tries)
        for index, result in results.items()
        if isinstance(result, WorkerFailure)
    }
    assert kinds == {"hang": ("hang", 1), "crash": ("crash", 1), "bug": ("crash", 1)}
    assert [results[index] for index in (0, 2, 4, 6)] == ["a", "b", "c", "d"]
    assert "ZeroDivisionError: planted" in results[5].detail  # type: ignore[union-attr]
    assert "2 s" in results[1].detail  # type: ignore[union-attr]


def test_a_unit_is_tried_as_often_as_asked() -> None:
    executor = RayExecutor(1, max_tries=2)
    [(index, failure)] = executor.run(make_trouble, ["bug"])
    assert isinstance(failure, WorkerFailure)
    assert (index, failure.kind, failure.tries, executor.restarted) == (0, "crash", 2, 1)


@pytest.mark.parametrize("kind", [InputError, RunError])
def test_errors_on_purpose_come_back_as_they_are(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="unit") as caught:
        list(RayExecutor(1).run(partial(make_refuser, kind), [5]))
    if isinstance(caught.value, InputError):
        assert caught.value.problems == ("unit", "5")


def test_workers_that_cannot_start_say_why() -> None:
    with pytest.raises(RunError, match="no such game folder"):
        list(RayExecutor(1, max_tries=2).run(make_nothing, [1]))


def test_asking_for_more_than_the_cluster_has_is_refused_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"3 workers need 3 CPU, the cluster has 2"):
        list(RayExecutor(3).run(make_square, [1, 2, 3]))
    with pytest.raises(InputError, match="GPU"):
        list(RayExecutor(1, gpus_per_worker=1).run(make_square, [1]))
    assert time.monotonic() - began < 5


def test_numbers_that_make_no_sense_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        RayExecutor(0, max_tries=0, hang_timeout_s=-1)
    assert len(caught.value.problems) == 3


def test_workers_use_one_thread() -> None:
    assert list(RayExecutor(1).run(make_thread_counter, [0])) == [(0, 1)]


def test_stopping_early_gives_the_cpus_back() -> None:
    import ray

    for _ in RayExecutor(2).run(make_square, list(range(100))):
        break
    deadline = time.monotonic() + 20
    while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ray.available_resources()["CPU"] == 2


def make_process_id() -> Callable[[int], int]:
    return lambda _: os.getpid()


def test_kept_workers_serve_the_next_run() -> None:
    with RayExecutor(1) as executor:
        [(_, first)] = executor.run(make_process_id, [0])
        assert list(executor.run(make_square, [3])) == [(0, 9)]
        [(_, second)] = executor.run(make_process_id, [0])
        assert first == second
        for _ in executor.run(make_process_id, [0, 1, 2]):
            break
        [(_, third)] = executor.run(make_process_id, [0])
        assert third != first
        [(_, fourth)] = executor.run(make_trouble, ["bug"])
        assert isinstance(fourth, WorkerFailure)
