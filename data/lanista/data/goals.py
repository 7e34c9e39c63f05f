"""Which functions are goals: rules that are applied to data, never lists typed in."""

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanista.envs.errors import InputError, LanistaError, RunError

if TYPE_CHECKING:
    from lanista.data.store import EpisodeStore


def recorded_minus_always(
    calls: Mapping[int, tuple[int, int]], whole_steps: int
) -> tuple[int, ...]:
    """Apply the rule ``recorded_minus_always``.

    The paper's goals are the functions recorded without those called whatever the action; read
    here as: called in some step, and not in every step of every play. Calls made by reset are no
    step's. A step that a fault broke off counts for what it called, not for what it did not.

    Args:
        calls: Per function id the number of steps, and of whole steps, in which it was called.
        whole_steps: Number of steps that ran to their end.

    Returns:
        The goals' ids in rising order.
    """
    return tuple(
        sorted(
            function
            for function, (steps, whole) in calls.items()
            if steps and (whole < whole_steps or not whole_steps)
        )
    )


def action_dependent(
    store: "EpisodeStore",
    *,
    plays: int = 12,
    states: int = 120,
    on_play: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Find the functions that depend on the action, by trying every action in recorded states.

    Recorded plays, evenly spread over the store, are played again; at states evenly spread over
    each, every action is tried from the same saved state. What differs between actions in some
    state depends on the action. The more states, the more is found.

    Args:
        store: Where the plays are taken from.
        plays: How many plays to follow, at most.
        states: About how many states to look at, over all plays.
        on_play: Called after each play.

    Returns:
        The goals for :meth:`EpisodeStore.save_action_dependent`: ``rule``, ``plays``, ``states``,
        ``ids``, ``names`` and the hash of the manifest they come from.

    Raises:
        InputError: If the game cannot save and restore or has no discrete actions, or the store
            has no plays.
        RunError: If the game breaks while actions are tried.
    """
    from lanista.envs.game import load_game
    from lanista.envs.tracing.counterfactual import action_dependent_functions

    rows = [row for row in store.rows() if row["whole_steps"]]
    if plays < 1 or states < plays or not rows:
        raise InputError(
            f"{states} states in {plays} of {len(rows)} plays make no goals; take a state a play "
            "or more, and a store with plays."
        )
    places = np.unique(np.linspace(0, len(rows) - 1, min(plays, len(rows))).astype(int))
    only = store.recipe.get("only")
    game = load_game(store.game_id)
    found: set[int] = set()
    looked_at = 0
    with contextlib.closing(game.make(store.catalogue.scheme, only and tuple(only))) as env:
        for place in places:
            row = rows[int(place)]
            key, steps = row["key"], int(row["whole_steps"])
            episode = store.read(row["episode_id"], key["seat"], observations=False)
            every = max(1, round(steps * len(places) / states))
            try:
                found |= action_dependent_functions(
                    env, [(key["world"], episode.actions[:steps].tolist())], every=every
                )
            except LanistaError:
                raise
            except Exception as error:
                raise RunError(
                    f"The game broke in world {key['world']} while actions were tried: "
                    f"{type(error).__name__}: {error}."
                ) from error
            looked_at += -(-steps // every)
            if on_play is not None:
                on_play()
    return {
        "rule": "functions that some actions call and others do not, taken in the same state",
        "plays": len(places),
        "states": looked_at,
        "ids": sorted(found),
        "names": [store.catalogue.name(goal) for goal in sorted(found)],
        "manifest_sha256": store.manifest_sha256,
    }
