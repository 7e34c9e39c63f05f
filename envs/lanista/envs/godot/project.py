"""A Godot project as its files show it: its name, what runs first, which scripts it has."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.engine import Engine, run_engine
from lanista.envs.godot.textformat import Call, FormatError, Tag, Value, read_tags

_FILE = "project.godot"
_OVERRIDES = "override.cfg"
_CONFIG_VERSION = 5
_TICKS = 60
_ADDONS = "addons"
_SCENES = (".tscn", ".escn")
_CLASS_NAME = re.compile(r"^(?:@\w+(?:\([^\n]*?\))?\s+)*class_name\s+(\w+)", re.MULTILINE)
_EXTENDS = re.compile(
    r"^(?:@\w+(?:\([^\n]*?\))?\s+)*(?:class_name\s+\w+\s+)?extends\s+(\"[^\"\n]+\"|'[^'\n]+'|[\w.]+)",
    re.MULTILINE,
)
_PROTOCOL = ("StreamPeerTCP", "handshake", "env_info")
"""What every script that speaks the godot-rl protocol holds, whatever its version and name."""


@dataclass(frozen=True)
class SyncNode:
    """A node that speaks the godot-rl protocol.

    Attributes:
        scene: Its scene, relative to the project; empty for an autoload.
        node: Its path in the scene, or the autoload's name.
        script: Its script, relative to the project.
        control_mode: What the scene sets it to (the plugin's 0 human, 1 training, 2 ONNX), ``None``
            where it is left at the script's own default.
    """

    scene: str
    node: str
    script: str
    control_mode: int | None


@dataclass(frozen=True)
class Project:
    """A project for Godot 4. Paths in it are relative to it, with ``/``.

    Hidden folders, those with a ``.gdignore`` and projects inside the project are left out, as the
    engine leaves them out.

    Attributes:
        path: Its folder, absolute.
        name: Name of the game; the folder's where it has none.
        config_version: Version of the project file's format: 5.
        main_scene: What runs first, empty if nothing is named.
        features: What the project says it needs: ``4.4``, ``C#``, ``Forward Plus``.
        autoloads: Name of each node that every scene finds loaded, to its script or scene.
        physics_ticks: Physics ticks in a second of the game.
        scripts: GDScript files outside ``addons/``.
        addon_scripts: GDScript files under ``addons/``.
        scenes: Scenes saved as text, addons' too.
        embedded_scenes: Those of them, and resources, that hold GDScript inside.
        binary_scenes: Scenes saved in binary, which are not looked into.
        csharp_scripts: C# files outside ``addons/``.
    """

    path: Path
    name: str
    config_version: int
    main_scene: str
    features: tuple[str, ...]
    autoloads: Mapping[str, str]
    physics_ticks: int
    scripts: tuple[str, ...]
    addon_scripts: tuple[str, ...]
    scenes: tuple[str, ...]
    embedded_scenes: tuple[str, ...]
    binary_scenes: tuple[str, ...]
    csharp_scripts: tuple[str, ...]

    @classmethod
    def open(cls, path: Path | str) -> "Project":
        """Read a project from its folder, or from its ``project.godot``.

        Raises:
            InputError: If it is no project, is one for another Godot, holds C# alone, or its
                project file cannot be read.
        """
        folder = find_project_folder(Path(path))
        settings = _read_settings(folder)
        version = _config_version(settings, folder)
        files = list(project_files(folder))
        scripts = [file for file in files if file.endswith(".gd")]
        own = tuple(file for file in scripts if not _in_addons(file))
        scenes = tuple(file for file in files if file.endswith(_SCENES))
        texts = [*scenes, *(file for file in files if file.endswith(".tres"))]
        embedded = tuple(file for file in texts if _holds_script(folder / file))
        csharp = tuple(file for file in files if file.endswith(".cs") and not _in_addons(file))
        if csharp and not own and not embedded:
            raise InputError(
                f"The project {folder} is written in C# alone, and Lanista records the calls of "
                f"GDScript; {csharp[0]} is one of its scripts."
            )
        ticks = settings.get("physics", "common/physics_ticks_per_second", _TICKS)
        if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 1:
            raise InputError(f"The project {folder} sets {ticks!r} physics ticks a second.")
        uids = _Uids(folder, files)
        autoloads = {
            name: uids.relative(value.removeprefix("*"))
            for name in settings.names("autoload")
            if isinstance(value := settings.get("autoload", name), str)
        }
        return cls(
            path=folder,
            name=_text(settings.get("application", "config/name")) or folder.name,
            config_version=version,
            main_scene=uids.relative(_text(settings.get("application", "run/main_scene"))),
            features=_strings(settings.get("application", "config/features")),
            autoloads=autoloads,
            physics_ticks=ticks,
            scripts=own,
            addon_scripts=tuple(file for file in scripts if _in_addons(file)),
            scenes=scenes,
            embedded_scenes=embedded,
            binary_scenes=tuple(file for file in files if file.endswith(".scn")),
            csharp_scripts=csharp,
        )

    @cached_property
    def sync_nodes(self) -> tuple[SyncNode, ...]:
        """Nodes whose script speaks the godot-rl protocol, itself or by what it extends."""
        speaking = _protocol_scripts(self.path, (*self.scripts, *self.addon_scripts))
        found = [
            SyncNode("", name, script, None)
            for name, script in self.autoloads.items()
            if script in speaking
        ]
        for scene in self.scenes:
            found.extend(_sync_nodes_of(self.path, scene, speaking))
        return tuple(found)

    def require_sync(self) -> None:
        """Refuse a project that nothing outside can play.

        Raises:
            InputError: If no scene or autoload holds a godot-rl Sync node.
        """
        # Nobody looks into binary scenes, so that one of them may hold it.
        if not self.sync_nodes and not self.binary_scenes:
            raise InputError(
                f"The project {self.path} has no Sync node: add the godot-rl plugin's Sync node "
                "to the scene that agents play, and an AIController to each agent."
            )


def find_project_folder(path: Path) -> Path:
    """Return the absolute folder of the project that a path names.

    Raises:
        InputError: If it names neither a folder with a ``project.godot`` nor such a file.
    """
    path = path.expanduser()
    folder = path.parent if path.name == _FILE else path
    if not folder.exists():
        raise InputError(f"The project {path} does not exist.")
    if not folder.is_dir():
        raise InputError(f"{path} is no Godot project; name the folder that holds {_FILE}.")
    if not (folder / _FILE).is_file():
        raise InputError(f"{folder} is no Godot project: it holds no {_FILE}.")
    return folder.resolve()


def project_files(folder: Path, *, everything: bool = False) -> Iterator[str]:
    """List a project's files in sorted order, relative to it, with ``/``.

    Args:
        folder: The project.
        everything: Also what ``.gdignore`` hides and projects inside the project: scripts can load
            files from there by their path. Hidden files and folders are left out in any case.
    """
    seen = {_identity(folder)}
    pending = [(folder, "")]
    found: list[str] = []
    while pending:
        current, prefix = pending.pop()
        try:
            entries = list(os.scandir(current))
        except OSError as error:
            raise InputError(f"The folder {current} cannot be read: {error.strerror}.") from error
        names = {entry.name for entry in entries}
        if not everything and (".gdignore" in names or (prefix and _FILE in names)):
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                # A link to a folder above would be followed for ever.
                identity = _identity(Path(entry.path))
                if identity not in seen:
                    seen.add(identity)
                    pending.append((Path(entry.path), f"{prefix}{entry.name}/"))
            elif entry.is_file():
                found.append(prefix + entry.name)
    yield from sorted(found)


def project_sha256(path: Path | str) -> str:
    """Hash the names and contents of a project's files.

    What the engine makes beside them when it imports a project (``.godot/``, ``*.uid``) is left
    out, so that the hash stays the same when a person opens it in the editor.

    Raises:
        InputError: If it is no project or a file cannot be read.
    """
    folder = find_project_folder(Path(path))
    total = hashlib.sha256()
    for name in project_files(folder, everything=True):
        if name.endswith(".uid"):
            continue
        try:
            with (folder / name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise InputError(f"{folder / name} cannot be read: {error.strerror}.") from error
        total.update(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest() + content)
    return total.hexdigest()


def import_project(engine: Engine, path: Path | str, *, timeout_s: float = 600.0) -> str:
    """Let the engine import a project's assets and register its classes; it writes into it.

    A project with a ``class_name`` runs only after that.

    Returns:
        What the engine printed.

    Raises:
        RunError: If it fails, crashes or does not end in time; the text ends in its last lines.
    """
    folder = find_project_folder(Path(path))
    finished = run_engine(
        engine.command,
        ["--headless", "--path", str(folder), "--import"],
        timeout_s=timeout_s,
    )
    if finished.code != 0 or not (folder / ".godot").is_dir():
        raise RunError(
            f"Godot {engine.version} cannot import the project {folder} (status {finished.code}); "
            f"it printed last: {finished.last_lines or 'nothing'}."
        )
    return finished.output


class _Settings:
    """Project settings; those of ``override.cfg`` come first, as for the engine."""

    def __init__(self, files: list[tuple[Path, list[Tag]]]) -> None:
        self._files = files

    def get(self, section: str, name: str, default: Value = None) -> Value:
        for file, tags in self._files:
            for tag in reversed(tags):
                if tag.text.strip() == section and name in tag.assignments:
                    try:
                        return tag.value(name)
                    except FormatError as error:
                        raise _broken(file, error) from error
        return default

    def names(self, section: str) -> list[str]:
        found = {
            name: None
            for _, tags in reversed(self._files)
            for tag in tags
            if tag.text.strip() == section
            for name in tag.assignments
        }
        return list(found)


def _read_settings(folder: Path) -> _Settings:
    files = []
    for name in (_OVERRIDES, _FILE):
        file = folder / name
        if name == _OVERRIDES and not file.is_file():
            continue
        try:
            files.append((file, read_tags(file.read_bytes().decode("utf-8"))))
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{file} is broken: byte {error.start} is no UTF-8; restore it from a copy."
            ) from error
        except FormatError as error:
            raise _broken(file, error) from error
    return _Settings(files)


def _broken(file: Path, error: FormatError) -> InputError:
    return InputError(f"{file} is broken in {error}; open it in the editor or restore it.")


def _config_version(settings: _Settings, folder: Path) -> int:
    version = settings.get("", "config_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(
            f"{folder / _FILE} names no config_version, so that it is broken or made for Godot 2; "
            "Godot 4 projects hold config_version=5."
        )
    if version < _CONFIG_VERSION:
        raise InputError(
            f"The project {folder} is made for Godot 3 (config_version={version}); convert it with "
            "Godot 4's project manager first."
        )
    if version > _CONFIG_VERSION:
        raise InputError(
            f"The project {folder} is made for a Godot newer than 4 (config_version={version})."
        )
    return version


class _Uids:
    """Files by the ``uid://`` that settings and scenes may name them by."""

    def __init__(self, folder: Path, files: list[str]) -> None:
        self._folder = folder
        self._files = files

    def relative(self, reference: str) -> str:
        """Return the file that a ``res://`` or ``uid://`` names; as it stands if it is unknown."""
        if reference.startswith("uid://"):
            return self._known.get(reference, reference)
        return reference.removeprefix("res://")

    @cached_property
    def _known(self) -> dict[str, str]:
        known = {}
        for file in self._files:
            path = self._folder / file
            if file.endswith(".uid"):
                known[_read(path).strip()] = file.removesuffix(".uid")
            elif file.endswith((*_SCENES, ".tres")):
                head = re.search(r'^\[gd_\w+[^\n]*?\buid="(uid://\w+)"', _read(path, 4096))
                if head:
                    known[head[1]] = file
        return known


def _protocol_scripts(folder: Path, scripts: tuple[str, ...]) -> frozenset[str]:
    classes: dict[str, str] = {}
    parents: dict[str, str] = {}
    speaking = set()
    for script in scripts:
        text = _read(folder / script)
        if all(word in text for word in _PROTOCOL):
            speaking.add(script)
        if declared := _CLASS_NAME.search(text):
            classes[declared[1]] = script
        if extended := _EXTENDS.search(text):
            parents[script] = extended[1]
    grew = True
    while grew:
        grew = False
        for script, parent in parents.items():
            if script in speaking:
                continue
            if _extended_file(script, parent, classes) in speaking:
                speaking.add(script)
                grew = True
    return frozenset(speaking)


def _extended_file(script: str, parent: str, classes: Mapping[str, str]) -> str | None:
    if parent[0] not in "\"'":
        return classes.get(parent)
    named = parent[1:-1]
    if named.startswith("res://"):
        return named.removeprefix("res://")
    return os.path.normpath(Path(script).parent / named).replace(os.sep, "/")


def _sync_nodes_of(folder: Path, scene: str, speaking: frozenset[str]) -> Iterator[SyncNode]:
    text = _read(folder / scene)
    if not any(Path(script).name in text for script in speaking):
        return
    try:
        tags = read_tags(text)
        resources = {
            tag.attributes.get("id"): _text(tag.attributes.get("path")).removeprefix("res://")
            for tag in tags
            if tag.name == "ext_resource"
        }
        for tag in tags:
            if tag.name != "node":
                continue
            script = tag.value("script")
            if not isinstance(script, Call) or script.name != "ExtResource":
                continue
            named = resources.get(script.arguments[0] if script.arguments else None, "")
            if named in speaking:
                mode = tag.value("control_mode")
                yield SyncNode(scene, _node_path(tag), named, mode if type(mode) is int else None)
    except FormatError:
        # The engine cannot load this scene either; the rest of the project may well play.
        return


def _node_path(tag: Tag) -> str:
    name, parent = _text(tag.attributes.get("name")), _text(tag.attributes.get("parent"))
    if not parent:
        return "."
    return name if parent == "." else f"{parent}/{name}"


def _holds_script(path: Path) -> bool:
    return bool(re.search(r'^\[sub_resource[^\n]*type="GDScript"', _read(path), re.MULTILINE))


def _in_addons(file: str) -> bool:
    return file.split("/", 1)[0] == _ADDONS


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: Value) -> tuple[str, ...]:
    items = value.arguments if isinstance(value, Call) else value if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str))


def _read(path: Path, size: int = -1) -> str:
    try:
        with path.open("rb") as file:
            return file.read(size).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _identity(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_dev, state.st_ino
