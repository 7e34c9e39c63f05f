"""Puts Lanista's bridge into a copy of a Godot project."""

import re
from importlib.resources import files
from pathlib import Path

from lanista.envs.errors import InputError

FOLDER = "__lanista__"
"""Folder in the copy (``res://__lanista__/``) that holds everything of Lanista."""

AUTOLOAD = "LanistaBridge"


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
    ``project.godot``. Without ``--port=`` on the command line the bridge does nothing. Warnings of
    GDScript are turned off in the copy: a project may make errors of them, in our scripts too.

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
    changed = _with_setting(_with_autoload(text), "debug", "gdscript/warnings/enable", "false")
    if changed != text:
        _replace(settings, changed.encode("utf-8"))


def _with_autoload(text: str) -> str:
    entry = f'{AUTOLOAD}="*res://{FOLDER}/bridge.gd"'
    if re.search(rf"^{AUTOLOAD}=", text, re.MULTILINE):
        return text
    # First in the list: autoloads are made in this order, and those after must find the seed set.
    return _with_first(text, "autoload", entry)


def _with_setting(text: str, section: str, key: str, value: str) -> str:
    """Set a setting of a project; what was set before goes."""
    heading = _heading(text, section)
    if heading is not None:
        following = re.compile(r"^\[", re.MULTILINE).search(text, heading.end())
        end = following.start() if following else len(text)
        line = re.compile(rf"^{re.escape(key)}[ \t]*=[^\r\n]*", re.MULTILINE)
        found = line.search(text, heading.end(), end)
        if found:
            return f"{text[: found.start()]}{key}={value}{text[found.end() :]}"
    return _with_first(text, section, f"{key}={value}")


def _with_first(text: str, section: str, entry: str) -> str:
    """Put a line first in a section, which is made where there is none."""
    newline = "\r\n" if "\r\n" in text else "\n"
    heading = _heading(text, section)
    if heading is None:
        return f"{text.rstrip()}{newline * 2}[{section}]{newline * 2}{entry}{newline}"
    return f"{text[: heading.end()]}{newline * 2}{entry}{text[heading.end() :]}"


def _heading(text: str, section: str) -> re.Match[str] | None:
    return re.search(rf"^\[{section}\][ \t]*(?=\r?$)", text, re.MULTILINE)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
