"""The engine, for tests that play scripts in it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lanista.envs.godot.engine import find_engine

RunEngine = Callable[..., str]
"""Runs the engine in a project with more arguments; returns what it prints."""


@pytest.fixture(scope="session")
def run_engine(tmp_path_factory: pytest.TempPathFactory) -> RunEngine:
    command = find_engine().command
    home = tmp_path_factory.mktemp("home")

    def run(project: Path, *arguments: str) -> str:
        environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home)}
        done = subprocess.run(
            [*command, "--headless", "--path", str(project), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    return run
