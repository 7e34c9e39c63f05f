"""Where MLflow keeps its runs: whether it answers, and how it is named to people."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from lanista.envs.errors import InputError
from lanista.platform.root import Root

_CONNECT_TIMEOUT_S = 5.0


_DATABASES = {"sqlite", "postgresql", "mysql", "mssql"}


def count_experiments(root: Root) -> int:
    """Return how many experiments the tracking server or database has.

    Raises:
        InputError: If it cannot be used.
    """
    quiet()
    from mlflow import MlflowClient

    check_reachable(root)
    with answering(root):
        return len(MlflowClient(root.tracking_uri).search_experiments())


@contextmanager
def answering(root: Root) -> Iterator[None]:
    """Refuse in one line what MLflow raises."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"MLflow at {shown_uri(root.tracking_uri)} does not answer: {line}"
        ) from error


def quiet() -> None:
    """Keep MLflow's messages off standard output and its retries short."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "4")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
    import logging

    for name in ("alembic", "mlflow.store.db.utils", "mlflow.tracking"):
        logging.getLogger(name).setLevel(logging.WARNING)


def artifacts_place(root: Root, name: str) -> str | None:
    """Where a database without a server keeps artifacts; a server decides for itself."""
    if root.tracking_uri.startswith(("http://", "https://")):
        return None
    return (root.runs / "artifacts" / name).resolve().as_uri()


def check_reachable(root: Root) -> None:
    """Answer within seconds where MLflow itself would retry for minutes."""
    uri = root.tracking_uri
    if uri.partition(":")[0].partition("+")[0] in _DATABASES:
        _check_database(root, uri)
    if not uri.startswith(("http://", "https://")):
        return
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=_CONNECT_TIMEOUT_S):  # noqa: S310
            return
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404):
            return
        raise InputError(
            f"No MLflow server answers at {shown_uri(uri)} ({error}); start it, or unset "
            "MLFLOW_TRACKING_URI to keep runs in SQLite under the root."
        ) from error


def _check_database(root: Root, uri: str) -> None:
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    engine = None
    try:
        sqlite = make_url(uri).get_backend_name() == "sqlite"
        if sqlite:
            root.runs.mkdir(parents=True, exist_ok=True)
        engine = create_engine(uri)
        with engine.connect() as connection:
            if sqlite:
                # A file that can only be read opens all the same; the roll-back undoes this.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                connection.exec_driver_sql("CREATE TABLE lanista_probe (id INTEGER)")
            connection.rollback()
    except (SQLAlchemyError, ImportError, OSError) as error:
        line = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        if "locked" in line:
            return  # by a writer that is at it right now, which MLflow waits for
        raise InputError(
            f"The tracking database {shown_uri(uri)} cannot be used: {line}; mend or move it, "
            "or set MLFLOW_TRACKING_URI to another."
        ) from error
    finally:
        if engine is not None:
            engine.dispose()


def shown_uri(uri: str) -> str:
    """Leave a password out of what is printed."""
    scheme, separator, rest = uri.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not at:
        return uri
    return f"{scheme}{separator}{credentials.partition(':')[0]}@{host}"
