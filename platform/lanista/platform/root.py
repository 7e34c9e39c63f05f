"""The one root that holds what people make: datasets, runs and the tracking database."""

import os
from dataclasses import dataclass
from pathlib import Path

from lanista.envs.errors import InputError


@dataclass(frozen=True)
class Root:
    """A folder (or shared storage) and the places in it.

    Attributes:
        path: Absolute path.
    """

    path: Path

    @classmethod
    def find(cls, given: Path | None = None) -> "Root":
        """Take the folder given, ``LANISTA_ROOT``, or the working directory.

        Raises:
            InputError: If the folder cannot be made or written to.
        """
        path = Path(given or os.environ.get("LANISTA_ROOT") or Path.cwd()).expanduser().resolve()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"The root {path} cannot be made: {error.strerror}.") from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise InputError(f"The root {path} cannot be written to; choose another with --root.")
        return cls(path)

    def output(self, path: Path) -> Path:
        """Return where to write what a person named: relative paths are under the root."""
        return self.path / path.expanduser()

    def input(self, path: Path) -> Path:
        """Return what a person named: as it stands if it is there, else under the root."""
        path = path.expanduser()
        return path if path.exists() else self.path / path

    @property
    def datasets(self) -> Path:
        """Folder of episode stores."""
        return self.path / "datasets"

    @property
    def runs(self) -> Path:
        """Folder of sweeps, leagues and reports."""
        return self.path / "runs"

    @property
    def tracking_uri(self) -> str:
        """Where MLflow keeps its runs: ``MLFLOW_TRACKING_URI``, else SQLite under the root."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.runs / 'mlflow.db'}"
