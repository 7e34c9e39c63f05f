"""The engine that the tests run."""

import pytest

from lanista.envs.godot.engine import Engine, find_engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine found here; where there is none the tests fail with what to do."""
    return find_engine()
