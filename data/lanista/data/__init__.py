"""Episodes, manifests, joins, splits and samplers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanista.data.episode import Episode, EpisodeKey, Fault
    from lanista.data.executor import Executor, SerialExecutor, WorkerFailure
    from lanista.data.rollout import Play
    from lanista.data.split import split_of
    from lanista.data.store import EpisodeStore

_HOMES = {
    "Episode": "episode",
    "EpisodeKey": "episode",
    "EpisodeStore": "store",
    "Executor": "executor",
    "Fault": "episode",
    "Play": "rollout",
    "SerialExecutor": "executor",
    "WorkerFailure": "executor",
    "split_of": "split",
}

__all__ = [
    "Episode",
    "EpisodeKey",
    "EpisodeStore",
    "Executor",
    "Fault",
    "Play",
    "SerialExecutor",
    "WorkerFailure",
    "split_of",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
