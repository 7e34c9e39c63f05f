"""Puts Lanista's bridge into a copy of a Godot project."""

import re
from importlib.resources import files
from pathlib import Path

from lanista.envs.errors import InputError

FOLDER = "__lanista__"
"""Folder in the copy (``res://__lanista__/``) that holds everything of Lanista."""

AUTOLOAD = "LanistaBridge"
_HEADING = re.compile(r"^\[autoload\][ \t]*(?=\r?$)", re.MULTILINE)


def bridge_sources() -> dict[str, bytes]:
    """Return the bridge's scripts by file name: part of what a copy depends on."""
    folder = files("lanista.envs.godot").joinpath("bridge")
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".gd")
    }


def install_bridge(copy: Path) -> None:
    """Put the bridge into a copy of a project; a second time changes nothing.

    The scripts go to ``res://__lanista__/`` and an autoload, the first of the list, into
    ``project.godot``. Without ``--port=`` on the command line the bridge does nothing.

    Args:
        copy: Folder of the copy; never the author's own project.

    Raises:
        InputError: If the folder holds no project.
    """
    settings = copy / "project.godot"
    try:
        text = settings.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{copy}: holds no project.godot, so it is no Godot project.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{settings}: is not UTF-8 text.") from error
    folder = copy / FOLDER
    folder.mkdir(exist_ok=True)
    for name, source in bridge_sources().items():
        _replace(folder / name, source)
    changed = _with_autoload(text)
    if changed != text:
        _replace(settings, changed.encode("utf-8"))


def _with_autoload(text: str) -> str:
    entry = f'{AUTOLOAD}="*res://{FOLDER}/bridge.gd"'
    if re.search(rf"^{AUTOLOAD}=", text, re.MULTILINE):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    heading = _HEADING.search(text)
    if heading is None:
        return f"{text.rstrip()}{newline * 2}[autoload]{newline * 2}{entry}{newline}"
    # First in the list: autoloads are made in this order, and those after must find the seed set.
    return f"{text[: heading.end()]}{newline * 2}{entry}{text[heading.end() :]}"


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
