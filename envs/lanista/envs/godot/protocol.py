"""The godot-rl protocol: framing, plain JSON messages, and the packed form of Lanista's bridge.

Every message is a little-endian ``uint32`` byte count and that many bytes. A plain game (plugin
0.3 to 0.7 and newer) speaks UTF-8 JSON. Where the bridge of an instrumented copy answers, the
actions and the frames of a step are packed numbers instead; everything rare stays JSON. The first
byte tells which: ``{`` opens JSON, ``A`` actions, ``S`` a frame.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAJOR_VERSION = "0"
MINOR_VERSION = "7"
EXTENSION_VERSION = 1
"""Version of the packed form; a bridge of another version is refused by name."""

Observation = dict[str, NDArray[Any]]
Action = Mapping[str, Any]

_LENGTH = struct.Struct("<I")
_HEADER = struct.Struct("<BBHIII")
_LARGEST_MESSAGE = 1 << 30
_READ_SIZE = 1 << 18
_ACTIONS = b"A"
_FRAME = ord("S")
_JSON = ord("{")
_HAS_TRACE, _TRACE_TRUNCATED = 1, 2
_TERMINATED, _TRUNCATED, _HAS_FINAL, _FINAL_EXACT = 1, 2, 4, 8


class ProtocolError(ValueError):
    """The other side sent something that is no message; the client makes a game fault of it."""


class DisconnectedError(Exception):
    """The other side closed the connection."""


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


class Connection:
    """Messages over a connected socket, each read with a deadline."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._rest = b""

    def send(self, payload: bytes) -> None:
        """Send one message.

        Raises:
            DisconnectedError: If the other side is gone.
            TimeoutError: If it took nothing for as long as the last read may take.
        """
        try:
            self._socket.sendall(_LENGTH.pack(len(payload)) + payload)
        except TimeoutError:
            raise
        except OSError as error:
            raise DisconnectedError from error

    def send_json(self, message: Mapping[str, Any]) -> None:
        """Send one message as JSON. Raises as ``send`` does."""
        self.send(json.dumps(message, ensure_ascii=True, allow_nan=False).encode("ascii"))

    def receive(self, timeout_s: float) -> bytearray:
        """Read one message.

        Args:
            timeout_s: Seconds after which the whole message must be there.

        Raises:
            DisconnectedError: If the other side is gone.
            TimeoutError: If the message is not there in time.
            ProtocolError: If the length is beyond reason.
        """
        deadline = time.monotonic() + timeout_s
        data = self._rest or self._some(deadline)
        while len(data) < _LENGTH.size:
            data += self._some(deadline)
        (size,) = _LENGTH.unpack_from(data)
        if size > _LARGEST_MESSAGE:
            raise ProtocolError(f"it announced a message of {size} bytes")
        end = _LENGTH.size + size
        while len(data) < end:
            data += self._some(deadline)
        self._rest = data[end:]
        # The arrays of a frame live in the message's memory, so each message has its own.
        return bytearray(memoryview(data)[_LENGTH.size : end])

    def _some(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            self._socket.settimeout(left)
            data = self._socket.recv(_READ_SIZE)
        except TimeoutError:
            raise
        except OSError as error:
            raise DisconnectedError from error
        if not data:
            raise DisconnectedError
        return data

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def read_json(payload: bytes | bytearray, kind: str | None = None) -> dict[str, Any]:
    """Parse a JSON message.

    Args:
        payload: The bytes of the message.
        kind: The ``type`` that it must have; ``None`` for any.

    Raises:
        ProtocolError: If it is not a JSON object of that type.
    """
    try:
        # Godot writes the bytes of its strings as they are, and nan and inf as bare words.
        message = json.loads(payload.decode("utf-8", "replace"), parse_constant=float)
    except (ValueError, RecursionError):
        try:
            text = payload.decode("utf-8", "replace").replace("\x00", "")
            message = json.loads(_with_python_numbers(text))
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"it sent what is not JSON: {_shown(payload)}") from error
    if not isinstance(message, dict):
        raise ProtocolError(f"it sent JSON that is no object: {_shown(payload)}")
    if kind is not None and message.get("type") != kind:
        raise ProtocolError(f"it sent a {message.get('type')!r} message where {kind!r} was due")
    return message


