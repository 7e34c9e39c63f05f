"""Running many independent units of work, here or wide, with the same results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WorkerFailure:
    """A unit whose worker died or hung each time it was tried.

    Attributes:
        kind: ``crash`` or ``hang``.
        detail: What is known of the end, one line.
        tries: How often it was tried.
    """

    kind: str
    detail: str
    tries: int


class Executor(Protocol):
    """Runs units on workers; the platform's runs them on Ray actors."""

    @property
    def restarted(self) -> int:
        """How many workers had to be started anew so far."""
        ...

    def run[U, R](
        self, make_worker: Callable[[], Callable[[U], R]], units: Sequence[U]
    ) -> Iterator[tuple[int, R | WorkerFailure]]:
        """Run every unit once and yield its index and result as they get ready, in any order.

        Args:
            make_worker: Called once in each worker (it must pickle); returns the function that
                turns a unit into its result and may keep games open between units.
            units: What to run; each must hold all that decides its result, seeds included.

        Raises:
            LanistaError: What a unit raised on purpose is raised here.
        """
        ...


class SerialExecutor:
    """Runs units one after the other in this process."""

    restarted = 0

    def run[U, R](
        self, make_worker: Callable[[], Callable[[U], R]], units: Sequence[U]
    ) -> Iterator[tuple[int, R | WorkerFailure]]:
        """Run every unit in order; see :class:`Executor`.

        A worker that has a ``close`` is closed at the end: unlike a worker in a process of its
        own, it would leave its games open, and their functions recorded.
        """
        work = make_worker()
        try:
            for index, unit in enumerate(units):
                yield index, work(unit)
        finally:
            close = getattr(work, "close", None)
            if close is not None:
                close()
