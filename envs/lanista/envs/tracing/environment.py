"""A Gymnasium environment that tells which functions each step called."""

import weakref
from typing import Any

import gymnasium

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.record import Record
from lanista.envs.tracing.trace import CallTrace
from lanista.envs.tracing.tracer import Tracer


class _Play:
    """What every step needs, in one place.

    Reading an attribute of a class with ``__getattr__`` is slow, one of a class without is not.
    """

    __slots__ = ("info", "sink", "take")

    def __init__(self, record: Record) -> None:
        self.sink, self.take = record.sink, record.take
        self.info: Any = None


class TracedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """Puts the calls made by each reset and step into ``info["call_trace"]``.

    Works with any game that runs inside this process. Calls made between steps (by a tester that
    reads the game, by rendering) are in no trace. Attributes that it lacks are the wrapped game's,
    so ``save`` and ``restore`` pass through.

    Attributes:
        tracer: What records; installed until :meth:`close`.
        last_trace: The trace of the last reset or step, of one that raised too.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], tracer: Tracer) -> None:
        """Install the tracer around a game.

        Raises:
            InputError: If the game is traced by an equal tracer already, or as
                :meth:`Tracer.install`.
        """
        inner: Any = env
        while isinstance(inner, gymnasium.Wrapper):
            if isinstance(inner, TracedEnv) and inner.tracer.scope == tracer.scope:
                raise InputError("This game is traced already; trace it once.")
            inner = inner.env
        super().__init__(env)
        self.tracer: Tracer = tracer.install()
        self._play = _Play(tracer.record)
        self.last_trace = CallTrace()
        # A game that is dropped without being closed must not keep its functions changed.
        self._stop = weakref.finalize(self, tracer.uninstall)

    @property
    def catalogue(self) -> Catalogue:
        """What the ids of the traces mean."""
        return self.tracer.catalogue

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a play; ``info["call_trace"]`` holds the calls that this made."""
        self.tracer.clear()
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        finally:
            self.last_trace = self.tracer.drain()
        return observation, {**info, "call_trace": self.last_trace}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action; ``info["call_trace"]`` holds the calls that it caused."""
        play = self._play
        start = len(play.sink)
        try:
            result = self.env.step(action)
        finally:
            self.last_trace = trace = play.take(start)
        info = result[4]
        if info is play.info:
            # A game that fills one dict anew in every step: the caller may still hold the last.
            return (*result[:4], {**info, "call_trace": trace})
        play.info = info
        info["call_trace"] = trace
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the game and stop recording."""
        try:
            super().close()
        finally:
            self._stop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in {"env", "tracer"}:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.env.get_wrapper_attr(name)
