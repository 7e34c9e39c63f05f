"""The scripts of a Godot project, its embedded ones too, and how their classes derive."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from lanista.envs.errors import InputError
from lanista.envs.godot.project import Project
from lanista.envs.tracing.gdscript.parsing import ParsedScript, parse_script
from lanista.envs.tracing.gdscript.scenes import embedded_scripts, scene_uses_threads

ClassKey = tuple[str, tuple[str, ...]]
"""A script's :attr:`Script.key` and the inner classes down to the one meant."""

_PRELOADED = re.compile(
    rb"""(?m)^[ \t]*const[ \t]+(\w+)[^\n=]*=[ \t]*(?:pre)?load\([ \t]*["']([^"'\n]+)["'][ \t]*\)"""
)
# Classes whose script functions the engine may call from a thread of its own.
_THREADED_BASES = frozenset(
    {
        "AudioEffectInstance",
        "AudioStreamPlayback",
        "AudioStreamPlaybackResampled",
        "CompositorEffect",
        "ResourceFormatLoader",
        "ResourceFormatSaver",
    }
)
_THREADED_SETTINGS = re.compile(
    r"""(?mx)^(?: [23]d/run_on_separate_thread=true
                | threads/thread_model=2
                | driver/threads/thread_model=2 )"""
)
_THREADED_TEXT = re.compile(
    rb"\b(?:Thread|WorkerThreadPool|(?:set_)?process_thread_group|load_threaded_request)\b"
)


@dataclass(frozen=True)
class Script:
    """One GDScript source of a project.

    Attributes:
        file: The file that holds it, relative to the project.
        identifier: Of an embedded one: its id in that file; else empty.
        source: Its text as read.
        parsed: What it declares.
    """

    file: str
    identifier: str
    source: bytes
    parsed: ParsedScript

    @property
    def key(self) -> str:
        """How the engine names it after ``res://``."""
        return f"{self.file}::{self.identifier}" if self.identifier else self.file

    @property
    def module(self) -> str:
        """Its name in a catalogue: the path with dots, and an embedded one's id after it."""
        if not self.file.endswith(".gd"):
            return ".".join(filter(None, (self.file.replace("/", "."), self.identifier)))
        return self.file.removesuffix(".gd").replace("/", ".")

    @cached_property
    def owner(self) -> str:
        """Name of its own class: the global one, else one made of the file's name."""
        if self.parsed.class_name:
            return self.parsed.class_name
        words = re.split(r"[^\w]+|_+", PurePosixPath(self.file).name.partition(".")[0])
        name = "".join(word[:1].upper() + word[1:] for word in words)
        return name or "Script"

    def class_name(self, owners: tuple[str, ...]) -> str:
        """Return the name of a class of it, with those around it."""
        return ".".join((self.owner, *owners))


