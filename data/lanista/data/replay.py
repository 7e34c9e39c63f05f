"""Making a recorded play's observations anew from its world and its actions."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lanista.data.episode import Episode
from lanista.data.episode_file import content_hash, hash_array
from lanista.data.rollout import ActionTape, Play, rollout
from lanista.envs.errors import InputError
from lanista.envs.game import load_game
from lanista.envs.tracing.catalogue import Scheme


def replay_episode(
    episode: Episode,
    observations_sha256: str,
    scheme: Scheme,
    only: Sequence[str] | None = None,
) -> Episode:
    """Play an episode again and return it with its observations.

    Args:
        episode: The record without observations.
        observations_sha256: Hash that they must have.
        scheme: How its game tells calls apart.
        only: The patterns that its recording was limited to.

    Raises:
        InputError: If the game is not there, or shows or calls anything else than was recorded.
    """
    env = environment_for(episode.key.game, scheme, None if only is None else tuple(only))
    again = play_again(env, episode)
    if again.fault is not None:
        # A game that broke may be in any state, and may not close; the next play gets a new one.
        with contextlib.suppress(Exception):
            env.close()
        environment_for.cache_clear()
    assert again.observations is not None
    if hash_array(again.observations) != observations_sha256:
        raise InputError(
            f"Episode {episode.key.episode_id} cannot be replayed: the game now shows something "
            f"else than engine {episode.key.engine_version} did."
        )
    if episode.fault is not None and episode.fault.kind == "player":
        # Playing the actions again repeats what the game did, not what its player then failed at.
        again = replace(again, fault=episode.fault)
    if content_hash(again, observations_sha256) != content_hash(episode, observations_sha256):
        raise InputError(
            f"Episode {episode.key.episode_id} cannot be replayed: its observations are the same, "
            "but what they were caused by is not."
        )
    return again


def play_again(env: Any, episode: Episode) -> Episode:
    """Play a record's actions in its world; the result is equal if nothing has changed."""
    play = Play(episode.key, None, (0,), stop_after=episode.steps)
    return rollout([env], [play], testers=[ActionTape(episode.actions)])[0]


@lru_cache(maxsize=2)
def environment_for(game_id: str, scheme: Scheme, only: tuple[str, ...] | None) -> Any:
    """Return the game to replay in; kept open, since making one anew takes longer than a play."""
    return load_game(game_id).make(scheme, only)
