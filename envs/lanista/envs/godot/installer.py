"""An engine for machines that have none: Debian's own build, unpacked into a private prefix.

Debian's stable releases carry no Godot 4, its unstable suite does. That build needs a newer C
library than most machines have, so everything it needs comes along and is started by its own
loader. Nothing is installed on the system, and no right beyond the user's own is needed.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.apt import (
    KEYRINGS,
    PrivateApt,
    debian_archives,
    missing_programs,
    read_sources,
)
from lanista.envs.godot.engine import (
    DOWNLOAD,
    Engine,
    find_engine,
    installed_program,
    open_engine,
    run_engine,
)

type Progress = Callable[[float, str], None]
"""Told how much is done, from 0 to 1, and what is going on."""

_PACKAGE = "godot"
_SUITE = "sid"
_TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
_DRAWING = ("libllvm", "libz3-", "mesa-", "libgl1-mesa-", "libegl-mesa", "libglx-mesa")
"""Packages that only a window needs, half of the whole: the engine runs without one here."""
_UNUSABLE = ':;$"\\\n'
"""Characters that the loader's or apt's own lists of folders give a meaning of their own."""
_NEEDED_BYTES = 2**30
_LISTED, _FETCHED, _UNPACKED = 0.1, 0.6, 0.95
_PROBE = """extends SceneTree
func _init():
	print("lanista ", 6 * 7)
	quit()
"""
_WRAPPER = """#!/bin/sh
# Starts this folder's engine with this folder's libraries, wherever it is moved to.
prefix=$(dirname "$(readlink -f "$0")")
libraries=$prefix/usr/lib/{triplet}
unset LD_PRELOAD
exec "$libraries/{loader}" --library-path "$libraries:$libraries/pulseaudio" \\
  "$prefix/usr/bin/godot" "$@"
