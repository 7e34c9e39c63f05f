"""Writing files so that a reader sees the old one or the whole new one, never a part."""

import contextlib
import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lanista.envs.errors import InputError, LanistaError, RunError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}

TEMPORARY = ".tmp-"
"""What the name of a file begins with while it is being written."""


def write_atomically(path: Path, payload: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it into place.

    Raises:
        InputError: If the folder cannot be written to.
        RunError: If the disk is full.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> LanistaError:
    """Return what to raise for a file that could not be written.

    A full disk is met in the middle of work that had begun, a folder that takes no file before.
    """
    kind = RunError if error.errno in _FULL else InputError
    return kind(f"{path} cannot be written: {error.strerror or error}.")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value atomically, in one form for equal values."""
    write_atomically(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InputError: If it is missing, unreadable or no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is corrupt: {error}.") from error


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder's lock while writing; the system lets go of it when the process ends.

    Raises:
        InputError: If another process holds it, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("wb")
    except OSError as error:
        raise InputError(f"{folder} cannot be written to: {error.strerror}.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder} is being written by another process.") from error
        except OSError:
            # Some shared storage knows no locks; its users start one recording at a time.
            pass
        yield


def sync(path: Path) -> None:
    """Flush a file or a folder's list of names to the disk, so that a power cut keeps it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        # Some shared storage cannot flush folders; the file itself is on the disk.
        pass
    finally:
        os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Delete what writers that were killed left half written; only for the one writer."""
    for leftover in folder.rglob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)
