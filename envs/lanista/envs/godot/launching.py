"""Bringing a game up: what is asked for, the command line, the connection, and why it failed."""

import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.connection import Connection, DisconnectedError, ProtocolError
from lanista.envs.godot.faults import GameCrashed
from lanista.envs.godot.process import EngineProcess

DEFAULT_TICKS_PER_SECOND = 60


_TICKS = re.compile(r"^common/physics_ticks_per_second\s*=\s*(\d+)", re.MULTILINE)


_ACCEPT_POLL_S = 0.02


_OPTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class EngineCommand(Protocol):
    """What the client needs to know of an engine."""

    @property
    def command(self) -> tuple[str, ...]:
        """Program and first arguments."""


def check_start(
    engine: EngineCommand | None,
    project: Path,
    action_repeat: int | None,
    timeout_s: float,
    start_timeout_s: float,
    options: Mapping[str, str] | None,
    speedup: float,
) -> None:
    """Refuse a start that makes no sense; raises ``InputError`` with a line for each problem."""
    problems = []
    if not project.exists():
        problems.append(f"{project}: there is no such project or program.")
    elif project.is_dir() and not (project / "project.godot").is_file():
        problems.append(f"{project}: holds no project.godot, so it is no Godot project.")
    elif project.is_dir() and engine is None:
        problems.append(f"{project}: a project needs an engine to play it.")
    if action_repeat is not None and action_repeat < 1:
        problems.append(f"An action is repeated at least once, not {action_repeat} times.")
    if speedup <= 0:
        problems.append(f"The speedup must be above 0, not {speedup}.")
    if timeout_s <= 0 or start_timeout_s <= 0:
        problems.append("A timeout must be above 0 seconds.")
    problems += [
        f"Option name {name!r} is no plain word (letters, digits, _)."
        for name in options or {}
        if not _OPTION_NAME.fullmatch(name)
    ]
    if problems:
        raise InputError(*problems)


def listen(port: int | None) -> socket.socket:
    """Listen on a port of this machine, a free one where none is named."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if port is not None:
            # A port that only lingers from a game before is free; one that is served is not.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port or 0))
        listener.listen(1)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"Port {port} cannot be listened on ({error}): it is in use or not allowed; leave it "
            "out and a free one is chosen."
        ) from error
    return listener


def command_line(
    engine: EngineCommand | None,
    project: Path,
    *,
    port: int,
    seed: int,
    action_repeat: int | None,
    speedup: float,
    options: Mapping[str, str],
    headless: bool,
    fixed_fps: int | None,
    scene: str | None,
) -> list[str]:
    """Return the program and its arguments."""
    if project.is_dir():
        assert engine is not None
        command = [*engine.command, "--path", str(project.resolve())]
        if scene is not None:
            command.append(scene)
    else:
        command = [str(project.resolve())]
    if headless:
        command.append("--headless")
    frames = native_ticks(project) if fixed_fps is None else fixed_fps
    if frames > 0:
        # Without it a headless engine sleeps in each iteration: about 145 of them a second.
        command += ["--fixed-fps", str(frames)]
    command += [f"--port={port}", f"--env_seed={seed}"]
    if speedup != 1:
        command.append(f"--speedup={speedup:g}")
    if action_repeat is not None:
        command.append(f"--action_repeat={action_repeat}")
    # The plugin reads only what stands before a bare "--".
    command += [f"--{name}={value}" for name, value in options.items()]
    return command


def native_ticks(project: Path) -> int:
    """Return the physics ticks per second that a project's settings ask for (60 by default)."""
    settings = project / "project.godot"
    if not settings.is_file():
        return DEFAULT_TICKS_PER_SECOND
    found = _TICKS.search(settings.read_text(encoding="utf-8", errors="replace"))
    return max(1, int(found.group(1))) if found else DEFAULT_TICKS_PER_SECOND


def accept(listener: socket.socket, process: EngineProcess, deadline: float) -> Connection:
    """Wait for the game to connect; raises what ``failed_start`` returns."""
    listener.settimeout(_ACCEPT_POLL_S)
    while time.monotonic() < deadline:
        try:
            connected, _ = listener.accept()
        except TimeoutError:
            if process.poll() is not None:
                raise failed_start(process, DisconnectedError()) from None
            continue
        return Connection(connected)
    raise failed_start(process, TimeoutError())


def failed_start(process: EngineProcess, cause: Exception) -> Exception:
    """Say why a game did not come up, with what it printed and what is usually the reason."""
    if isinstance(cause, DisconnectedError):
        fault = process.wait_for_end()
        code = process.poll()
        if isinstance(fault, GameCrashed) and code is not None and code < 0:
            return fault
        what = str(fault)
    else:
        what = str(cause) if isinstance(cause, ProtocolError) else "it told no spaces in time"
        process.kill()
    output = process.opening()
    text = f"The game did not come up: {what}. {_likely_cause(output)}"
    return RunError(f"{text} It printed:\n{_telling(output)}" if output else text)


def _telling(output: str, lines: int = 15) -> str:
    """Return the lines from the first error on, or the first ones where there is none."""
    printed = output.splitlines()
    first = next((index for index, line in enumerate(printed) if "ERROR" in line), 0)
    return "\n".join(printed[first : first + lines])


def _likely_cause(output: str) -> str:
    if "No loader found" in output:
        return "A file of it cannot be imported here (a .blend file needs Blender, for one)."
    if "Could not find base class" in output or "Could not find type" in output:
        return "A class of it is unknown: run the engine once with --import, then see below."
    if "Parse Error" in output or "SCRIPT ERROR" in output:
        return "A script of it has an error (see below)."
    if "no main scene" in output or "Couldn't detect whether" in output:
        return "The project names no main scene: give one with `scene`."
    if "Can't open project" in output or "Couldn't load project" in output:
        return "The engine cannot read the project."
    return (
        "Likely causes: no Sync node or no agent in the scene that starts, agents not in training "
        "mode, or a project that was never imported (run the engine once with --import)."
    )
