"""Units of work on Ray actors: a killed, crashed or hung worker costs one try of one unit."""

import logging
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lanista.data.executor import WorkerFailure
from lanista.envs.errors import InputError, LanistaError, RunError
from lanista.platform.cluster import describe_resources

_log = logging.getLogger(__name__)
_NOTICE_AFTER_S = 30.0


class RayExecutor:
    """Runs units on Ray actors; implements :class:`lanista.data.executor.Executor`.

    Ray must be up (see :func:`lanista.platform.cluster.ray_session`). Each actor has one call in
    flight at most, so a slow consumer or a slow worker never piles units up. Actors are started
    for one :meth:`run` and given back at its end, however it ends; used as a context manager, the
    executor keeps them for the next run until the block ends.

    Ray repeats nothing by itself: a unit whose worker dies is tried again here, on a new actor, so
    that a play that kills its worker cannot burn the tries of its neighbours.

    Attributes:
        restarted: How many workers had to be started anew so far.
    """

    def __init__(
        self,
        workers: int,
        *,
        hang_timeout_s: float | None = 900.0,
        max_tries: int = 3,
        start_timeout_s: float = 300.0,
        cpus_per_worker: float = 1.0,
        gpus_per_worker: float = 0.0,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Ask for workers; none is started before :meth:`run`.

        Args:
            workers: Number of actors.
            hang_timeout_s: Seconds that one unit may take before its worker counts as hung;
                ``None`` for no limit.
            max_tries: Tries of a unit before it becomes a ``WorkerFailure``.
            start_timeout_s: Seconds in which a first worker has to come up.
            cpus_per_worker: CPUs that each actor occupies in the cluster.
            gpus_per_worker: GPUs that each actor occupies in the cluster.
            notify: Is told when workers have been waited for unusually long.

        Raises:
            InputError: If a number makes no sense.
        """
        problems = []
        if workers < 1:
            problems.append(f"workers is {workers}; at least 1 is needed.")
        if max_tries < 1:
            problems.append(f"max_tries is {max_tries}; at least 1 is needed.")
        if hang_timeout_s is not None and hang_timeout_s <= 0:
            problems.append(f"hang_timeout_s is {hang_timeout_s}; it must be above 0.")
        if problems:
            raise InputError(*problems)
        self.workers = workers
        self.restarted = 0
        self._hang_timeout_s = hang_timeout_s
        self._max_tries = max_tries
        self._start_timeout_s = start_timeout_s
        self._cpus = cpus_per_worker
        self._gpus = gpus_per_worker
        self._notify = notify or _log.warning
        self._kept: _Pool | None = None

    def __enter__(self) -> Self:
        self._kept = _Pool(self._cpus, self._gpus)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def run[U, R](
        self, make_worker: Callable[[], Callable[[U], R]], units: Sequence[U]
    ) -> Iterator[tuple[int, R | WorkerFailure]]:
        """Run every unit once and yield its index and result as they get ready, in any order.

        An exception that is no :class:`LanistaError` counts as a crash of the worker, whose games
        may be in any state after it.

        Args:
            make_worker: Called once in each worker (it must pickle); returns the function that
                turns a unit into its result.
            units: What to run; each must hold all that decides its result, seeds included.

        Raises:
            InputError: If the cluster can never hold the workers.
            RunError: If no worker comes up.
            LanistaError: What a unit raised on purpose is raised here.
        """
        if not units:
            return
        count = min(self.workers, len(units))
        check_resources(count, self._cpus, self._gpus)
        pool = self._kept if self._kept is not None else _Pool(self._cpus, self._gpus)
        waiting: deque[tuple[int, int]] = deque((index, 1) for index in range(len(units)))
        try:
            pool.begin(make_worker, count)
            yield from self._drive(pool, waiting, units)
        finally:
            # Actors that are in the middle of something are of no use to the next run.
            if pool is not self._kept or pool.busy or waiting:
                pool.close()

    def _drive[U](
        self, pool: "_Pool", waiting: deque[tuple[int, int]], units: Sequence[U]
    ) -> Iterator[tuple[int, Any]]:
        failed_starts = 0
        patience = _Patience(self._start_timeout_s, self._notify)
        while waiting or pool.busy:
            for lane, outcome in pool.wait(self._next_deadline(pool)):
                if lane.unit is None and isinstance(outcome, _Crash):
                    failed_starts += 1
                    if failed_starts >= self._max_tries:
                        raise RunError(f"Workers cannot be started: {outcome.detail}")
                    self._replace(pool, lane)
                elif isinstance(outcome, LanistaError):
                    raise outcome
                elif isinstance(outcome, _Crash):
                    yield from self._again(lane, waiting, "crash", outcome.detail)
                    self._replace(pool, lane, wanted=bool(waiting))
                else:
                    failed_starts = 0
                    finished = lane.unit
                    # The next unit goes out before this result is handed over, so that a slow
                    # consumer never leaves the worker idle.
                    pool.give(lane, waiting, units)
                    if finished is not None:
                        yield finished[0], outcome.value
            for lane in pool.overdue(self._hang_timeout_s):
                detail = f"no result within {self._hang_timeout_s:g} s; its worker was killed"
                yield from self._again(lane, waiting, "hang", detail)
                self._replace(pool, lane, wanted=bool(waiting))
            patience.check(pool.busy)

    def _next_deadline(self, pool: "_Pool") -> float:
        """Seconds to wait at most before hung workers are looked for."""
        if self._hang_timeout_s is None:
            return 1.0
        return min(1.0, max(0.01, pool.oldest_start() + self._hang_timeout_s - time.monotonic()))

    def _again(
        self, lane: "_Lane", waiting: deque[tuple[int, int]], kind: str, detail: str
    ) -> Iterator[tuple[int, WorkerFailure]]:
        assert lane.unit is not None
        index, tries = lane.unit
        if tries < self._max_tries:
            waiting.appendleft((index, tries + 1))
        else:
            yield index, WorkerFailure(kind, detail, tries)

    def _replace(self, pool: "_Pool", lane: "_Lane", *, wanted: bool = True) -> None:
        pool.drop(lane)
        if wanted:
            self.restarted += 1
            pool.start()


def check_resources(workers: int, cpus: float = 1.0, gpus: float = 0.0) -> None:
    """Refuse work that the cluster as it stands could never start.

    Raises:
        InputError: If it has fewer CPUs or GPUs than the workers need together.
    """
    import ray

    found = ray.cluster_resources()
    problems = []
    for name, each in (("CPU", cpus), ("GPU", gpus)):
        needed = workers * each
        if needed > found.get(name, 0) + 1e-9:
            problems.append(
                f"{workers} workers need {needed:g} {name}, the cluster has "
                f"{found.get(name, 0):g}; ask for fewer workers, or add nodes."
            )
    if problems:
        raise InputError(*problems)


class _Patience:
    """Says once that workers are slow to come, and gives up in the end."""

    def __init__(self, limit_s: float, notify: Callable[[str], None]) -> None:
        self._since = time.monotonic()
        self._limit_s = limit_s
        self._notify = notify
        self._told = False

    def check(self, busy: bool) -> None:
        if busy:
            self._since = time.monotonic()
            return
        waited = time.monotonic() - self._since
        if waited > self._limit_s:
            raise RunError(f"No worker came up within {waited:.0f} s: {describe_resources()}.")
        if waited > _NOTICE_AFTER_S and not self._told:
            self._told = True
            self._notify(f"Still waiting for workers after {waited:.0f} s: {describe_resources()}.")


@dataclass(eq=False)
class _Lane:
    """An actor and what it is doing; ``unit`` is (index, try), ``None`` while it starts."""

    actor: Any
    call: Any = None
    unit: tuple[int, int] | None = None
    since: float = 0.0


@dataclass(frozen=True)
class _Done:
    value: Any


@dataclass(frozen=True)
class _Crash:
    detail: str


class _Pool:
    """The actors of one run, each with one call in flight at most."""

    def __init__(self, cpus: float, gpus: float) -> None:
        import ray

        self._actor_class = ray.remote(_Worker).options(
            num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_task_retries=0
        )
        self._make_worker: Any = None
        self._lanes: list[_Lane] = []

    def begin(self, make_worker: Callable[[], Callable[[Any], Any]], count: int) -> None:
        """Prepare the actors there are for another kind of unit, and start those that lack."""
        import ray

        self._make_worker = ray.put(make_worker)
        for lane in self._lanes:
            lane.unit, lane.call = None, lane.actor.prepare.remote(self._make_worker)
        while len(self._lanes) < count:
            self.start()

    @property
    def busy(self) -> bool:
        """Whether any unit is being worked on."""
        return any(lane.unit is not None for lane in self._lanes)

    def start(self) -> None:
        """Start one more actor; its first outcome says that it came up."""
        actor = self._actor_class.remote()
        call = actor.prepare.remote(self._make_worker)
        self._lanes.append(_Lane(actor, call, since=time.monotonic()))

    def give(self, lane: _Lane, waiting: deque[tuple[int, int]], units: Sequence[Any]) -> None:
        """Hand the next unit to an idle actor, if there is one."""
        lane.unit = lane.call = None
        if waiting:
            lane.unit = waiting.popleft()
            lane.since = time.monotonic()
            lane.call = lane.actor.work.remote(units[lane.unit[0]])

    def wait(self, timeout_s: float) -> list[tuple[_Lane, Any]]:
        """Return the lanes whose call ended within the time: ``_Done``, ``_Crash`` or error."""
        import ray

        calls = {lane.call: lane for lane in self._lanes if lane.call is not None}
        if not calls:
            return []
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=timeout_s)
        return [(calls[call], self._outcome(call)) for call in ready]

    def _outcome(self, call: Any) -> Any:
        import ray
        from ray.exceptions import RayError

        try:
            return ray.get(call)
        except RayError as error:
            return _Crash(_end_of(error))

    def oldest_start(self) -> float:
        """When the unit that has been running longest was handed out (monotonic seconds)."""
        return min((lane.since for lane in self._lanes if lane.unit), default=time.monotonic())

    def overdue(self, limit_s: float | None) -> list[_Lane]:
        """Return the lanes whose unit has taken longer than the limit."""
        if limit_s is None:
            return []
        now = time.monotonic()
        return [lane for lane in self._lanes if lane.unit and now - lane.since > limit_s]

    def drop(self, lane: _Lane) -> None:
        """Kill an actor and forget it."""
        import ray

        self._lanes.remove(lane)
        ray.kill(lane.actor, no_restart=True)

    def close(self) -> None:
        """Kill every actor; their CPUs are free again soon after."""
        import ray

        if ray.is_initialized():
            for lane in list(self._lanes):
                self.drop(lane)


class _Worker:
    """What runs in an actor's process."""

    def __init__(self) -> None:
        # Set before the unit's code loads torch or a BLAS: actors share the cores by processes.
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"
        self._work: Callable[[Any], Any] | None = None

    def prepare(self, make_worker: Callable[[], Callable[[Any], Any]]) -> Any:
        """Make the function that turns units into results."""

        def make() -> None:
            self._work = make_worker()

        return _guarded(make)

    def work(self, unit: Any) -> Any:
        """Turn one unit into its result."""
        work = self._work
        assert work is not None
        torch = sys.modules.get("torch")
        if torch is not None and torch.get_num_threads() != 1:
            torch.set_num_threads(1)
        return _guarded(lambda: work(unit))


def _guarded(call: Callable[[], Any]) -> Any:
    """Return what happened as a value, so that Ray does not wrap our own errors."""
    try:
        return _Done(call())
    except LanistaError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever breaks a unit is its result
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        return _Crash(f"{type(error).__name__}: {error}{where}")


def _end_of(error: Exception) -> str:
    """Take the one line of Ray's message that says how a worker ended."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "exit" in line.lower() or "killed" in line.lower()]
    return (telling or lines or [type(error).__name__])[-1]
