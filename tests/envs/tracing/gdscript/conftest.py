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
