"""Messages, spaces and packed frames, without an engine."""

import json
import math
import socket
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.godot.agent_spaces import ActionPart, AgentSpaces, ObservationPart, read_spaces
from lanista.envs.godot.connection import Connection, DisconnectedError, ProtocolError
from lanista.envs.godot.packed import FrameReader, pack_actions
from lanista.envs.godot.protocol import plain_actions, read_json, read_plain_observations

SPACES = (
    AgentSpaces(
        (ObservationPart("far", (2, 2)), ObservationPart("kind", (), 5)),
        (ActionPart("move", 2, False), ActionPart("look", 3, True)),
    ),
    AgentSpaces((ObservationPart("far", (3,)),), (ActionPart("move", 1, False),)),
)


def pair() -> tuple[Connection, socket.socket]:
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    listener.close()
    return Connection(accepted), other


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes]) -> None:
    connection, other = pair()
    stream = b"".join(struct.pack("<I", len(message)) + message for message in messages)
    try:
        cut = len(stream) // 3
        other.sendall(stream[:cut])
        other.sendall(stream[cut:])
        assert [bytes(connection.receive(5.0)) for _ in messages] == messages
        for message in messages:
            connection.send(message)
            (size,) = struct.unpack("<I", other.recv(4, socket.MSG_WAITALL))
            assert other.recv(size, socket.MSG_WAITALL) == message if size else message == b""
    finally:
        connection.close()
        other.close()


def test_a_read_ends_in_time_and_a_lost_peer_is_noticed() -> None:
    connection, other = pair()
    other.sendall(struct.pack("<I", 10) + b"half")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        connection.receive(0.2)
    assert 0.15 < time.monotonic() - began < 2
    other.close()
    with pytest.raises(DisconnectedError):
        connection.receive(5.0)
    connection.close()


