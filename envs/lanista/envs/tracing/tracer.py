"""The tracer: records the calls of a scope's functions and hands them out."""

import threading
from types import TracebackType
from typing import Self

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.instrumentation import Instrumentation
from lanista.envs.tracing.plan import Plan, make_plan
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.trace import CallTrace

_made: dict[tuple[Scope, Scheme], Instrumentation] = {}
_active: dict[tuple[Scope, Scheme], Instrumentation] = {}
_lock = threading.RLock()


def build_catalogue(scope: Scope, scheme: Scheme = "class") -> Catalogue:
    """Return the functions of a scope and their ids without importing or running anything.

    It is the same in every process and under every Python that Lanista runs on, since it comes
    from the syntax trees of the scope's modules.

    Raises:
        InputError: If a package isn't there, a pattern matches nothing, or the scheme is unknown.
    """
    return make_plan(scope, scheme).catalogue


class Tracer:
    """Records which functions of a scope are called, in order and with repetition.

    Tracers of the same scope and scheme share one record, so any number of games in a process may
    have one each, as long as they take turns: a step is cleared for, played and drained before
    another game's begins. Calls made by other threads go into the same record; give each thread's
    game a process of its own.

    Attributes:
        scope: What is recorded.
        scheme: How calls are told apart.
        record: What the calls are appended to; the same one for good.
    """

    def __init__(self, scope: Scope, scheme: Scheme = "class") -> None:
        """Plan the recording; nothing is changed before :meth:`install`.

        Raises:
            InputError: As :func:`build_catalogue`.
        """
        self.scope = scope
        self.scheme: Scheme = scheme
        self._plan: Plan = make_plan(scope, scheme)
        self._installed = 0
        with _lock:
            self.record = _made.setdefault((scope, scheme), Instrumentation(self._plan)).record

    @property
    def catalogue(self) -> Catalogue:
        """The functions recorded and their ids."""
        return self._plan.catalogue

    @property
    def installed(self) -> bool:
        """Whether this tracer records."""
        return self._installed > 0

    def install(self) -> Self:
        """Record from now on; may be nested, each with its own :meth:`uninstall`.

        Raises:
            InputError: If another scope or scheme is recording one of the same modules.
        """
        with _lock:
            _acquire(self._plan, self.scope, self.scheme)
            self._installed += 1
        return self

    def uninstall(self) -> None:
        """Stop recording; the last one to stop puts every function back as it was."""
        with _lock:
            if self._installed:
                self._installed -= 1
                _release(self.scope, self.scheme)

    def clear(self) -> None:
        """Forget the calls recorded so far."""
        self.record.clear()

    def drain(self) -> CallTrace:
        """Return the calls recorded since the last drain or clear, and forget them."""
        return self.record.drain()

    def __enter__(self) -> Self:
        """Install."""
        return self.install()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Uninstall."""
        self.uninstall()


def _acquire(plan: Plan, scope: Scope, scheme: Scheme) -> None:
    found = _active.get((scope, scheme))
    if found is None:
        for (other_scope, other_scheme), other in _active.items():
            shared = sorted(plan.modules.keys() & other.plan.modules.keys())
            if shared:
                how = (
                    f"under scheme {other_scheme}"
                    if other_scheme != scheme
                    else f"with the scope {', '.join(other_scope.include)}"
                )
                raise InputError(
                    f"{shared[0]} is being recorded {how} in this process already; "
                    f"close that game first, or record scheme {scheme} in a process of its own."
                )
        # One per scope and scheme for good: its list stays the same when it is put in again.
        found = _made.setdefault((scope, scheme), Instrumentation(plan))
        _active[scope, scheme] = found
        try:
            found.put_in()
        except BaseException:
            found.take_out()
            del _active[scope, scheme]
            raise
    found.users += 1


def _release(scope: Scope, scheme: Scheme) -> None:
    found = _active.get((scope, scheme))
    if found is not None:
        found.users -= 1
        if found.users <= 0:
            del _active[scope, scheme]
            found.take_out()
