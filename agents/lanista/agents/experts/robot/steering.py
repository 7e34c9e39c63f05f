"""How to get somewhere: the action that gives the robot the velocity it needs, step by step."""

import math
from dataclasses import dataclass

from lanista.agents.experts.robot.situation import Situation

STEP_S = 8 / 30
"""Seconds that an action is held."""
ACCELERATION = 25.0
FRICTION = 15.0
BELT_PUSH = 15.0
TOP_SPEED = 10.0
EDGE = 9.0
"""How far aside the robot goes at most of its own will."""
_ARRIVAL = 1.7  # speed per metre left that stops it at a target without swinging


@dataclass(frozen=True)
class Target:
    """Where to go next.

    Attributes:
        x: Place in the level's frame.
        z: Place in the level's frame.
        stop: Whether to come to rest there, and not just to pass.
    """

    x: float
    z: float
    stop: bool = False


Action = tuple[float, float]
"""Wish along x and along z, of length 1 at most."""


def steer(now: Situation, target: Target, top_speed: float = TOP_SPEED) -> Action:
    """Choose the action that brings the robot on its way to a target.

    Args:
        now: Where it is and how fast.
        target: Where it should go.
        top_speed: Metres per second that it should not exceed.
    """
    ahead_x, ahead_z = target.x - now.x, target.z - now.z
    distance = math.hypot(ahead_x, ahead_z)
    speed = min(top_speed, _ARRIVAL * distance) if target.stop else top_speed
    if distance < 1e-6:
        return reach_velocity(now, 0.0, 0.0)
    return reach_velocity(now, ahead_x / distance * speed, ahead_z / distance * speed)


def reach_velocity(now: Situation, wanted_x: float, wanted_z: float) -> Action:
    """Choose the action after which the robot has a velocity, or comes as near as it can.

    What it wants aside is cut so that it can still stop before the level's sides.
    """
    wanted_x = min(wanted_x, max(0.0, 2.0 * (EDGE - now.x)) if now.x < EDGE else EDGE - now.x)
    wanted_x = max(wanted_x, min(0.0, -2.0 * (EDGE + now.x)) if now.x > -EDGE else -EDGE - now.x)
    along_x, along_z = now.velocity_x + wanted_x, now.velocity_z + wanted_z
    length = math.hypot(along_x, along_z)
    drag = FRICTION / length if length > 0.3 else 0.0
    push = now.belt * BELT_PUSH
    wish_x = ((wanted_x - now.velocity_x) / STEP_S + drag * along_x - push) / ACCELERATION
    wish_z = ((wanted_z - now.velocity_z) / STEP_S + drag * along_z) / ACCELERATION
    size = max(1.0, math.hypot(wish_x, wish_z))
    return wish_x / size, wish_z / size