def test_a_trickle_does_not_stretch_the_deadline() -> None:
    connection, other = pair()
    stop = threading.Event()

    def trickle() -> None:
        other.sendall(struct.pack("<I", 1000))
        while not stop.wait(0.05):
            other.sendall(b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        connection.receive(0.4)
    assert time.monotonic() - began < 2
    stop.set()
    thread.join()
    connection.close()
    other.close()


def test_a_length_beyond_reason_is_refused() -> None:
    connection, other = pair()
    other.sendall(b"HTTP")
    with pytest.raises(ProtocolError, match="1347703880 bytes"):
        connection.receive(1.0)
    connection.close()
    other.close()


def test_godots_spelling_of_numbers_is_read() -> None:
    message = read_json(b'{"type":"step","a":[nan,inf,-inf,1e99999],"b":"inf \\" nan"}', "step")
    assert math.isnan(message["a"][0])
    assert message["a"][1:] == [math.inf, -math.inf, math.inf]
    assert message["b"] == 'inf " nan'


@pytest.mark.parametrize(
    ("payload", "text"),
    [(b"\xff\xfe", "not JSON"), (b"[1]", "no object"), (b'{"type":"call"}', "'call' message")],
)
def test_what_is_no_message_is_named(payload: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        read_json(payload, "step")


def test_spaces_of_old_and_new_plugins_are_the_same() -> None:
    observation = {"obs": {"size": [4], "space": "box"}, "map": {"size": [2, 3], "space": "box"}}
    action = {"jump": {"size": 2, "action_type": "discrete"}}
    old = read_spaces({"n_agents": 2.0, "observation_space": observation, "action_space": action})
    new = read_spaces(
        {
            "n_agents": 2,
            "observation_space": [observation] * 2,
            "action_space": [action] * 2,
            "agent_policy_names": ["a", "b"],
        }
    )
    assert [space.observation for space in old] == [space.observation for space in new]
    assert [space.policy for space in new] == ["a", "b"]
    assert old[0].observation[1] == ObservationPart("map", (2, 3))
    bounded = {"obs": {"size": [1], "space": "box", "low": -2, "high": 5.0}}
    part = read_spaces({"n_agents": 1, "observation_space": bounded, "action_space": action})[
        0
    ].observation[0]
    assert (part.low, part.high) == (-2.0, 5.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n_agents": 0}, "0 agents"),
        ({"observation_space": {}}, "no space for 1 agents"),
        ({"action_space": {"move": {"size": 0, "action_type": "discrete"}}}, "'move'"),
        ({"action_space": {"move": {"size": 1, "action_type": "vague"}}}, "'move'"),
        ({"observation_space": {"obs": {"space": "box"}}}, "'obs'"),
        ({"observation_space": [{"obs": {"size": [1]}}] * 2}, "no space for 1 agents"),
    ],
)
def test_spaces_that_make_no_sense_are_named(change: dict[str, Any], text: str) -> None:
    message = {
        "n_agents": 1,
        "observation_space": {"obs": {"size": [1], "space": "box"}},
        "action_space": {"move": {"size": 1, "action_type": "continuous"}},
    }
    with pytest.raises(ProtocolError, match=text):
        read_spaces({**message, **change})


def test_plain_observations_are_checked() -> None:
    good = [{"far": [[1, 2], [3, 4]], "kind": 2}, {"far": [True, 0.5, -1]}]
    first, second = read_plain_observations(good, SPACES)
    assert first["far"].tolist() == [[1, 2], [3, 4]]
    assert (first["kind"].dtype, first["kind"].shape, int(first["kind"])) == (np.int64, (), 2)
    assert second["far"].dtype == np.float32
    with pytest.raises(ProtocolError, match=r"agent 1 sent 2 values.*declared with 3"):
        read_plain_observations([good[0], {"far": [1, 2]}], SPACES)
    with pytest.raises(ProtocolError, match="1 of 2 agents"):
        read_plain_observations(good[:1], SPACES)
    with pytest.raises(ProtocolError, match="not numbers"):
        read_plain_observations([good[0], {"far": ["(1, 2)", 0, 0]}], SPACES)


def test_pictures_are_read_from_hex() -> None:
    space = AgentSpaces((ObservationPart("view_2d", (2, 2)),), ())
    (seen,) = read_plain_observations([{"view_2d": "00ff1002"}], (space,))
    assert seen["view_2d"].tolist() == [[0, 255], [16, 2]]
    assert seen["view_2d"].dtype == np.uint8


finite = st.floats(-1, 1)


@given(finite, finite, st.integers(0, 2), finite)
def test_packed_actions_hold_what_the_plain_ones_do(a: float, b: float, c: int, d: float) -> None:
    actions = [{"move": np.asarray([a, b]), "look": np.int64(c)}, {"move": [d]}]
    packed = pack_actions(actions, SPACES)
    assert packed[:1] == b"A"
    assert struct.unpack("<4d", packed[1:]) == (a, b, float(c), d)
    plain = json.loads(json.dumps(plain_actions(actions, SPACES)))
    assert plain == [{"move": [a, b], "look": c}, {"move": [d]}]


def packed_frame(
    rewards: list[float],
    status: list[int],
    seen: list[float],
    finals: list[float],
    trace: list[int] | None,
    extra: dict[str, Any] | None,
) -> bytearray:
    """Pack a frame as the layout in protocol.py says, by other means than the bridge's."""
    text = json.dumps(extra).encode() if extra else b""
    calls = trace or []
    flags = 0 if trace is None else 1
    body = struct.pack("<BBHIII", ord("S"), flags, 0, 8, len(calls), len(text))
    body += struct.pack(f"<{len(rewards)}d", *rewards)
    body += bytes(status) + b"\x77" * (-len(status) % 4)
    body += struct.pack(f"<{len(seen)}f", *seen) + struct.pack(f"<{len(finals)}f", *finals)
    return bytearray(body + struct.pack(f"<{len(calls)}i", *calls) + text)


small = st.floats(-1e6, 1e6, width=32)


@given(
    st.lists(small, min_size=8, max_size=8),
    st.lists(small, min_size=3, max_size=3),
    st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=50),
    st.none() | st.just({"info": [{"a": 1}, {}], "errors": ["é"]}),
)
def test_a_frame_is_read_as_packed(
    seen: list[float], final: list[float], trace: list[int] | None, extra: dict[str, Any] | None
) -> None:
    seen[4] = 3.0
    frame = FrameReader(SPACES).read(
        packed_frame([0.5, -1.0], [0, 1 | 4 | 8], seen, final, trace, extra)
    )
    assert frame.observations[0]["far"].reshape(-1).tolist() == seen[:4]
    assert int(frame.observations[0]["kind"]) == 3
    assert frame.observations[1]["far"].tolist() == seen[5:]
    assert frame.rewards.tolist() == [0.5, -1.0]
    assert frame.terminated.tolist() == [False, True]
    assert not frame.truncated.any()
    assert frame.final_observations[0] is None
    assert frame.final_observations[1] is not None
    assert frame.final_observations[1]["far"].tolist() == final
    assert frame.final_exact.tolist() == [False, True]
    assert (None if frame.trace is None else frame.trace.tolist()) == trace
    assert frame.extra == (extra or {})
    assert frame.ticks == 8


@given(st.binary(max_size=120))
def test_no_bytes_are_read_as_a_frame_by_mistake(noise: bytes) -> None:
    good = packed_frame([0.0, 0.0], [0, 0], [0.0] * 8, [], [1, 2], None)
    for payload in (bytearray(b"S" + noise), good[:-1], good + b"\x00"):
        with pytest.raises(ProtocolError):
            FrameReader(SPACES).read(payload)
