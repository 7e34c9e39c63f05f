"""All agents of one Godot process as a Gymnasium vector environment."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.environment import Launch, numbers_of
from lanista.envs.godot.faults import GameScriptError
from lanista.envs.godot.frames import Frame
from lanista.envs.godot.spaces import layouts
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace


class GodotVectorEnv(VectorEnv[Any, Any, Any]):  # type: ignore[misc]
    """Every agent of a scene is one environment; one engine steps them all at once.

    A game resets its agents itself as soon as their episodes end, so this is Gymnasium's
    ``SAME_STEP`` autoreset: the observation after an ending is the next episode's first, and
    ``info["final_obs"]`` holds the last of the one that ended (``info["_final_obs"]`` says for
    which agents), with ``info["final_info"]`` beside it: what the game said of the step that ended
    the episode. ``info["call_trace"]`` is an array of ``CallTrace``, the same for all agents: the
    engine is one, and which agent made a call cannot be told. A game's own reset comes in the step
    that ends an episode, so that its calls are in that step's trace.

    Attributes:
        catalogue: What the ids of the traces mean.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": [],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        launch: Launch,
        catalogue: Catalogue | None = None,
        *,
        seed: int = 0,
        script_errors: Literal["report", "raise"] = "raise",
    ) -> None:
        """Start the game.

        Args:
            launch: How it is started.
            catalogue: The catalogue of the instrumented copy that is launched.
            seed: Seed of the game before its first reset.
            script_errors: Whether an error in a script of the game is raised.

        Raises:
            InputError: If its agents see or do different things, or what no array can hold.
            RunError: If the game does not come up.
        """
        self.catalogue = catalogue if catalogue is not None else Catalogue((), "class")
        self._script_errors = script_errors
        self.client: GodotClient = launch.start(seed)
        try:
            found = {layouts(spaces) for spaces in self.client.spaces}
            if len(found) != 1:
                raise InputError(
                    f"{launch.project}: its agents see or do different things; play each by itself."
                )
        except BaseException:
            self.client.close()
            raise
        self._seen, self._done = found.pop()
        self.num_envs = self.client.n_agents
        self.single_observation_space = self._seen.space
        self.single_action_space = self._done.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._shown = np.zeros((self.num_envs, *self._seen.shape), self._seen.dtype)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: One seed: the agents share the engine's random numbers, which it starts.
            options: Offered to the game as texts; ``reset_mask`` (``bool[agents]``) chooses the
                agents to reset.

        Raises:
            InputError: If there are several seeds, or a game without the bridge is asked for one.
            GameFault: Whatever the game did wrong.
        """
        if seed is not None and not isinstance(seed, int | np.integer):
            raise InputError("The agents of one engine share its random numbers: give one seed.")
        passed = dict(options or {})
        mask = passed.pop("reset_mask", None)
        agents = None if mask is None else np.flatnonzero(mask).tolist()
        texts = {str(name): str(value) for name, value in passed.items()}
        if self.client.bridged:
            whole = None if seed is None else int(seed)
            frame = self.client.reset(seed=whole, options=texts, agents=agents)
        elif seed is None and not texts and agents is None:
            frame = self.client.reset()
        else:
            raise InputError(
                "A game without the bridge takes no seed, options or single agents: instrument it."
            )
        return self._look(frame), self._info(frame)

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Act once with every agent.

        Raises:
            ValueError: If an action does not fit.
            GameFault: Whatever the game did wrong.
        """
        frame = self.client.step([self._done.split(action) for action in actions])
        observations = self._look(frame)
        info = self._info(frame)
        ended = np.array([final is not None for final in frame.final_obs], np.bool_)
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            for agent, final in enumerate(frame.final_obs):
                if final is not None:
                    last[agent] = self._seen.join(final)
            info["final_obs"], info["_final_obs"] = last, ended
            final_info: dict[str, Any] = {}
            for name in ("call_trace", "step_info"):
                final_info[name] = np.where(ended, info[name], None)
                final_info[f"_{name}"] = ended.copy()
            info["final_info"], info["_final_info"] = final_info, ended.copy()
        return observations, frame.reward, frame.terminated, frame.truncated, info

    def close_extras(self, **_: Any) -> None:
        """End the game."""
        self.client.close()

    def _look(self, frame: Frame) -> NDArray[Any]:
        for agent, seen in enumerate(frame.obs):
            self._shown[agent] = self._seen.join(seen)
        return self._shown.copy()

    def _info(self, frame: Frame) -> dict[str, Any]:
        if frame.script_errors and self._script_errors == "raise":
            raise GameScriptError(frame.script_errors[0], self.client.output)
        traces = np.full(self.num_envs, None, dtype=object)
        told = np.full(self.num_envs, None, dtype=object)
        for agent, trace in enumerate(frame.traces):
            traces[agent] = CallTrace() if trace is None else CallTrace(trace)
            told[agent] = numbers_of(frame.info[agent])
        everyone = np.ones(self.num_envs, np.bool_)
        info = {"call_trace": traces, "_call_trace": everyone}
        info |= {"step_info": told, "_step_info": everyone.copy()}
        if frame.script_errors:
            info["script_errors"] = np.full(self.num_envs, None, dtype=object)
            info["script_errors"][:] = [frame.script_errors] * self.num_envs
        return info
