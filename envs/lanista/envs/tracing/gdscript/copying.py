"""Copying a project: the original is only read, and the copy appears whole or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lanista.envs.errors import InputError
from lanista.envs.godot.bridge_files import FOLDER

MARK_FILE = f"{FOLDER}/copy.json"
"""File that says that a folder is a traced copy, and of what; relative to it."""

_LEFT_OUT = frozenset({".git", ".godot", ".hg", ".svn"})


def check_places(source: Path, out: Path) -> Path:
    """Return the absolute folder to make the copy in, if it may be made there.

    Raises:
        InputError: If the copy and the project overlap, something is there that is no earlier copy,
            or the project has a folder of the name that the copy needs.
    """
    if out.is_symlink():
        raise InputError(f"{out} is a link; name the folder itself for the copy.")
    target = Path(os.path.abspath(out.expanduser()))  # noqa: PTH100 - links stay as they are
    real, original = target.resolve(), source.resolve()
    if real == original or original in real.parents:
        raise InputError(f"The copy {out} lies inside the project {source}; name another folder.")
    if real in original.parents:
        raise InputError(f"The project {source} lies inside {out}; name another folder.")
    if (source / FOLDER).exists() or (source / FOLDER).is_symlink():
        what = (
            "is a traced copy already; name the project that it was made of"
            if read_mark(source) is not None
            else f"has a folder {FOLDER} of its own, which the copy needs; rename it"
        )
        raise InputError(f"The project {source} {what}.")
    if target.exists() and not target.is_dir():
        raise InputError(f"{out} is a file; name a folder for the copy.")
    if target.is_dir() and any(target.iterdir()) and read_mark(target) is None:
        raise InputError(f"The folder {out} is not empty and no earlier copy; name another one.")
    return target


def read_mark(copy: Path) -> dict[str, object] | None:
    """Return what a copy says about itself, ``None`` if it is none."""
    try:
        found = json.loads((copy / MARK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "key" in found else None


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Give a folder beside the target that takes its place when the block ends well.

    Raises:
        InputError: If no folder can be made there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"The copy {target} cannot be made: {error.strerror}.") from error
    try:
        yield temporary
        replaced = None
        if target.exists():
            replaced = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            target.rename(replaced)
        temporary.rename(target)
        if replaced is not None:
            shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def copy_files(source: Path, out: Path) -> None:
    """Copy a project's files into an empty folder, file modes kept.

    Version control and the engine's cache stay behind. What a link leads to is copied in its place,
    so that nothing written to the copy reaches the original; links that lead nowhere or to a folder
    around them are left out.

    Raises:
        InputError: If a file cannot be read.
        OSError: If the copy cannot be written.
    """
    _copy(source, out, frozenset())


def write_file(path: Path, content: bytes) -> None:
    """Give a file of the copy other content, also one that may not be written; its mode stays."""
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


def _copy(source: Path, out: Path, around: frozenset[tuple[int, int]]) -> None:
    state = source.stat()
    around |= {(state.st_dev, state.st_ino)}
    out.chmod(state.st_mode | 0o700)
    try:
        entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"The folder {source} cannot be read: {error.strerror}.") from error
    for entry in entries:
        if entry.name in _LEFT_OUT:
            continue
        target = out / entry.name
        if entry.is_dir():
            with suppress(FileNotFoundError):
                inner = Path(entry.path).stat()
                if (inner.st_dev, inner.st_ino) not in around:
                    target.mkdir()
                    _copy(Path(entry.path), target, around)
        elif entry.is_file():
            try:
                shutil.copy2(entry.path, target)
            except PermissionError as error:
                raise InputError(f"{entry.path} cannot be read: {error.strerror}.") from error