def _with_python_numbers(text: str) -> str:
    """Spell Godot's ``nan``, ``inf`` and ``-inf`` as Python's JSON reader knows them."""
    out: list[str] = []
    inside = False
    index = 0
    words = {"nan": "NaN", "inf": "Infinity"}
    while index < len(text):
        char = text[index]
        if char == '"':
            inside = not inside
        elif char == "\\" and inside:
            out.append(text[index : index + 2])
            index += 2
            continue
        elif not inside and text[index : index + 3] in words:
            out.append(words[text[index : index + 3]])
            index += 3
            continue
        out.append(char)
        index += 1
    return "".join(out)


def _shown(payload: bytes | bytearray) -> str:
    text = repr(bytes(payload[:80]))
    return text if len(payload) <= 80 else f"{text}… ({len(payload)} bytes)"


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


def read_plain_observations(
    found: object, spaces: Sequence[AgentSpaces]
) -> tuple[Observation, ...]:
    """Turn the ``obs`` of a JSON message into arrays, checked against the declared spaces.

    Returns:
        One dictionary per agent, from the part's name to an array of its shape and type.

    Raises:
        ProtocolError: If a part is missing or has another size than declared.
    """
    if not isinstance(found, list) or len(found) != len(spaces):
        raise ProtocolError(f"it sent observations for {_count(found)} of {len(spaces)} agents")
    return tuple(
        {part.name: _plain_part(agent, part, seen) for part in space.observation}
        for agent, (space, seen) in enumerate(zip(spaces, found, strict=True))
    )


def _plain_part(agent: int, part: ObservationPart, seen: object) -> NDArray[Any]:
    value = seen.get(part.name) if isinstance(seen, dict) else None
    try:
        if part.pixels and isinstance(value, str):
            array = np.frombuffer(bytes.fromhex(value), np.uint8).copy()
        else:
            array = np.asarray(value, dtype=part.dtype)
    except (TypeError, ValueError) as error:
        raise ProtocolError(_bad_part(agent, part, "something that is not numbers")) from error
    if array.size != (part.size if part.choices is None else 1):
        raise ProtocolError(_bad_part(agent, part, f"{array.size} values"))
    return array.reshape(part.shape)


def _bad_part(agent: int, part: ObservationPart, got: str) -> str:
    return (
        f"agent {agent} sent {got} as its observation {part.name!r}, "
        f"which is declared with {part.size}"
    )


def _count(found: object) -> int:
    return len(found) if isinstance(found, list) else 0


def plain_actions(actions: Sequence[Action], spaces: Sequence[AgentSpaces]) -> list[dict[str, Any]]:
    """Turn actions into what a JSON message holds: a list of floats or one whole number.

    Raises:
        ValueError: If an action does not fit the agent's declared space.
    """
    return [
        {
            part.name: int(values[0]) if part.discrete else values
            for part, values in zip(space.action, _values(agent, action, space), strict=True)
        }
        for agent, (action, space) in enumerate(zip(actions, spaces, strict=True))
    ]


def pack_actions(actions: Sequence[Action], spaces: Sequence[AgentSpaces]) -> bytes:
    """Pack the actions of all agents: ``A``, then ``float64`` by agent, part and element.

    Raises:
        ValueError: If an action does not fit the agent's declared space.
    """
    values: list[float] = []
    for agent, (action, space) in enumerate(zip(actions, spaces, strict=True)):
        for part in _values(agent, action, space):
            values += part
    return _ACTIONS + struct.pack(f"<{len(values)}d", *values)


def _values(agent: int, action: Action, space: AgentSpaces) -> list[list[float]]:
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
            raise ProtocolError(f"it sent no frame: {_shown(payload)}")
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