@dataclass(frozen=True)
class Inventory:
    """All scripts of a project that the engine registers.

    Attributes:
        project: The project.
        scripts: In the order of their files; those under ``addons`` too.
    """

    project: Project
    scripts: tuple[Script, ...]

    @classmethod
    def read(cls, project: Project) -> "Inventory":
        """Read every script of a project, without writing or running anything.

        Raises:
            InputError: If a file cannot be read.
        """
        files = sorted({*project.scripts, *project.addon_scripts, *project.embedded_scenes})
        return cls(project, tuple(item for file in files for item in _scripts(project.path, file)))

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """What may call script code from another thread, each with its file; sorted.

        Extensions and C# are taken to do so where they are there, as nobody looks into them.
        """
        found = {
            f"{script.file}: {name}" for script in self.scripts for name in _thread_names(script)
        }
        folder = self.project.path
        for file in self.project.scenes:
            if scene_uses_threads(_read(folder / file)):
                found.add(f"{file}: process_thread_group")
        for file in self.project.binary_scenes:
            if b"process_thread_group" in _read(folder / file):
                found.add(f"{file}: process_thread_group")
        for file in self.project.csharp_scripts:
            if re.search(rb"\b(?:Thread|Task|Parallel)\b", _read(folder / file)):
                found.add(f"{file}: C# threads")
        settings = _read(folder / "project.godot").decode("utf-8", "replace")
        found |= {f"project.godot: {text}" for text in _THREADED_SETTINGS.findall(settings)}
        extensions = folder.rglob("*.gdextension")
        found |= {f"{path.relative_to(folder).as_posix()}: an extension" for path in extensions}
        return tuple(sorted(found))

    @cached_property
    def classes(self) -> dict[ClassKey, Script]:
        """Every class of every script that could be read."""
        return {
            (script.key, item.owners): script
            for script in self.scripts
            if not script.parsed.problems
            for item in script.parsed.classes
        }

    @cached_property
    def bases(self) -> dict[ClassKey, ClassKey]:
        """The class that each one extends, where that is a script's too."""
        found: dict[ClassKey, ClassKey] = {}
        for script in self.scripts:
            for item in script.parsed.classes:
                base = self._resolve(script, item.owners, item.extends)
                if base is not None and base != (script.key, item.owners):
                    found[script.key, item.owners] = base
        return found

    def ancestors(self, key: ClassKey) -> Iterator[ClassKey]:
        """Yield the classes that one derives from, the nearest first."""
        seen = {key}
        current = self.bases.get(key)
        while current is not None and current not in seen:
            yield current
            seen.add(current)
            current = self.bases.get(current)

    @cached_property
    def _by_class_name(self) -> dict[str, Script]:
        return {item.parsed.class_name: item for item in self.scripts if item.parsed.class_name}

    @cached_property
    def _by_file(self) -> dict[str, Script]:
        return {item.key: item for item in self.scripts}

    def _resolve(self, script: Script, owners: tuple[str, ...], extends: str) -> ClassKey | None:
        if not extends:
            return None
        quoted = re.match(r"""r?(["'])(.*?)\1(?:\.(.+))?$""", extends)
        if quoted:
            base = self._file(script, quoted[2])
            return self._inside(base, (), tuple((quoted[3] or "").split(".")))
        names = tuple(extends.split("."))
        # A name is looked for in the classes around, from the innermost, before the global ones.
        for depth in range(max(len(owners) - 1, 0), -1, -1):
            found = self._inside(script, owners[:depth], names)
            if found is not None and found != (script.key, owners):
                return found
        aliases = dict(_PRELOADED.findall(script.source))
        path = aliases.get(names[0].encode())
        if path is not None:
            return self._inside(self._file(script, path.decode("utf-8", "replace")), (), names[1:])
        return self._inside(self._by_class_name.get(names[0]), (), names[1:])

    def _inside(
        self, script: Script | None, owners: tuple[str, ...], names: tuple[str, ...]
    ) -> ClassKey | None:
        if script is None:
            return None
        key = (script.key, (*owners, *(name for name in names if name)))
        return key if key in self.classes else None

    def _file(self, script: Script, path: str) -> Script | None:
        if path.startswith("res://"):
            return self._by_file.get(path.removeprefix("res://"))
        parts: list[str] = []
        for part in (*PurePosixPath(script.file).parent.parts, *PurePosixPath(path).parts):
            if part == ".." and parts:
                parts.pop()
            elif part != ".":
                parts.append(part)
        return self._by_file.get("/".join(parts))


def _scripts(folder: Path, file: str) -> Iterator[Script]:
    source = _read(folder / file)
    if file.endswith(".gd"):
        yield Script(file, "", source, parse_script(source))
        return
    for item in embedded_scripts(source):
        yield Script(file, item.identifier, item.source, parse_script(item.source))


def _thread_names(script: Script) -> set[str]:
    if script.parsed.problems:
        return {name.decode() for name in _THREADED_TEXT.findall(script.source)}
    bases = {item.extends for item in script.parsed.classes}
    return {*script.parsed.threads, *(bases & _THREADED_BASES)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
