"""What the agents of a game see and do, as the game declares it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.godot.connection import ProtocolError

Observation = dict[str, NDArray[Any]]


Action = Mapping[str, Any]


@dataclass(frozen=True)
class ObservationPart:
    """One named part of an agent's observation.

    Attributes:
        name: The key in the dictionary of ``get_obs()``.
        shape: Shape of the array; empty for a discrete part.
        choices: Number of values of a discrete part, else ``None``.
        low: Least value as the game declares it; -inf where it declares none.
        high: Greatest value as the game declares it; inf where it declares none.
        pixels: Whether it is a picture (its name contains ``2d``): ``uint8`` sent as hex text.
    """

    name: str
    shape: tuple[int, ...]
    choices: int | None = None
    low: float = -math.inf
    high: float = math.inf

    @property
    def pixels(self) -> bool:
        """Whether the part is a picture, which the protocol tells by its name alone."""
        return "2d" in self.name

    @property
    def size(self) -> int:
        """Number of values in it."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        """NumPy name of the values' type."""
        if self.choices is not None:
            return "int64"
        return "uint8" if self.pixels else "float32"


@dataclass(frozen=True)
class ActionPart:
    """One named part of an agent's action.

    Attributes:
        name: The key in the dictionary given to ``set_action()``.
        size: Length of a continuous part (values from -1 to 1), or the number of choices of a
            discrete one (values from 0).
        discrete: Whether it is a choice.
    """

    name: str
    size: int
    discrete: bool


@dataclass(frozen=True)
class AgentSpaces:
    """What one agent sees and does, as the game declares it.

    Attributes:
        observation: The parts of its observation, in the game's order.
        action: The parts of its action, in the game's order.
        policy: Name of the policy that the game wants it to follow.
    """

    observation: tuple[ObservationPart, ...]
    action: tuple[ActionPart, ...]
    policy: str = "shared_policy"


def read_spaces(message: Mapping[str, Any]) -> tuple[AgentSpaces, ...]:
    """Read the answer to ``env_info``, of any plugin version.

    Old plugins (0.3) send one space for all agents, newer ones a list with one for each.

    Raises:
        ProtocolError: If a space is missing or of a kind that the protocol does not know.
    """
    count = message.get("n_agents")
    if not isinstance(count, int | float) or count < 1 or count != int(count):
        raise ProtocolError(f"it says that it has {count!r} agents")
    agents = int(count)
    observations = _per_agent(message.get("observation_space"), agents, "observation_space")
    actions = _per_agent(message.get("action_space"), agents, "action_space")
    policies = message.get("agent_policy_names")
    if not isinstance(policies, list) or len(policies) != agents:
        policies = ["shared_policy"] * agents
    return tuple(
        AgentSpaces(
            tuple(_observation_part(name, space) for name, space in observation.items()),
            tuple(_action_part(name, space) for name, space in action.items()),
            str(policy),
        )
        for observation, action, policy in zip(observations, actions, policies, strict=True)
    )


def _per_agent(found: object, agents: int, what: str) -> list[dict[str, Any]]:
    spaces = [found] * agents if isinstance(found, dict) else found
    if (
        not isinstance(spaces, list)
        or len(spaces) != agents
        or not all(isinstance(space, dict) and space for space in spaces)
    ):
        raise ProtocolError(f"its {what} is {found!r}, which is no space for {agents} agents")
    return spaces


def _observation_part(name: str, space: object) -> ObservationPart:
    if isinstance(space, dict):
        size, kind = space.get("size"), space.get("space", "box")
        if kind == "discrete" and isinstance(size, int | float) and size >= 1:
            return ObservationPart(name, (), int(size))
        sizes = [size] if isinstance(size, int | float) else size
        if (
            kind == "box"
            and isinstance(sizes, list)
            and all(isinstance(n, int | float) and n >= 0 for n in sizes)
        ):
            low, high = space.get("low"), space.get("high")
            return ObservationPart(
                name,
                tuple(int(n) for n in sizes),
                low=float(low) if isinstance(low, int | float) else -math.inf,
                high=float(high) if isinstance(high, int | float) else math.inf,
            )
    raise ProtocolError(f"its observation {name!r} is declared as {space!r}")


def _action_part(name: str, space: object) -> ActionPart:
    if isinstance(space, dict):
        size, kind = space.get("size"), space.get("action_type")
        if kind in {"discrete", "continuous"} and isinstance(size, int | float) and size >= 1:
            return ActionPart(name, int(size), kind == "discrete")
    raise ProtocolError(f"its action {name!r} is declared as {space!r}")


def action_values(agent: int, action: Action, space: AgentSpaces) -> list[list[float]]:
    """Return the numbers of an agent's action, a list for each of its parts.

    Raises:
        ValueError: If it does not fit the agent's declared space.
    """
    found: list[list[float]] = []
    for part in space.action:
        if part.name not in action:
            raise ValueError(f"the action of agent {agent} lacks {part.name!r}")
        value = action[part.name]
        if part.discrete:
            choice = int(value.item() if isinstance(value, np.ndarray) else value)
            if not 0 <= choice < part.size:
                raise ValueError(f"action {part.name!r} is {choice}, not 0 to {part.size - 1}")
            found.append([float(choice)])
            continue
        numbers = value.tolist() if isinstance(value, np.ndarray) else list(value)
        if len(numbers) != part.size:
            raise ValueError(f"action {part.name!r} has {len(numbers)} values, not {part.size}")
        for number in numbers:
            if not math.isfinite(number):
                raise ValueError(f"action {part.name!r} holds {number}")
        found.append([float(number) for number in numbers])
    return found


def refuse_pixels(space: AgentSpaces, project: Path) -> None:
    """Refuse pictures, for a game without a window.

    Raises:
        InputError: If a part of the observation is one.
    """
    pixels = [part.name for part in space.observation if part.pixels]
    if pixels:
        raise InputError(
            f"{project}: the observation {pixels[0]!r} is a picture, and without a window the "
            "engine draws none; give the agent numbers, or play it with a window."
        )
