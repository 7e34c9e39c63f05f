"""What has to be right on a machine, and what to do where it is not."""

import logging
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

from lanista.envs.actions import draw_action
from lanista.envs.errors import InputError, LanistaError
from lanista.envs.game import game_ids, load_game
from lanista.platform.root import Root
from lanista.platform.tracking_store import count_experiments, shown_uri

_PACKAGES = ("numpy", "torch", "gymnasium", "crafter", "numba", "pyarrow", "ray", "mlflow")
_FREE_GIB = 5
_INSTALL = "run `make setup`, or install requirements.lock into this environment"


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
        name: What was looked at.
        ok: Whether it will do.
        detail: What was found.
        fix: What to do where it will not, empty otherwise.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""


def run_checks(root: Path | None = None, *, start_ray: bool = True) -> list[Check]:
    """Look at Python, packages, disk, MLflow, the Godot engine, games and Ray, in this order.

    Args:
        root: Root to look at, as for every command.
        start_ray: Whether to start a small Ray, which takes about ten seconds.
    """
    looks: list[tuple[str, Callable[[], Check]]] = [("python", _python)]
    looks += [(name, partial(_package, name)) for name in _PACKAGES]
    looks += [("disk", lambda: _disk(root)), ("mlflow store", lambda: _mlflow(root))]
    looks.append(("godot engine", _engine))
    looks += [(f"game {name}", partial(_game, name)) for name in game_ids()]
    if start_ray:
        looks.append(("ray starts", _ray))
    return [_guarded(name, look) for name, look in looks]


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except LanistaError as error:
        return Check(name, False, str(error), _INSTALL)
    except Exception as error:  # noqa: BLE001 - whatever breaks a check is its finding
        return Check(name, False, f"{type(error).__name__}: {error}", _INSTALL)


def _python() -> Check:
    ok = (3, 12) <= sys.version_info[:2] <= (3, 13)
    fix = "" if ok else "use Python 3.12 or 3.13: `make setup` finds or fetches one"
    return Check("python", ok, f"{platform.python_version()} at {sys.executable}", fix)


def _package(name: str) -> Check:
    try:
        return Check(f"package {name}", True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(f"package {name}", False, "not installed", _INSTALL)


def _disk(root: Path | None) -> Check:
    place = Root.find(root).path
    free = shutil.disk_usage(place).free / 2**30
    ok = free >= _FREE_GIB
    fix = "" if ok else f"free {_FREE_GIB} GiB, or choose another folder with --root"
    return Check("disk", ok, f"{free:.1f} GiB free at {place}", fix)


def _mlflow(root: Path | None) -> Check:
    place = Root.find(root)
    try:
        count = count_experiments(place)
    except InputError as error:
        fix = "look at MLFLOW_TRACKING_URI, or unset it to use SQLite under the root"
        return Check("mlflow store", False, str(error), fix)
    return Check("mlflow store", True, f"{shown_uri(place.tracking_uri)}, {count} experiments")


def _engine() -> Check:
    from lanista.envs.godot.engine import DOWNLOAD, find_engine

    try:
        engine = find_engine()
    except InputError as error:
        fix = f"run `lanista godot install`, or download {DOWNLOAD} and set $GODOT to it"
        return Check("godot engine", False, str(error), fix)
    return Check("godot engine", True, f"{engine.version} at {' '.join(engine.command)}")


def _game(name: str) -> Check:
    game = load_game(name)
    env = game.make("class", None)
    try:
        env.reset(options={"world": 0})
        *_, info = env.step(draw_action(env.action_space, np.random.default_rng(0)))
    finally:
        env.close()
    return Check(f"game {name}", True, f"plays; {len(info['call_trace'])} calls in its first step")


def _ray() -> Check:
    import ray

    if not ray.is_initialized():
        ray.init(
            num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
    found = ray.cluster_resources()
    ray.shutdown()
    return Check("ray starts", True, f"ray {ray.__version__}, {found.get('CPU', 0):.0f} CPU")
