"""A Gymnasium environment that tells which functions each step called."""

import weakref
from typing import Any

import gymnasium

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace
from lanista.envs.tracing.tracer import Tracer


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
        self._sink, self._drain = tracer.sink, tracer.drain
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
        # The tracer's clear, written out: this runs in every step of every game.
        sink = self._sink
        if sink:
            sink.clear()
        try:
            result = self.env.step(action)
        finally:
            self.last_trace = trace = self._drain()
        result[4]["call_trace"] = trace
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
