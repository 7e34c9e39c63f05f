"""What a Godot game's agents see and do as plain arrays and Gymnasium spaces."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.godot.agent_spaces import ActionPart, AgentSpaces, ObservationPart

MOST_CHOICES = 1024
"""Most joint choices that several discrete actions are made one action of."""


@dataclass(frozen=True)
class ObservationLayout:
    """How the named parts of an observation lie in one array.

    A single picture stays as it is (``uint8``). Everything else becomes one vector of
    ``float32``: parts in the game's order, arrays flattened, a discrete part as a one-hot.

    Attributes:
        parts: The parts, in the game's order.
    """

    parts: tuple[ObservationPart, ...]

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            InputError: If pictures and other parts are mixed.
        """
        pixels = [part.name for part in self.parts if part.pixels]
        if pixels and len(self.parts) > 1:
            raise InputError(
                f"The observation mixes the picture {pixels[0]!r} with other parts; give the agent "
                "a single picture, or numbers alone."
            )

    @property
    def picture(self) -> bool:
        """Whether the observation is a picture."""
        return len(self.parts) == 1 and self.parts[0].pixels

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        if self.picture:
            return self.parts[0].shape
        return (sum(part.choices or part.size for part in self.parts),)

    @property
    def dtype(self) -> str:
        """NumPy name of the array's type."""
        return "uint8" if self.picture else "float32"

    @cached_property
    def space(self) -> gymnasium.spaces.Box:
        """The array as a space; games go beyond the bounds that they declare, so it has none."""
        if self.picture:
            return gymnasium.spaces.Box(0, 255, self.shape, np.uint8)
        return gymnasium.spaces.Box(-np.inf, np.inf, self.shape, np.float32)

    def join(self, seen: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return an observation as one array."""
        if self.picture:
            return seen[self.parts[0].name]
        if len(self.parts) == 1 and self.parts[0].choices is None:
            return np.asarray(seen[self.parts[0].name], np.float32).reshape(-1)
        pieces = []
        for part in self.parts:
            value = seen[part.name]
            if part.choices is None:
                pieces.append(np.asarray(value, np.float32).reshape(-1))
            else:
                pieces.append(np.eye(part.choices, dtype=np.float32)[int(value)])
        return np.concatenate(pieces)


@dataclass(frozen=True)
class ActionLayout:
    """How one action stands for the named parts of a game's action.

    Discrete parts alone become one discrete action (the choices of all of them together).
    Otherwise an action is a vector with values from -1 to 1: continuous parts as they are, and
    for a discrete part one number per choice, of which the largest is taken.

    Attributes:
        parts: The parts, in the game's order.
    """

    parts: tuple[ActionPart, ...]

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            InputError: If there are too many joint choices.
        """
        if self.discrete and math.prod(part.size for part in self.parts) > MOST_CHOICES:
            sizes = " × ".join(str(part.size) for part in self.parts)
            raise InputError(
                f"The game's discrete actions have {sizes} joint choices, more than "
                f"{MOST_CHOICES}; merge or drop some of them."
            )

    @property
    def discrete(self) -> bool:
        """Whether the action is a choice."""
        return all(part.discrete for part in self.parts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the choices, empty where an action is a vector."""
        if not self.discrete:
            return ()
        if len(self.parts) == 1:
            return tuple(f"{self.parts[0].name}={value}" for value in range(self.parts[0].size))
        return tuple(
            ",".join(f"{part.name}={value}" for part, value in zip(self.parts, chosen, strict=True))
            for chosen in self._joint
        )

    @cached_property
    def _joint(self) -> tuple[tuple[int, ...], ...]:
        return tuple(itertools.product(*(range(part.size) for part in self.parts)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of an action that is a vector, empty for a choice."""
        return () if self.discrete else (sum(part.size for part in self.parts),)

    @cached_property
    def space(self) -> gymnasium.Space[Any]:
        """The actions as a space."""
        if self.discrete:
            return gymnasium.spaces.Discrete(len(self._joint))
        return gymnasium.spaces.Box(-1.0, 1.0, self.shape, np.float32)

    def split(self, action: Any) -> dict[str, Any]:
        """Return an action as the game's named parts; numbers are clipped to -1 to 1.

        Raises:
            ValueError: If it does not fit the space.
        """
        if self.discrete:
            number = int(action)
            if not 0 <= number < len(self._joint):
                raise ValueError(f"action {number} is not from 0 to {len(self._joint) - 1}")
            chosen = self._joint[number]
            return {part.name: value for part, value in zip(self.parts, chosen, strict=True)}
        vector = np.asarray(action, np.float32).reshape(-1)
        if len(vector) != self.shape[0] or not np.isfinite(vector).all():
            raise ValueError(f"an action is {self.shape[0]} finite numbers, not {vector.tolist()}")
        vector = np.clip(vector, -1.0, 1.0)
        parts: dict[str, Any] = {}
        start = 0
        for part in self.parts:
            piece = vector[start : start + part.size]
            parts[part.name] = int(piece.argmax()) if part.discrete else piece
            start += part.size
        return parts

    def neutral(self) -> dict[str, Any]:
        """Return the action of an agent that nobody plays: zeros and first choices."""
        return {
            part.name: 0 if part.discrete else np.zeros(part.size, np.float32)
            for part in self.parts
        }


def layouts(spaces: AgentSpaces) -> tuple[ObservationLayout, ActionLayout]:
    """Return how one agent's observations and actions lie in arrays.

    Raises:
        InputError: If they are of kinds that cannot.
    """
    return ObservationLayout(spaces.observation), ActionLayout(spaces.action)
