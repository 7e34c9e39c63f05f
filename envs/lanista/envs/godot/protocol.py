"""The plain godot-rl protocol (plugin 0.3 to 0.7 and newer): UTF-8 JSON messages."""

import json
from collections.abc import Sequence
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

MAJOR_VERSION = "0"
MINOR_VERSION = "7"


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
            raise ProtocolError(f"it sent what is not JSON: {shown(payload)}") from error
    if not isinstance(message, dict):
        raise ProtocolError(f"it sent JSON that is no object: {shown(payload)}")
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


def shown(payload: bytes | bytearray) -> str:
    """Return the beginning of a message for an error."""
    text = repr(bytes(payload[:80]))
    return text if len(payload) <= 80 else f"{text}… ({len(payload)} bytes)"


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
            for part, values in zip(space.action, action_values(agent, action, space), strict=True)
        }
        for agent, (action, space) in enumerate(zip(actions, spaces, strict=True))
    ]
