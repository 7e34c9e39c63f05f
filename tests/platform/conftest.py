"""One Ray for all tests of the platform, and one migrated MLflow database to copy."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanista.platform.root import Root

# Tiny games that workers and started programs can import by name.
TESTS = Path(__file__).parents[1]
GAMES = [str(TESTS / room / "games") for room in ("data", "evaluation")]
sys.path[:0] = [folder for folder in GAMES if folder not in sys.path]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*GAMES, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """A local Ray with two CPUs."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database: making one takes seconds, copying it none."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def root(tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A root with an empty tracking database."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("LANISTA_ROOT", raising=False)
    made = Root(tmp_path)
    made.runs.mkdir()
    shutil.copy(migrated_database, made.runs / "mlflow.db")
    return made
