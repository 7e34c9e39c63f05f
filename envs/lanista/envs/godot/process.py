"""An engine as a child process: started alone in a home of its own, watched, and always reaped."""

import contextlib
import ctypes
import ctypes.util
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lanista.envs.errors import InputError
from lanista.envs.godot.faults import GameCrashed, GameFault, GameOutOfMemory

KEPT_LINES = 200
_LONGEST_LINE = 2_000
_WATCH_S = 0.1
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_NO_MEMORY = re.compile(
    r"out of memory|bad_alloc|cannot allocate memory|can't allocate", re.IGNORECASE
)


class EngineProcess:
    """One running engine and what it prints.

    It gets its own ``HOME`` (games write to ``user://`` there), which goes away with it, and its
    own process group. On Linux the kernel ends it when this process dies in whatever way.

    Attributes:
        pid: Its process id.
        script_errors: Number of ``SCRIPT ERROR`` lines printed so far.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        memory_limit_mb: int | None = None,
    ) -> None:
        """Start the engine.

        Args:
            command: Program and arguments; nothing in it is split or expanded.
            environment: Variables to set on top of this process's own.
            memory_limit_mb: Resident megabytes (2**20 bytes) at which it is ended; Linux only.

        Raises:
            InputError: If the program cannot be started, or the limit cannot be held here.
        """
        if memory_limit_mb is not None and not sys.platform.startswith("linux"):
            raise InputError("A memory limit for a game is only kept on Linux: leave it out.")
        self.command = tuple(command)
        self.script_errors = 0
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._first_lines: list[str] = []
        self._error_lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._memory_limit = memory_limit_mb
        self._over_memory = False
        self._oom_kills = _kernel_oom_kills()
        self._home = Path(tempfile.mkdtemp(prefix="lanista-godot-"))
        try:
            self._process = _launch(self.command, self._environment(environment))
        except OSError as error:
            shutil.rmtree(self._home, ignore_errors=True)
            raise InputError(
                f"The engine {self.command[0]!r} cannot be started: {error.strerror or error}; "
                "set GODOT to a Godot 4.4+ program or run `lanista godot install`."
            ) from error
        self.pid = self._process.pid
        # Runs at the latest when this object is collected or Python ends.
        self._tidy = weakref.finalize(self, _tidy_up, self._process, self._home, os.getpid())
        self._reader = threading.Thread(
            target=_read_lines, args=(weakref.ref(self), self._process.stdout), daemon=True
        )
        self._reader.start()
        if memory_limit_mb is not None:
            threading.Thread(
                target=_watch_memory, args=(weakref.ref(self), memory_limit_mb << 20), daemon=True
            ).start()

    def _environment(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("XDG_")
        }
        environment["HOME"] = str(self._home)
        environment["XDG_RUNTIME_DIR"] = str(self._home)
        if "DISPLAY" not in environment and "XAUTHORITY" in environment:
            del environment["XAUTHORITY"]
        environment.update(extra or {})
        return environment

    def poll(self) -> int | None:
        """Return the exit code (minus the signal's number if one ended it), ``None`` if alive."""
        return self._process.poll()

    def output(self, lines: int = 30) -> str:
        """Return the last lines printed on standard output and error, joined by newlines."""
        return "\n".join(list(self._lines)[-lines:])

    def opening(self, lines: int = KEPT_LINES) -> str:
        """Return the first lines printed: an error repeated every frame floods the last ones."""
        return "\n".join(self._first_lines[:lines])

    def script_error_lines(self, last: int) -> list[str]:
        """Return the last ``SCRIPT ERROR`` lines with the place that the engine names for each."""
        return list(self._error_lines)[-last:] if last > 0 else []

    def wait_for_end(self, timeout_s: float = 2.0) -> GameFault:
        """Wait until it has ended, end it otherwise, and say what ended it.

        Returns:
            ``GameOutOfMemory`` where memory was the reason, ``GameCrashed`` otherwise.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self._reader.join(0.5)
        code = self._process.poll()
        output = self.output()
        if code is None:
            self.kill()
            return GameCrashed("the game closed its connection but did not end", output)
        why = _ending(code)
        if self._over_memory:
            limit = f"the game went over its {self._memory_limit} MB of memory and was ended"
            return GameOutOfMemory(limit, output)
        if code == -signal.SIGKILL and _kernel_oom_kills() > self._oom_kills:
            return GameOutOfMemory(f"the system ran out of memory: {why}", output)
        if code != 0 and _NO_MEMORY.search(output):
            return GameOutOfMemory(f"the game found no more memory: {why}", output)
        return GameCrashed(why, output)

    def kill(self) -> None:
        """End it and everything that it started, and wait for it."""
        _kill(self._process)

    def close(self, grace_s: float = 1.0) -> None:
        """Wait until it has ended by itself, end it otherwise, and remove its home."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._tidy()
        self._reader.join(0.5)

    def _take(self, line: str) -> None:
        if line.startswith("SCRIPT ERROR:"):
            self.script_errors += 1
            self._error_lines.append(line)
        elif self._lines and self._lines[-1].startswith("SCRIPT ERROR:") and "at: " in line:
            self._error_lines[-1] = f"{self._error_lines[-1]} ({line.strip()})"
        self._lines.append(line)
        if len(self._first_lines) < KEPT_LINES:
            self._first_lines.append(line)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def _tidy_up(process: subprocess.Popen[bytes], home: Path, owner: int) -> None:
    # A forked child has copies of its parent's objects, and no right to what they stand for.
    if os.getpid() == owner:
        _kill(process)
        shutil.rmtree(home, ignore_errors=True)


def _ending(code: int) -> str:
    if code >= 0:
        return f"the game ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"the game was ended by {name}"


def _read_lines(owner: "weakref.ref[EngineProcess]", pipe: Any) -> None:
    with pipe:
        for raw in iter(lambda: pipe.readline(_LONGEST_LINE), b""):
            process = owner()
            if process is None:
                return
            process._take(raw.decode("utf-8", "replace").rstrip("\r\n"))  # noqa: SLF001
            del process


def _watch_memory(owner: "weakref.ref[EngineProcess]", limit: int) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    while (process := owner()) is not None and process.poll() is None:
        try:
            resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * page
        except (OSError, IndexError, ValueError):
            return
        if resident > limit:
            process._over_memory = True  # noqa: SLF001
            process.kill()
            return
        del process
        time.sleep(_WATCH_S)


def _kernel_oom_kills() -> int:
    try:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def _prctl() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None


_PRCTL = _prctl()


def _die_with_parent(parent: int) -> None:
    """Run in the child between fork and exec: only calls that are safe there."""
    if _PRCTL is not None:
        _PRCTL(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)


class _Launcher:
    """A thread that starts all engines of this process.

    The kernel sends the parent-death signal when the *thread* that forked ends. Engines are
    started from worker threads that may end long before the process; this one never does.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._jobs: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], queue.SimpleQueue[Any]]
        ] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="lanista-godot-launcher", daemon=True).start()

    def _run(self) -> None:
        while True:
            job, answer = self._jobs.get()
            try:
                answer.put(job())
            except Exception as error:  # noqa: BLE001 - raised again by who asked
                answer.put(error)

    def do(self, job: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._jobs.put((job, answer))
        result = answer.get()
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, subprocess.Popen)
        return result


_launcher: _Launcher | None = None
_launcher_lock = threading.Lock()


def _launch(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    global _launcher
    with _launcher_lock:
        if _launcher is None or _launcher.owner != os.getpid():
            _launcher = _Launcher()
        launcher = _launcher
    parent = os.getpid()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Nothing else asks the kernel to end the child with its parent.
            preexec_fn=lambda: _die_with_parent(parent),
        )

    return launcher.do(start)
