"""The protocols that a player (observations only) and a tester (reads the game) follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanista.envs.tracing.trace import CallTrace

Memory = Any
"""What a policy keeps of one lane between its steps; ``None`` before the first."""


@dataclass(frozen=True)
class Observation:
    """What a policy sees of a batch of plays, one lane each.

    Attributes:
        obs: The games' observations, shape ``[batch, ...]``.
        call_trace: Per lane the calls caused by the action before (by reset at the first step).
        goal: Function id to reach per lane, ``int64[batch]``, or ``None`` without goals.
        legal_mask: ``bool[batch, actions]``, or ``None`` where every action is legal.
    """

    obs: NDArray[Any]
    call_trace: Sequence[CallTrace]
    goal: NDArray[np.int64] | None = None
    legal_mask: NDArray[np.bool_] | None = None


class Policy(Protocol):
    """The function inside a player. It sees observations alone."""

    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose an action for each lane.

        Args:
            observation: What each lane shows.
            memory: One entry a lane: ``None`` at a play's first step, then what was returned.
            rng: One generator a lane, so that a lane's draws do not depend on its neighbours.

        Returns:
            The actions, shape ``[batch, ...]``, and the memory to hand in at the next step.
        """
        ...


class Tester(Protocol):
    """A scripted teacher that may read the game's state; made anew for each play."""

    def act(self, env: Any, rng: np.random.Generator) -> Any:
        """Choose the next action for the game as it stands; ``env`` is the traced environment."""
        ...