"""


def install_engine(progress: Progress | None = None) -> Engine:
    """Return the engine that is here, or else install one under the user's cache.

    Raises:
        InputError: If ``$GODOT`` names no engine, or this machine cannot be given one; the text
            says what to download.
        RunError: If fetching or unpacking fails. What was fetched is used the next time.
    """
    try:
        return find_engine()
    except InputError:
        if os.environ.get("GODOT"):
            raise
    return provide_engine(progress)


def provide_engine(progress: Progress | None = None) -> Engine:
    """Install an engine under the user's cache, whatever else is here; once there it stays.

    Processes that do this at the same time wait for the first one.

    Raises:
        InputError: If this machine cannot be given one; the text says what to download.
        RunError: If fetching or unpacking fails. What was fetched is used the next time.
    """
    tell = progress or (lambda _share, _note: None)
    target = installed_program().parent
    if (engine := _working(target)) is not None:
        return engine
    plan = _Plan.make()
    home = target.parent
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The cache folder {home} cannot be made: {error.strerror}.") from error
    with _alone(home / "install.lock", lambda: tell(0, "waiting for another installation")) as lock:
        if (engine := _working(target)) is not None:
            return engine
        free = shutil.disk_usage(home).free
        if free < _NEEDED_BYTES:
            raise InputError(
                f"Installing the engine needs 1 GiB, and {free / 2**30:.1f} GiB are free at "
                f"{home}; free some, or name another folder with LANISTA_CACHE."
            )
        try:
            return _install(plan, target, home / "install", lock, tell)
        except OSError as error:
            raise RunError(
                f"The engine could not be unpacked to {home}: {error.strerror or error}."
            ) from error


class _Plan:
    """What this machine is given, found out before anything is done."""

    def __init__(self, architecture: str, archives: list[str], keyring: Path) -> None:
        self.architecture = architecture
        self.archives = archives
        self.keyring = keyring

    @classmethod
    def make(cls) -> "_Plan":
        missing = missing_programs()
        if platform.system() != "Linux" or missing:
            raise _unfit(f"this is no Debian machine with {', '.join(missing) or 'apt-get'}")
        asked = subprocess.run(
            ["dpkg", "--print-architecture"], capture_output=True, text=True, check=False
        )
        architecture = asked.stdout.strip()
        if architecture not in _TRIPLETS:
            raise _unfit(
                f"its architecture {architecture or platform.machine()} is none of "
                f"{', '.join(_TRIPLETS)}"
            )
        archives = debian_archives(read_sources(), _debian_codename())
        if not archives:
            raise _unfit("its apt sources name no archive of Debian's")
        keyring = next((path for path in KEYRINGS if path.exists()), None)
        if keyring is None:
            raise _unfit(
                "Debian's keyring is not here (apt-get install debian-archive-keyring brings it)"
            )
        if set(_UNUSABLE) & set(str(installed_program())):
            raise InputError(
                f"The engine cannot run from {installed_program().parent}; name a cache folder "
                f"without {' '.join(_UNUSABLE[:-1])} with LANISTA_CACHE."
            )
        return cls(architecture, archives, keyring)


def _install(plan: _Plan, target: Path, work: Path, lock: int, tell: Progress) -> Engine:
    apt = PrivateApt(work, plan.architecture, plan.keyring, lock)
    tell(0, "reading the list of packages")
    _use_first(apt, plan.archives)
    tell(_LISTED, "fetching")

    def fetched(percent: float) -> None:
        tell(_LISTED + (_FETCHED - _LISTED) * percent / 100, "fetching")

    packages = apt.fetch(_PACKAGE, fetched)
    prefix = target.with_name(f"{target.name}.new")
    shutil.rmtree(prefix, ignore_errors=True)
    triplet = _TRIPLETS[plan.architecture]
    for index, package in enumerate(packages):
        tell(_FETCHED + (_UNPACKED - _FETCHED) * index / len(packages), "unpacking")
        if not package.name.startswith(_DRAWING):
            _unpack(package, prefix)
    loader = next((prefix / "usr" / "lib" / triplet).glob("ld-linux-*.so.*"), None)
    if loader is None:
        raise RunError("The packages fetched hold no loader; run the same command again.")
    program = prefix / installed_program().name
    program.write_text(_WRAPPER.format(triplet=triplet, loader=loader.name), encoding="utf-8")
    program.chmod(0o755)
    tell(_UNPACKED, "checking")
    _check(program, work)
    if target.exists():
        shutil.rmtree(target)
    prefix.rename(target)
    shutil.rmtree(work, ignore_errors=True)
    tell(1, "done")
    return open_engine(target / program.name)


def _use_first(apt: PrivateApt, archives: list[str]) -> None:
    """Use the first archive that answers with lists signed by Debian."""
    refused = []
    for uri in archives:
        try:
            return apt.use(uri, _SUITE)
        except RunError as error:
            refused.append(str(error))
    raise RunError(
        f"Debian's list of packages could not be read; look at the network, or download {DOWNLOAD} "
        f"and set $GODOT to it. {' '.join(refused)}"
    )


def _unpack(package: Path, prefix: Path) -> None:
    """Unpack the programs and libraries of a package; documents, icons and the like stay out."""
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as unpacking:
        assert unpacking.stdout is not None
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive:
                for member in archive:
                    if (place := _place(member.name)) is None:
                        continue
                    try:
                        archive.extract(member.replace(name=place), prefix, filter="data")
                    except tarfile.FilterError:
                        # A link to somewhere on the system: none of our engine's files.
                        continue
            # The padding that a tar ends in has to be read before the writer can end.
            while unpacking.stdout.read(2**16):
                pass
        except tarfile.TarError as error:
            unpacking.kill()
            package.unlink()
            raise RunError(
                f"The package {package.name} is broken ({error}); run the same command again."
            ) from error
    if unpacking.returncode != 0:
        package.unlink()
        raise RunError(f"The package {package.name} is broken; run the same command again.")


def _place(name: str) -> str | None:
    parts = PurePosixPath(name).parts
    if parts[:1] == ("lib",):
        parts = ("usr", *parts)
    if parts[:2] == ("usr", "lib") or parts == ("usr", "bin", "godot"):
        return "/".join(parts)
    return None


def _check(program: Path, work: Path) -> None:
    """Start the engine and run a script in it."""
    try:
        engine = open_engine(program)
    except InputError as error:
        raise RunError(f"The engine unpacked does not run here: {error}") from error
    script = work / "probe.gd"
    script.write_text(_PROBE, encoding="utf-8")
    finished = run_engine(
        engine.command, ["--headless", "--script", str(script)], timeout_s=120, folder=work
    )
    if finished.code != 0 or "lanista 42" not in finished.output:
        raise RunError(
            f"The engine unpacked runs no script here (status {finished.code}); it printed last: "
            f"{finished.last_lines or 'nothing'}."
        )


def _working(target: Path) -> Engine | None:
    program = target / installed_program().name
    if not program.exists():
        return None
    try:
        return open_engine(program)
    except InputError:
        return None


def _debian_codename() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    return release.get("VERSION_CODENAME", "") if release.get("ID") == "debian" else ""


def _unfit(reason: str) -> InputError:
    return InputError(
        f"The engine cannot be installed here, as {reason}: download {DOWNLOAD}, and set $GODOT to "
        "its program."
    )


@contextmanager
def _alone(lock: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
