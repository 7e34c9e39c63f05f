"""Putting the bridge into a copy of a project."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.errors import InputError
from lanista.envs.godot.bridge_files import bridge_sources, install_bridge

ENTRY = 'LanistaBridge="*res://__lanista__/bridge.gd"'


def make(folder: Path, settings: bytes) -> Path:
    folder.mkdir()
    (folder / "project.godot").write_bytes(settings)
    return folder


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_autoload_comes_first(tmp_path: Path, newline: bytes) -> None:
    text = newline.join(
        [
            b"config_version=5",
            b"",
            b"[autoload]",
            b"",
            b'Mine="*res://mine.gd"',
            b"",
            b"[input]",
            b"",
        ]
    )
    copy = make(tmp_path / "copy", text)
    install_bridge(copy)
    once = (copy / "project.godot").read_bytes()
    lines = once.decode().split(newline.decode())
    section = lines[lines.index("[autoload]") : lines.index("[input]")]
    entries = [line for line in section if "=" in line]
    assert entries == [ENTRY, 'Mine="*res://mine.gd"']
    assert once.count(b"\n") == once.count(newline)
    install_bridge(copy)
    assert (copy / "project.godot").read_bytes() == once
    assert {path.name for path in (copy / "__lanista__").iterdir()} == set(bridge_sources())
    assert "bridge.gd" in bridge_sources()


def test_a_project_without_autoloads_gets_the_section(tmp_path: Path) -> None:
    copy = make(tmp_path / "copy", b'config_version=5\n\n[application]\n\nconfig/name="x"')
    install_bridge(copy)
    text = (copy / "project.godot").read_text()
    assert f"\n\n[autoload]\n\n{ENTRY}\n" in text
    assert text.endswith("\n[debug]\n\ngdscript/warnings/enable=false\n")


def test_warnings_cannot_become_errors_in_the_copy(tmp_path: Path) -> None:
    copy = make(
        tmp_path / "copy",
        b"config_version=5\n\n[debug]\n\ngdscript/warnings/enable=true\n"
        b"gdscript/warnings/unsafe_cast=2\n\n[other]\n\ngdscript/warnings/enable=1\n",
    )
    install_bridge(copy)
    text = (copy / "project.godot").read_text()
    assert "gdscript/warnings/enable=false\ngdscript/warnings/unsafe_cast=2" in text
    assert "gdscript/warnings/enable=true" not in text
    assert "[other]\n\ngdscript/warnings/enable=1" in text


def test_what_is_no_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no project\.godot"):
        install_bridge(tmp_path)
    with pytest.raises(InputError, match="UTF-8"):
        install_bridge(make(tmp_path / "latin", b"config_version=5\nconfig/name=\xe9"))


def test_a_copy_that_a_person_starts_is_left_alone(games: Any) -> None:
    project = games.project(sync=None)
    (project / "main.gd").write_text(
        "extends Node2D\nvar episodes := 0\nfunc _ready():\n"
        '\tprint("singleton ", Engine.has_singleton("Lanista"))\n\tget_tree().quit()\n',
        encoding="utf-8",
    )
    done = subprocess.run(
        [*games.engine.command, "--headless", "--path", str(project)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "singleton false" in done.stdout
    assert "ERROR" not in done.stdout + done.stderr


def test_every_script_of_the_bridge_loads(games: Any) -> None:
    project = games.project(sync=None)
    names = sorted(bridge_sources())
    loads = "".join(
        f'\tprint("{name} ", load("res://__lanista__/{name}") != null)\n' for name in names
    )
    (project / "main.gd").write_text(
        f"extends Node2D\nvar episodes := 0\nfunc _ready():\n{loads}\tget_tree().quit()\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [*games.engine.command, "--headless", "--path", str(project)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [f"{name} true" for name in names] == [
        line for line in done.stdout.splitlines() if line.endswith((" true", " false"))
    ]
