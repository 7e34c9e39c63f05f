"""The multi-level robot, traced, in an engine that all tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine
from lanista.envs.godot.robot import PROJECT
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.gdscript.project import instrument_project


@pytest.fixture(scope="session")
def robot_copy(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Catalogue]:
    """An instrumented copy of the robot's project, and its catalogue."""
    folder = tmp_path_factory.mktemp("robot") / "copy"
    return folder, instrument_project(PROJECT, folder, engine=engine).catalogue


@pytest.fixture(scope="session")
def robot(engine: Engine, robot_copy: tuple[Path, Catalogue]) -> Iterator[GodotClient]:
    """The game with one agent, running."""
    with GodotClient.start(engine, robot_copy[0], seed=1, script_errors="raise") as client:
        yield client
