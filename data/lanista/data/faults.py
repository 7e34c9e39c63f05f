"""Turning what a game raised into a fault that reads the same on every machine."""

import re
import sys
import traceback
from pathlib import Path
from typing import Any

from lanista.data.episode import Fault
from lanista.envs.tracing.catalogue import Catalogue

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_FILE_LINE = re.compile(r'File "([^"]+)"')


def fault_of(
    error: BaseException, catalogue: Catalogue | None, *, kind: str = "exception"
) -> Fault:
    """Describe an exception as a finding.

    Addresses of objects are blotted out and paths cut to what stands below the import path, so
    that one fault has one description whichever process and folder it happened in.

    Args:
        error: What was raised.
        catalogue: The game's functions, which say what its own files are; ``None`` if unknown.
        kind: ``exception`` (raised by the game) or ``player`` (raised by who played it). What a
            game outside this process did wrong says itself which kind it is, and where.
    """
    return Fault(
        kind=getattr(error, "fault_kind", kind),
        exception=type(error).__name__,
        message=_blot(str(error)),
        where=getattr(error, "fault_place", None) or _where(error, catalogue),
        traceback=_blot(_traceback(error)),
    )


def _traceback(error: BaseException) -> str:
    output = getattr(error, "last_output", None)
    if output is not None:
        # A game outside this process: what it printed tells more than the calls here.
        return f"{type(error).__name__}: {error}\n\nThe game printed last:\n{output}"
    inner = error.__traceback__ and error.__traceback__.tb_next
    text = "".join(traceback.format_exception(type(error), error, inner or error.__traceback__))
    return _FILE_LINE.sub(lambda found: f'File "{_short(found[1])}"', text)


def _blot(text: str) -> str:
    return _ADDRESS.sub("0x…", text)


def _short(file: str) -> str:
    """Cut a file's path to what stands below its import root."""
    path = Path(file)
    roots = [Path(entry) for entry in sys.path if entry and path.is_relative_to(entry)]
    deepest = max(roots, key=lambda root: len(root.parts), default=None)
    return path.relative_to(deepest).as_posix() if deepest else path.name


def _where(error: BaseException, catalogue: Catalogue | None) -> str:
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_qualname)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if not frames:
        return ""
    if catalogue is not None:
        places = _game_places(catalogue)
        for file, line, name in reversed(frames):
            for root, inside in places:
                path = Path(file)
                if path == inside or path.is_relative_to(inside):
                    return f"{path.relative_to(root).as_posix()}:{line}:{name}"
    file, line, name = frames[-1]
    return f"{_short(file)}:{line}:{name}"


def _game_places(catalogue: Catalogue) -> list[tuple[Path, Path]]:
    """Return the game's packages and modules on this machine: (import root, package or file)."""
    places: dict[tuple[Path, Path], None] = {}
    for function in catalogue.functions:
        module: Any = sys.modules.get(function.name.partition(":")[0])
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(function.file):
            continue
        root = Path(file[: -len(function.file)])
        places[root, root / Path(function.file).parts[0]] = None
    return list(places)
