"""Lanista's client in the shapes of the ``godot_rl`` package, for training code written for it.

``GodotRlEnv`` stands in for ``godot_rl.core.godot_env.GodotEnv`` and ``CleanRLGodotEnv`` for its
CleanRL wrapper: the same arguments, calls and shapes. Three things differ. Reads have a timeout,
and a game that dies or hangs is told at once; with an instrumented copy ``terminated`` and
``truncated`` are apart, and the last observation of an episode is in its ``info`` as
``final_obs``; and discrete actions of any size may stand beside continuous ones (one number per
choice, the largest counts).
"""

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.godot.agent_spaces import ActionPart, Observation, ObservationPart
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import find_engine
from lanista.envs.godot.frames import StepFrame
from lanista.envs.godot.spaces import ActionLayout

Step = tuple[list[Observation], list[float], list[bool], list[bool], list[dict[str, Any]]]


class GodotRlEnv:
    """All agents of one game process, as ``godot_rl`` shows them: a list entry for each agent.

    Attributes:
        num_envs: Number of agents.
        agent_policy_names: Policy that each agent names.
        observation_space: What the first agent sees, a ``Dict``; ``observation_spaces`` of each.
        action_space: What the first agent does, a ``Tuple``, or with ``convert_action_space`` one
            ``Box`` or ``MultiDiscrete``; ``action_spaces`` of each, as ``Dict``.
    """

    def __init__(
        self,
        env_path: str | Path | None = None,
        port: int | None = None,
        show_window: bool = False,
        seed: int = 0,
        framerate: int | None = None,
        action_repeat: int | None = None,
        speedup: int | None = None,
        convert_action_space: bool = False,
        **options: Any,
    ) -> None:
        """Start a game.

        Args:
            env_path: A Godot project, an instrumented copy of one, or an exported program.
            port: TCP port; the system chooses a free one by default.
            show_window: Whether it has a window.
            seed: Seed of the game's random numbers.
            framerate: Main-loop iterations a second of game time; the game's own ticks by default.
            action_repeat: Physics ticks per step.
            speedup: Physics ticks per main-loop iteration.
            convert_action_space: Whether an action is one array.
            **options: Given to the game as ``--name=value``.

        Raises:
            InputError: If no path is given, or what is asked for cannot be had.
            RunError: If the game does not come up.
        """
        if env_path is None or env_path == "debug":
            raise InputError("Name the game with env_path: a Godot project or an exported program.")
        path = Path(env_path)
        self.client = GodotClient.start(
            find_engine() if path.is_dir() else None,
            path,
            port=port,
            headless=not show_window,
            seed=seed,
            fixed_fps=framerate,
            action_repeat=action_repeat,
            speedup=speedup or 1,
            options={name: str(value) for name, value in options.items()},
        )
        spaces = self.client.spaces
        self.num_envs = len(spaces)
        self.agent_policy_names = [agent.policy for agent in spaces]
        self.action_spaces = [
            gymnasium.spaces.Dict(OrderedDict((part.name, _action(part)) for part in agent.action))
            for agent in spaces
        ]
        self.observation_spaces = [
            gymnasium.spaces.Dict({part.name: _observation(part) for part in agent.observation})
            for agent in spaces
        ]
        self.tuple_action_spaces = [
            gymnasium.spaces.Tuple(list(space.values())) for space in self.action_spaces
        ]
        self.observation_space = self.observation_spaces[0]
        self._convert = convert_action_space
        self._layout = ActionLayout(spaces[0].action)
        self._frame: StepFrame | None = None

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """What the first agent does."""
        if not self._convert:
            return self.tuple_action_spaces[0]
        if self._layout.discrete:
            return gymnasium.spaces.MultiDiscrete([part.size for part in self._layout.parts])
        return self._layout.space

    def reset(self, seed: int | None = None) -> tuple[list[Observation], list[dict[str, Any]]]:
        """Begin an episode with every agent.

        Args:
            seed: Seed of the game's random numbers; heard by instrumented copies alone, as a plain
                game is seeded once, when it starts.
        """
        frame = self.client.reset(seed=seed if self.client.bridged else None)
        return list(frame.obs), list(frame.info)

    def step(self, action: Any, order_ij: bool = False) -> Step:
        """Act once with every agent; see :meth:`step_send` and :meth:`step_recv`."""
        self.step_send(action, order_ij=order_ij)
        return self.step_recv()

    def step_send(self, action: Any, order_ij: bool = False) -> None:
        """Act with every agent; what comes of it is kept for :meth:`step_recv`.

        Args:
            action: ``action[part][agent]``, or ``action[agent][part]`` with ``order_ij``; with
                ``convert_action_space`` an array ``[agent, …]``.
            order_ij: Which index comes first.
        """
        if self._convert:
            parts = [self._converted(row) for row in action]
        else:
            parts = [
                {
                    name: action[agent][place] if order_ij else action[place][agent]
                    for place, name in enumerate(space)
                }
                for agent, space in enumerate(self.action_spaces)
            ]
        self._frame = self.client.step(parts)

    def step_recv(self) -> Step:
        """Return observations, rewards, terminated, truncated and infos, an entry per agent.

        Raises:
            RuntimeError: If nothing was sent.
        """
        frame, self._frame = self._frame, None
        if frame is None:
            raise RuntimeError("step_send comes before step_recv")
        infos = [dict(info) for info in frame.info]
        for info, final in zip(infos, frame.final_obs, strict=True):
            if final is not None:
                info["final_obs"] = final
        return (
            list(frame.obs),
            frame.reward.tolist(),
            frame.terminated.tolist(),
            frame.truncated.tolist(),
            infos,
        )

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent and return what each returned."""
        return self.client.call(method)

    def close(self) -> None:
        """End the game."""
        self.client.close()

    def _converted(self, row: Any) -> dict[str, Any]:
        if self._layout.discrete:
            return {
                part.name: int(value) for part, value in zip(self._layout.parts, row, strict=True)
            }
        return self._layout.split(row)


class CleanRLGodotEnv:
    """Several game processes side by side, all their agents in one batch, as CleanRL steps them."""

    def __init__(
        self,
        env_path: str | Path | None = None,
        n_parallel: int = 1,
        seed: int = 0,
        **arguments: Any,
    ) -> None:
        """Start the games, on ports that the system chooses; game i has ``seed + i``.

        Args:
            env_path: As for :class:`GodotRlEnv`.
            n_parallel: Number of processes.
            seed: Seed of the first.
            **arguments: Others of :class:`GodotRlEnv`.

        Raises:
            InputError: If what is asked for cannot be had, or the agents see something else than
                one array named ``obs``.
            RunError: If a game does not come up.
        """
        arguments.pop("port", None)
        self.n_parallel = n_parallel
        self.envs: list[GodotRlEnv] = []
        try:
            for place in range(n_parallel):
                self.envs.append(
                    GodotRlEnv(
                        env_path, seed=seed + place, **{"convert_action_space": True, **arguments}
                    )
                )
            if "obs" not in self.envs[0].observation_space.spaces:
                raise InputError(f"{env_path}: its agents see nothing named 'obs'.")
        except BaseException:
            self.close()
            raise
        self._pool = ThreadPoolExecutor(n_parallel)

    @property
    def num_envs(self) -> int:
        """Number of agents in all processes."""
        return sum(env.num_envs for env in self.envs)

    @property
    def single_observation_space(self) -> gymnasium.Space[Any]:
        """What one agent sees."""
        space: gymnasium.Space[Any] = self.envs[0].observation_space["obs"]
        return space

    @property
    def single_action_space(self) -> gymnasium.Space[Any]:
        """What one agent does."""
        return self.envs[0].action_space

    def reset(self, seed: int | None = None) -> tuple[NDArray[Any], list[dict[str, Any]]]:
        """Begin an episode with every agent."""
        seeds = [None if seed is None else seed + place for place in range(self.n_parallel)]
        told = list(self._pool.map(lambda env, given: env.reset(given), self.envs, seeds))
        return _stacked([seen for obs, _ in told for seen in obs]), [
            info for _, infos in told for info in infos
        ]

    def step(
        self, action: NDArray[Any]
    ) -> tuple[NDArray[Any], list[float], list[bool], list[bool], list[dict[str, Any]]]:
        """Act once with every agent; ``action`` has a row for each, process by process."""
        edges = np.cumsum([env.num_envs for env in self.envs])[:-1]
        rows: Sequence[NDArray[Any]] = np.split(np.asarray(action), edges)
        done = list(self._pool.map(lambda env, row: env.step(row), self.envs, rows))
        seen, rewards, ended, cut, infos = (
            [item for step in done for item in step[place]] for place in range(5)
        )
        return _stacked(seen), rewards, ended, cut, infos

    def close(self) -> None:
        """End the games."""
        for env in self.envs:
            env.close()


def _stacked(seen: list[Observation]) -> NDArray[Any]:
    return np.stack([observation["obs"] for observation in seen])


def _action(part: ActionPart) -> gymnasium.Space[Any]:
    if part.discrete:
        return gymnasium.spaces.Discrete(part.size)
    return gymnasium.spaces.Box(-1.0, 1.0, (part.size,))


def _observation(part: ObservationPart) -> gymnasium.Space[Any]:
    if part.choices is not None:
        return gymnasium.spaces.Discrete(part.choices)
    if part.pixels:
        return gymnasium.spaces.Box(0, 255, part.shape, np.uint8)
    return gymnasium.spaces.Box(part.low, part.high, part.shape, np.float32)
