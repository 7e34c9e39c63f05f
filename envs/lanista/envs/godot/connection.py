"""Messages over a connected socket: a little-endian ``uint32`` byte count, and that many bytes."""

import json
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

_LENGTH = struct.Struct("<I")


_LARGEST_MESSAGE = 1 << 30


_READ_SIZE = 1 << 18


class ProtocolError(ValueError):
    """The other side sent something that is no message; the client makes a game fault of it."""


class DisconnectedError(Exception):
    """The other side closed the connection."""


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
