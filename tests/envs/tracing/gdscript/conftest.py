"""The engine, for tests that play scripts in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lanista.envs.godot import engine


@pytest.fixture(scope="session")
def run_engine() -> Callable[..., str]:
    """Run the engine in a project with more arguments; return what it prints."""
    command = engine.find_engine().command

    def run(project: Path, *arguments: str) -> str:
        whole = ["--headless", "--path", str(project), *arguments]
        return engine.run_engine(command, whole, timeout_s=120).output

    return run


@pytest.fixture(scope="session")
def found_engine() -> engine.Engine:
    """The engine found here; where there is none the tests fail with what to do."""
    return engine.find_engine()


@pytest.fixture(scope="session")
def write_project() -> Callable[[Path, dict[str, str]], Path]:
    """Write a project's files, a ``project.godot`` and a main scene that runs ``main.gd``."""

    def write(folder: Path, files: dict[str, str]) -> Path:
        scene = (
            '[gd_scene load_steps=2 format=3]\n\n[ext_resource type="Script" path="res://main.gd" '
            'id="1"]\n\n[node name="Main" type="Node"]\nscript = ExtResource("1")\n'
        )
        settings = (
            'config_version=5\n\n[application]\n\nconfig/name="made for a test"\n'
            'run/main_scene="res://main.tscn"\n'
        )
        whole = {"project.godot": settings, "main.tscn": scene, **files}
        for name, text in whole.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return write
