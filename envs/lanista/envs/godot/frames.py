"""What a reset and a step of a game show of all its agents."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.godot.agent_spaces import Observation


@dataclass(frozen=True)
class Frame:
    """What a reset shows.

    Attributes:
        obs: One dictionary per agent, from the part's name to its array.
        info: One dictionary per agent: what the game's ``get_info()`` says.
        traces: One array per agent, ``int32``, shape ``[calls]``: ids of the functions called, in
            order. The agents of one process share one engine and so one trace. ``None`` where the
            project is not instrumented.
        trace_truncated: Whether calls are missing from the trace.
        ticks: Physics ticks that passed; 0 where the game does not say.
        script_errors: What the game's scripts raised meanwhile, a text each (bridge only).
    """

    obs: tuple[Observation, ...]
    info: tuple[dict[str, Any], ...]
    traces: tuple[NDArray[np.int32] | None, ...]
    trace_truncated: bool = False
    ticks: int = 0
    script_errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepFrame(Frame):
    """What a step shows.

    Attributes:
        reward: Reward of each agent, shape ``[agents]``, ``float64``.
        terminated: Whether each episode ended by the game's rules, shape ``[agents]``.
        truncated: Whether each episode was cut, shape ``[agents]``.
        final_obs: The last observation of each episode that ended in this step, else ``None``.
        final_exact: Whether it was taken before the game reset the agent, shape ``[agents]``.
    """

    reward: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    terminated: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    truncated: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    final_obs: tuple[Observation | None, ...] = ()
    final_exact: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))


Told = tuple[
    tuple[Observation, ...],
    tuple[dict[str, Any], ...],
    tuple[NDArray[np.int32] | None, ...],
    bool,
    int,
    tuple[str, ...],
]
"""What a reset and a step both show, in the order of :class:`Frame`."""
