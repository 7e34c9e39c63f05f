"""The data of an experiment: checked before any work, recorded where it is missing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanista.agents.experts import make_tester, tester_hash
from lanista.data.collect import collect
from lanista.data.goals import action_dependent
from lanista.data.store import EpisodeStore
from lanista.data.verify import FINDINGS
from lanista.envs.errors import RunError
from lanista.envs.game import load_game
from lanista.evaluation.findings import Finding, engine_of, save_findings
from lanista.platform.cli.output import progress, say
from lanista.platform.executor import RayExecutor
from lanista.platform.experiment import DataSource
from lanista.platform.root import Root
from lanista.platform.training import Data

STATES = 120
"""States in which every action is tried for the ``action_dependent`` goals, by default."""
_PLAYS = 12
_PLACE = ("kind", "exception", "where")


def check_source(source: DataSource, root: Root) -> None:
    """Refuse data that can neither be read nor be recorded, before anything is started for it.

    Raises:
        InputError: If there is no such store, game or tester.
    """
    recipe = source.collect
    if recipe is None:
        EpisodeStore.open(source.folder(root.path))
        return
    load_game(recipe.game)
    for tester in recipe.testers:
        tester_hash(recipe.game, tester.name, tester.parameters)


def record(source: DataSource, root: Root, workers: int | None) -> tuple[Data, dict[str, float]]:
    """Open the data, recording what is missing of it first; Ray must be up if it records.

    Returns:
        The data, and ``collect/`` metrics.

    Raises:
        InputError: If there is no such store, or the recipe makes no sense.
        RunError: If plays could not be recorded.
    """
    data = Data(source.folder(root.path), source.goals)
    recipe = source.collect
    if recipe is None:
        totals = data.store.manifest["totals"]
        _tell_sides(data.store)
        return data, {
            "collect/episodes": float(totals["episodes"]),
            "collect/steps": float(totals["steps"]),
        }
    began = time.monotonic()
    executor = RayExecutor(cluster_workers(workers), notify=say)
    with progress(recipe.episodes, "record") as advance:
        found = collect(
            data.folder,
            recipe,
            executor,
            make_tester=make_tester,
            tester_hash=tester_hash,
            on_episode=lambda _: advance(1),
        )
    if found.failures:
        first = found.failures[0]
        raise RunError(
            f"{len(found.failures)} plays could not be recorded, the first in world "
            f"{first['world']} ({first['kind']}: {first['detail']}); run again to try them again."
        )
    add_action_dependent(data.store, STATES)
    _tell_sides(data.store)
    return data, {
        "collect/episodes": float(found.episodes),
        "collect/steps": float(found.steps),
        "collect/restarted": float(found.restarted),
        "collect/findings": float(len(found.findings)),
        "collect/seconds": time.monotonic() - began,
    }


def _tell_sides(store: EpisodeStore) -> None:
    """Say what cannot be watched while agents train."""
    if not store.manifest["totals"]["split"]["validation"]:
        say(
            f"No play of {store.path} is on the validation side, so there is no validation loss to "
            "look at; more plays bring some."
        )


def cluster_workers(wanted: int | None) -> int:
    """Return how many actors to run: those wanted, or one for each CPU of the cluster."""
    import ray

    return wanted or max(1, int(ray.cluster_resources().get("CPU", 1)))


def add_action_dependent(store: EpisodeStore, states: int) -> None:
    """Find the ``action_dependent`` goals of a game that can be saved and restored, once.

    Args:
        store: Where they are saved; left alone if they are there for all that it holds.
        states: About how many recorded states to try every action in.

    Raises:
        InputError: If too few states are asked for, or the store has no plays.
        RunError: If the game breaks while actions are tried.
    """
    game = load_game(store.game_id)
    found = store.manifest["goals"].get("action_dependent")
    if not game.save_restore or not game.actions:
        return
    if found is not None and found["manifest_sha256"] == store.manifest_sha256:
        return
    plays = min(_PLAYS, states)
    with progress(min(plays, len(store)), "action-dependent goals") as advance:
        store.save_action_dependent(
            action_dependent(store, plays=plays, states=states, on_play=lambda: advance(1))
        )


def save_found(store: EpisodeStore, found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write what broke in a recording as files that ``lanista replay`` plays.

    Args:
        store: The recording.
        found: Its findings, see :func:`lanista.data.collect.findings`.

    Returns:
        The findings, each with ``replay``: the file of its shortest play in the store's folder
        ``findings``, or ``None`` where not the game but who played it broke.
    """
    game = load_game(store.game_id)
    engine = engine_of(game)
    shortest: dict[tuple[str, ...], tuple[int, str]] = {}
    for row in store.rows():
        if row["fault"] is not None:
            place = tuple(row["fault"][name] for name in _PLACE)
            known = shortest.get(place)
            if known is None or row["steps"] < known[0]:
                shortest[place] = row["steps"], row["episode_id"]
    told = []
    for item in found:
        _, episode_id = shortest[tuple(item[name] for name in _PLACE)]
        episode = store.read(episode_id, observations=False)
        finding = Finding.of(episode, store.catalogue, engine)
        files: list[Path] = []
        if finding is not None:
            whole = replace(finding, occurrences=int(item["count"]))
            files = save_findings([whole], store.path / FINDINGS)
        told.append({**item, "replay": str(files[0]) if files else None})
    return told
