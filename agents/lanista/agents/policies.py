"""Policies that learn nothing, to compare with."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.actions import Bounds, draw_within
from lanista.envs.game import Game
from lanista.envs.policy import Memory, Observation


class RandomPolicy:
    """Chooses evenly among the legal actions, or within the bounds of one; goal or not.

    Attributes:
        content_hash: Hash of kind and parameters.
    """

    def __init__(self, actions: int | Bounds, shape: tuple[int, ...] | None = None) -> None:
        """Make a policy over ``actions`` discrete actions, or over numbers within bounds.

        Args:
            actions: How many actions there are, or the lowest and highest values of one.
            shape: Shape of an action made of numbers; flat by default.
        """
        self.actions = actions
        self.shape = shape
        self.content_hash = hashlib.sha256(f"random:{actions}".encode()).hexdigest()

    @classmethod
    def of(cls, game: Game) -> "RandomPolicy":
        """Make the random policy of a game."""
        bounds = game.action_bounds
        return cls(len(game.actions)) if bounds is None else cls(bounds, game.action_shape)

    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose an action for each lane; see :meth:`lanista.envs.policy.Policy.act`."""
        if not isinstance(self.actions, int):
            drawn = np.array([draw_within(self.actions, lane) for lane in rng], dtype=np.float32)
            return drawn.reshape(len(rng), *(self.shape or drawn.shape[1:])), list(memory)
        legal = observation.legal_mask
        if legal is None:
            legal = np.ones((len(rng), self.actions), dtype=np.bool_)
        chosen = [lane.choice(np.flatnonzero(row)) for lane, row in zip(rng, legal, strict=True)]
        return np.array(chosen, dtype=np.int64), list(memory)
