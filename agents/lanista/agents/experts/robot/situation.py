"""What a tester of the robot game reads of it: the numbers of its ``info``, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanista.envs.errors import InputError

BELT_STARTS = (-7.9, -13.9, -19.9)
"""Where the belts of level 3 begin, in z."""
BELT_LENGTH = 4.2


@dataclass(frozen=True)
class Enemy:
    """An enemy: where it is and where it heads along x, -1 or 1."""

    x: float
    z: float
    direction: float


@dataclass(frozen=True)
class Situation:
    """The robot's level as it stands; all places in the level's frame, metres and seconds.

    Attributes:
        level: From 1 to 8.
        x: The robot's place, to the right from -10 to 10.
        z: Its place along the way, from 0 down to minus the level's length.
        height: Of its centre over the floor; 2.1 where it stands.
        velocity_x: Its velocity.
        velocity_z: Its velocity.
        goal_x: Place of the goal.
        goal_z: Place of the goal.
        coins: For each coin whether it is left, in the order in which the level lists them.
        enemies: The level's enemies.
        belt: Where the belt under the robot pushes it, -1 or 1, or 0 for none.
    """

    level: int
    x: float
    z: float
    height: float
    velocity_x: float
    velocity_z: float
    goal_x: float
    goal_z: float
    coins: tuple[bool, ...]
    enemies: tuple[Enemy, ...]
    belt: float

    @classmethod
    def of(cls, env: Any) -> "Situation":
        """Read it from an environment, wrapped or not.

        Raises:
            InputError: If it is no robot game.
        """
        try:
            told: Mapping[str, Any] = env.get_wrapper_attr("last_step_info")
            z = float(told["position.2"])
            return cls(
                level=int(told["level"]),
                x=float(told["position.0"]),
                z=z,
                height=float(told["position.1"]),
                velocity_x=float(told["velocity.0"]),
                velocity_z=float(told["velocity.2"]),
                goal_x=float(told["goal.0"]),
                goal_z=float(told["goal.1"]),
                coins=tuple(bool(left) for left in _listed(told, "coins")),
                enemies=tuple(_enemies(_listed(told, "enemies"))),
                belt=_belt(z, _listed(told, "belts")),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"This tester plays the multi-level robot, and this {type(env).__name__} does not "
                f"tell {error}."
            ) from error


def _listed(told: Mapping[str, Any], name: str) -> list[float]:
    found: list[float] = []
    while (key := f"{name}.{len(found)}") in told:
        found.append(float(told[key]))
    return found


def _enemies(numbers: list[float]) -> list[Enemy]:
    return [Enemy(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)]


def _belt(z: float, directions: list[float]) -> float:
    for start, direction in zip(BELT_STARTS, directions, strict=False):
        if start - BELT_LENGTH < z <= start:
            return direction
    return 0.0
