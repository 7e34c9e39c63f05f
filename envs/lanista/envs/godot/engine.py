"""The Godot engine: which one is used, and one-off runs of it.

An engine is looked for in ``$GODOT``, on PATH as ``godot`` and ``godot4``, and in the prefix that
``lanista godot install`` makes under the user's cache. Its version is part of every key.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lanista.envs.cache import cache_folder
from lanista.envs.errors import InputError, RunError

OLDEST = (4, 4)
"""Oldest minor version that will do."""

DOWNLOAD = "the official standard (not .NET) build of Godot 4.4 or newer"
"""What to fetch where the engine cannot be installed by itself."""

_NAMES = ("godot", "godot4")
_VERSION = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?\.[\w.+~-]+$")
_VERSION_TIMEOUT_S = 60.0
_LAST_LINES = 20
_DECORATION = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Engine:
    """An engine that was found to run.

    Attributes:
        command: The program, to which Godot's own arguments are appended.
        version: What it says of itself: ``4.6.3.stable.debian4.6.3+ds-3``.
    """

    command: tuple[str, ...]
    version: str

    @property
    def number(self) -> tuple[int, int, int]:
        """Major, minor and patch version."""
        return version_number(self.version)


@dataclass(frozen=True)
class Finished:
    """A one-off run of the engine that ended by itself.

    Attributes:
        code: Exit status.
        output: What it printed, standard output and error together, without colours.
    """

    code: int
    output: str

    @property
    def last_lines(self) -> str:
        """The last lines printed, joined for one sentence."""
        return last_lines(self.output)


def find_engine() -> Engine:
    """Find an engine: ``$GODOT``, PATH, then the one that Lanista installed.

    Raises:
        InputError: If ``$GODOT`` names no engine that will do, or none is found anywhere.
    """
    chosen = os.environ.get("GODOT")
    if chosen:
        program = shutil.which(str(Path(chosen).expanduser()))
        if program is None:
            raise InputError(f"$GODOT names {chosen}, which is no program; unset or mend it.")
        return open_engine(Path(program))
    refused = []
    for program in filter(None, map(shutil.which, _NAMES)):
        try:
            return open_engine(Path(program))
        except InputError as error:
            refused.append(str(error))
    installed = installed_program()
    if installed.exists():
        return open_engine(installed)
    raise InputError(
        " ".join(["No Godot engine is here: run `lanista godot install` or set $GODOT.", *refused])
    )


def installed_program() -> Path:
    """Return where ``lanista godot install`` puts the engine's program; it need not exist."""
    return cache_folder() / "godot" / "engine" / "godot"


def open_engine(program: Path) -> Engine:
    """Ask a program for its version.

    Raises:
        InputError: If it does not run, is no Godot, or is older than 4.4.
    """
    # A program that another one took the place of is asked anew.
    program = program.absolute()
    try:
        state = program.stat()
    except OSError as error:
        raise InputError(f"The engine {program} is not there: {error.strerror}.") from error
    return _open_engine(str(program), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _open_engine(program: str, modified_ns: int, size: int) -> Engine:
    del modified_ns, size
    try:
        finished = run_engine((program,), ["--version"], timeout_s=_VERSION_TIMEOUT_S)
    except RunError as error:
        raise InputError(f"The engine {program} does not run: {error}") from error
    lines = finished.output.strip().splitlines()
    version = lines[-1].strip() if lines else ""
    if finished.code != 0 or not _VERSION.match(version):
        raise InputError(
            f"The program {program} is no Godot engine that runs here: it answered --version with "
            f"{finished.last_lines or 'nothing'} (status {finished.code})."
        )
    if version_number(version)[:2] < OLDEST:
        raise InputError(
            f"The engine {program} is Godot {version}, and 4.4 or newer is needed: run "
            f"`lanista godot install`, or set $GODOT to {DOWNLOAD}."
        )
    return Engine((program,), version)


def version_number(version: str) -> tuple[int, int, int]:
    """Read ``4.6.3.stable…`` as (4, 6, 3) and ``4.6.stable…`` as (4, 6, 0).

    Raises:
        InputError: If it is no version of Godot.
    """
    match = _VERSION.match(version)
    if match is None:
        raise InputError(f"{version!r} is no version of Godot.")
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


def private_environment(home: Path) -> dict[str, str]:
    """Return this process's environment with the user's folders moved to ``home``.

    ``user://`` lies under them, so that engines running side by side share nothing, and nothing is
    left in the person's own folders.
    """
    moved = {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in moved}
    return kept | {"HOME": str(home)}


def run_engine(
    command: tuple[str, ...],
    arguments: list[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
) -> Finished:
    """Run the engine with a home of its own until it ends.

    Args:
        command: :attr:`Engine.command`.
        arguments: Godot's arguments.
        timeout_s: Seconds after which it and what it started are killed.
        folder: Working folder, this process's by default.

    Raises:
        RunError: If it cannot be started or has not ended in time; the text ends in what it
            printed last.
    """
    with _scratch() as scratch:
        home = scratch / "home"
        home.mkdir()
        printed = scratch / "output"
        with printed.open("wb") as output:
            try:
                # Output goes to a file: a pipe would stay open as long as any process it started.
                process = subprocess.Popen(
                    [*command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=private_environment(home),
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(f"{command[0]} cannot be started: {error.strerror}.") from error
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired as error:
                raise RunError(
                    f"The engine did not end within {timeout_s:g} s; it printed last: "
                    f"{last_lines(_read(printed)) or 'nothing'}."
                ) from error
            finally:
                _kill_group(process)
        return Finished(code, _read(printed))


def last_lines(output: str, count: int = _LAST_LINES) -> str:
    """Return the last lines with text in them, joined by `` | ``."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " | ".join(lines[-count:])


def _read(path: Path) -> str:
    return _DECORATION.sub("", path.read_bytes().decode("utf-8", "replace"))


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lanista-godot-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
