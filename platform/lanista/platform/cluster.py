"""A Ray cluster to run on: the one that ``RAY_ADDRESS`` names, or a local one of our own."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from lanista.envs.errors import InputError, RunError
from lanista.platform.signals import kept_handlers

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_OBJECT_STORE_BYTES = 1 << 30
_CONNECT_TIMEOUT_S = 5.0
_STARTS = 3


@contextmanager
def ray_session(*, cpus: int | None = None, dashboard: bool = False) -> Iterator[None]:
    """Connect to the cluster that ``RAY_ADDRESS`` names, or run a local one while the block runs.

    Where Ray is up in this process already it is used as it is and left running.

    Args:
        cpus: CPUs of a local cluster; those that this process may use by default.
        dashboard: Whether a local cluster has a dashboard.

    Raises:
        InputError: If no cluster answers at ``RAY_ADDRESS``.
        RunError: If a local one does not come up.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "")
    common: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": _runtime_env(),
    }
    if address and address != "local":
        _check_reachable(address)
        try:
            with kept_handlers():
                ray.init(address=address, **common)
        except (ConnectionError, RuntimeError, ValueError) as error:
            line = (
                str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            )
            raise InputError(f"The Ray cluster at {address} refuses: {line}") from error
    else:
        _start_local(
            address="local",
            num_cpus=cpus or available_cpus(),
            include_dashboard=dashboard,
            object_store_memory=_OBJECT_STORE_BYTES,
            **common,
        )
    try:
        yield
    finally:
        ray.shutdown()


def _start_local(**settings: Any) -> None:
    """Start a local cluster; Ray gives up after half a minute, which a busy machine may need."""
    import ray
    from tenacity import RetryError, Retrying, stop_after_attempt

    try:
        for attempt in Retrying(stop=stop_after_attempt(_STARTS)):
            with attempt:
                try:
                    with kept_handlers():
                        ray.init(**settings)
                except BaseException:
                    ray.shutdown()
                    raise
    except RetryError as error:
        cause = error.last_attempt.exception()
        line = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise RunError(
            f"Ray did not come up in {_STARTS} tries: {line} Close what keeps the machine busy, "
            "and run the same command again."
        ) from cause


def available_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_resources() -> str:
    """Say in a few words what the cluster has and what of it is free."""
    import ray

    found, free = ray.cluster_resources(), ray.available_resources()
    names = [name for name in ("CPU", "GPU") if name in found]
    shown = ", ".join(f"{free.get(name, 0):g} of {found[name]:g} {name} free" for name in names)
    return shown or "the cluster has no CPU"


def _check_reachable(address: str) -> None:
    """Answer within seconds where Ray itself would try for a minute."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise InputError(
            f"No Ray cluster answers at RAY_ADDRESS={address} ({error}); start one with "
            "`ray start --head`, or unset RAY_ADDRESS to run on this machine."
        ) from error


def _runtime_env() -> dict[str, Any]:
    """Let workers import ``lanista`` where it is run from its sources without being installed.

    Folders under the working directory are named relative to it, since a job's workers unpack
    their own copy of it.
    """
    try:
        metadata.distribution("lanista")
    except metadata.PackageNotFoundError:
        pass
    else:
        return {}
    import lanista.platform as room

    checkout = Path(room.__path__[0]).parents[2]
    roots = sorted(checkout.glob("*/lanista"))
    here = Path.cwd()
    entries = [
        str(root.parent.relative_to(here) if root.is_relative_to(here) else root.parent)
        for root in roots
    ]
    return {"env_vars": {"PYTHONPATH": os.pathsep.join(entries)}}
