"""The expert: it passes one level after the other, from wherever it is put."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.agents.experts.robot.routes import next_target
from lanista.agents.experts.robot.situation import Situation
from lanista.agents.experts.robot.steering import TOP_SPEED, steer


class Expert:
    """Goes the way through each level, by what the game tells of itself."""

    def __init__(self, top_speed: float = TOP_SPEED) -> None:
        self._top_speed = top_speed

    def act(self, env: Any, rng: np.random.Generator) -> NDArray[np.float32]:
        """Choose the next action, ``float32`` of shape ``[2]``.

        Raises:
            InputError: If the game is not the robot's.
        """
        del rng  # it has nothing to draw
        now = Situation.of(env)
        # Only a run-up carries over the gap of level 5.
        top_speed = TOP_SPEED if now.level == 5 else self._top_speed
        return np.array(steer(now, next_target(now), top_speed), np.float32)
