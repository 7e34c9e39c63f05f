"""Policies that learn nothing, to compare with."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.policy import Memory, Observation


class RandomPolicy:
    """Chooses evenly among the legal actions, goal or not.

    Attributes:
        content_hash: Hash of kind and parameters.
    """

    def __init__(self, actions: int) -> None:
        """Make a policy over ``actions`` discrete actions."""
        self.actions = actions
        self.content_hash = hashlib.sha256(f"random:{actions}".encode()).hexdigest()

    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose an action for each lane; see :meth:`lanista.envs.policy.Policy.act`."""
        legal = observation.legal_mask
        if legal is None:
            legal = np.ones((len(rng), self.actions), dtype=np.bool_)
        chosen = [lane.choice(np.flatnonzero(row)) for lane, row in zip(rng, legal, strict=True)]
        return np.array(chosen, dtype=np.int64), list(memory)
