"""Wrappers for any traced game: a goal with its sparse reward, and the trace as an observation.

A traced game is a Gymnasium environment whose ``info["call_trace"]`` is a ``CallTrace`` and which
has a ``catalogue``. To cut plays at a step cap, Gymnasium's own ``TimeLimit`` does.
"""

from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace


def catalogue_of(env: "gymnasium.Env[Any, Any]") -> Catalogue:
    """Return the catalogue of a traced environment.

    Raises:
        InputError: If the environment is not traced.
    """
    try:
        catalogue = env.get_wrapper_attr("catalogue")
    except AttributeError as error:
        raise InputError(
            f"{env} has no catalogue of functions: wrap it in TracedEnv first."
        ) from error
    assert isinstance(catalogue, Catalogue)
    return catalogue


class GoalReward(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """Rewards one function: r = 1{g ∈ s^code} − 1, hence 0 in a step that calls it, else −1.

    ``reset(options={"goal": name or id})`` names the function, in full, by a unique suffix or by
    its id. ``info`` gains ``goal`` (its id), ``goal_reached`` (called by a step of this play so
    far; the calls that reset makes do not count) and, at steps, ``game_reward`` (the game's own
    reward). The play goes on after the goal.
    """

    def __init__(self, env: "gymnasium.Env[Any, Any]", goal: str | int | None = None) -> None:
        """Wrap a traced game.

        Args:
            env: The game.
            goal: The goal of the plays whose ``reset`` names none.

        Raises:
            InputError: If the game is not traced or no function has that name.
        """
        super().__init__(env)
        self._catalogue = catalogue_of(env)
        self._default = None if goal is None else self._resolve(goal)
        self._goal = -1
        self._reached = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a play towards ``options["goal"]``; other options go on to the game.

        Raises:
            InputError: If there is no goal, or no function of that name.
        """
        passed = dict(options or {})
        goal = passed.pop("goal", self._default)
        if goal is None:
            raise InputError('No goal was given: reset(options={"goal": "Class.function"}).')
        self._goal = self._resolve(goal)
        self._reached = False
        observation, info = self.env.reset(seed=seed, options=passed)
        info["goal"], info["goal_reached"] = self._goal, False
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; the reward is the goal's."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        called = self._goal in info["call_trace"]
        self._reached = self._reached or called
        info["goal"], info["goal_reached"] = self._goal, self._reached
        info["game_reward"] = float(reward)
        return observation, float(called) - 1.0, terminated, truncated, info

    def _resolve(self, goal: str | int) -> int:
        if isinstance(goal, str):
            return self._catalogue.resolve(goal)
        if isinstance(goal, bool) or not 0 <= goal < len(self._catalogue):
            raise InputError(f"Goal {goal!r} is no id from 0 to {len(self._catalogue) - 1}.")
        return int(goal)


class TraceObservation(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """Makes the trace a part of what is observed: ``{"obs": …, "call_trace": …}``.

    The trace beside an observation is of the calls that led to it: those of the action before, or
    of reset at the start. ``info["call_trace"]`` stays whole.

    * ``padded``: ``int64[longest]``, the ids in the order of the calls, filled up with
      ``len(catalogue)`` (so an embedding of ``len(catalogue) + 1`` rows takes it); calls beyond
      ``longest`` are left out.
    * ``counted``: ``int64[len(catalogue)]``, how often each function was called.
    """

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        form: Literal["padded", "counted"] = "counted",
        longest: int = 600,
    ) -> None:
        """Wrap a traced game.

        Args:
            env: The game.
            form: ``padded`` or ``counted``.
            longest: Length of a padded trace; the paper's Table 4 gives at most 600 calls a step.

        Raises:
            InputError: If the game is not traced or an argument makes no sense.
        """
        super().__init__(env)
        functions = len(catalogue_of(env))
        if form not in ("padded", "counted"):
            raise InputError(f"A trace is observed padded or counted, not {form!r}.")
        if longest < 1:
            raise InputError(f"A padded trace holds at least 1 call, not longest={longest}.")
        self._form, self._longest, self._functions = form, longest, functions
        if form == "padded":
            space = gymnasium.spaces.Box(0, functions, (longest,), np.int64)
        else:
            space = gymnasium.spaces.Box(0, np.iinfo(np.int64).max, (functions,), np.int64)
        self.observation_space = gymnasium.spaces.Dict(
            {"obs": env.observation_space, "call_trace": space}
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a play; the trace observed is reset's."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._observe(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play one action; the trace observed is of that action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(observation, info), float(reward), terminated, truncated, info

    def _observe(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        trace: CallTrace = info["call_trace"]
        shown: NDArray[np.int64]
        if self._form == "padded":
            shown = np.full(self._longest, self._functions, np.int64)
            first = trace.ids[: self._longest]
            shown[: len(first)] = first
        else:
            shown = np.bincount(trace.ids, minlength=self._functions).astype(np.int64)
        return {"obs": observation, "call_trace": shown}
