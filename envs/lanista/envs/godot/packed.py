"""The packed form in which Lanista's bridge takes the actions and tells the frames of a step.

The first byte of a message tells what it is: ``{`` opens JSON, ``A`` actions, ``S`` a frame.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.godot.agent_spaces import (
    Action,
    AgentSpaces,
    Observation,
    ObservationPart,
    action_values,
)
from lanista.envs.godot.connection import ProtocolError
from lanista.envs.godot.protocol import read_json, shown

EXTENSION_VERSION = 1
"""Version of the packed form; a bridge of another version is refused by name."""


_HEADER = struct.Struct("<BBHIII")


_ACTIONS = b"A"


_FRAME = ord("S")


_JSON = ord("{")


_HAS_TRACE, _TRACE_TRUNCATED = 1, 2


_TERMINATED, _TRUNCATED, _HAS_FINAL, _FINAL_EXACT = 1, 2, 4, 8


def pack_actions(actions: Sequence[Action], spaces: Sequence[AgentSpaces]) -> bytes:
    """Pack the actions of all agents: ``A``, then ``float64`` by agent, part and element.

    Raises:
        ValueError: If an action does not fit the agent's declared space.
    """
    values: list[float] = []
    for agent, (action, space) in enumerate(zip(actions, spaces, strict=True)):
        for part in action_values(agent, action, space):
            values += part
    return _ACTIONS + struct.pack(f"<{len(values)}d", *values)


@dataclass(frozen=True)
class PackedFrame:
    """A frame as the bridge packs it: the answer to a reset or a step, for all agents.

    Attributes:
        observations: What each agent sees now.
        rewards: Reward of each agent for this step, shape ``[agents]``, ``float64``.
        terminated: Whether each agent's episode ended by the game's rules, shape ``[agents]``.
        truncated: Whether each agent's episode was cut, shape ``[agents]``.
        final_observations: Last observation of each episode that ended, else ``None``.
        final_exact: Whether that was taken before the game reset the agent, shape ``[agents]``.
        ticks: Physics ticks that passed.
        trace: Ids of the functions called, in order, shape ``[calls]``, ``int32``; ``None`` where
            the project is not instrumented.
        trace_truncated: Whether calls are missing, for there were more than the recorder keeps.
        extra: What else the game told, from the JSON at the frame's end (``info``, ``errors``…).
    """

    observations: tuple[Observation, ...]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_observations: tuple[Observation | None, ...]
    final_exact: NDArray[np.bool_]
    ticks: int
    trace: NDArray[np.int32] | None
    trace_truncated: bool
    extra: dict[str, Any]


class FrameReader:
    """Unpacks the frames of one game, whose spaces fix where everything lies."""

    def __init__(self, spaces: Sequence[AgentSpaces]) -> None:
        self._spaces = tuple(spaces)
        self._sizes = [
            sum(part.size if part.choices is None else 1 for part in space.observation)
            for space in spaces
        ]
        self._readers = [self._reader(space) for space in spaces]

    @staticmethod
    def _reader(space: AgentSpaces) -> Callable[[NDArray[np.float32]], Observation]:
        if len(space.observation) == 1 and space.observation[0].choices is None:
            name, shape = space.observation[0].name, space.observation[0].shape
            if len(shape) == 1:
                return lambda values: {name: values}
        parts: list[tuple[ObservationPart, int, int]] = []
        start = 0
        for part in space.observation:
            size = part.size if part.choices is None else 1
            parts.append((part, start, start + size))
            start += size

        def read(values: NDArray[np.float32]) -> Observation:
            return {
                part.name: values[first:last].astype(part.dtype, copy=False).reshape(part.shape)
                for part, first, last in parts
            }

        return read

    def read(self, payload: bytearray) -> PackedFrame:
        """Unpack a frame.

        The arrays of observations share the memory of ``payload``.

        Raises:
            ProtocolError: If it is no frame, or not of this game's size.
        """
        if not payload or payload[0] != _FRAME:
            raise ProtocolError(f"it sent no frame: {shown(payload)}")
        try:
            return self._read(payload)
        except (ValueError, struct.error) as error:
            raise ProtocolError(f"it sent a frame that does not add up: {error}") from error

    def _read(self, payload: bytearray) -> PackedFrame:
        agents = len(self._spaces)
        _, flags, _, ticks, calls, text_size = _HEADER.unpack_from(payload)
        at = _HEADER.size
        rewards = np.frombuffer(payload, "<f8", agents, at)
        at += 8 * agents
        calm = payload.count(0, at, at + agents) == agents
        status = np.frombuffer(payload, np.uint8, agents, at)
        at += (agents + 3) & ~3
        observations: list[Observation] = []
        for size, read in zip(self._sizes, self._readers, strict=True):
            observations.append(read(np.frombuffer(payload, "<f4", size, at)))
            at += 4 * size
        finals: list[Observation | None] = [None] * agents
        if not calm:
            for agent in np.flatnonzero(status & _HAS_FINAL).tolist():
                size = self._sizes[agent]
                finals[agent] = self._readers[agent](np.frombuffer(payload, "<f4", size, at))
                at += 4 * size
        trace = None
        if flags & _HAS_TRACE:
            trace = np.frombuffer(payload, "<i4", calls, at)
            at += 4 * calls
        if at + text_size != len(payload):
            raise ValueError(f"{len(payload)} bytes came, {at + text_size} were announced")
        extra = read_json(payload[at:]) if text_size else {}
        return PackedFrame(
            tuple(observations),
            rewards,
            # Nearly every frame is calm, and three comparisons of arrays cost more than its rest.
            np.zeros(agents, np.bool_) if calm else (status & _TERMINATED) != 0,
            np.zeros(agents, np.bool_) if calm else (status & _TRUNCATED) != 0,
            tuple(finals),
            np.zeros(agents, np.bool_) if calm else (status & _FINAL_EXACT) != 0,
            ticks,
            trace,
            bool(flags & _TRACE_TRUNCATED),
            extra,
        )


def is_json(payload: bytes | bytearray) -> bool:
    """Whether a message is JSON rather than a packed frame."""
    return bool(payload) and payload[0] == _JSON
