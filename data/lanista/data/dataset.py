"""Recorded episodes as flat arrays, ready to be put on a device and gathered from."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.data.episode import Episode
from lanista.envs.actions import Bounds
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue


@dataclass(frozen=True)
class GoalDataset:
    """Episodes end to end, ``N`` rows (actions) in ``E`` episodes.

    An episode of ``T`` rows has ``T + 1`` *frames*: what was seen at each row, and after the last
    action. Frame f holds an observation and the bag of the calls that led to it, so row t's input
    is frame ``t + episode`` and what its action caused is the frame after (``frame_of_row``).

    Attributes:
        observations: ``uint8[N + E, height, width, channels]`` or ``float32[N + E, dims]``.
        actions: ``int64[N]``, or ``float32[N, dims]`` where an action is made of numbers.
        bag_ids: ``int32[M]``, the distinct function ids of every frame's trace, end to end.
        bag_counts: ``int32[M]``, how often each was called.
        bag_offsets: ``int64[N + E + 1]``; frame f's bag is ``[offsets[f]:offsets[f + 1]]``.
        episode_offsets: ``int64[E + 1]``, the first row of each episode, and ``N``.
        episode_ids: Name of each play.
        goals: ``int64[G]``, function ids that an agent may be told to reach.
        catalogue: What the function ids mean.
        action_count: Number of discrete actions of the game; 0 where an action is made of numbers.
        action_bounds: Lowest and highest values of such an action's numbers, else ``None``.
    """

    observations: NDArray[Any]
    actions: NDArray[Any]
    bag_ids: NDArray[np.int32]
    bag_counts: NDArray[np.int32]
    bag_offsets: NDArray[np.int64]
    episode_offsets: NDArray[np.int64]
    episode_ids: tuple[str, ...]
    goals: NDArray[np.int64]
    catalogue: Catalogue
    action_count: int
    action_bounds: Bounds | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.actions)

    @cached_property
    def episode_of_row(self) -> NDArray[np.int64]:
        """Index of the episode that each row belongs to, ``int64[N]``."""
        return np.repeat(np.arange(len(self.episode_ids)), np.diff(self.episode_offsets))

    @cached_property
    def step_of_row(self) -> NDArray[np.int64]:
        """Step of each row within its episode, from 0, ``int64[N]``."""
        return np.arange(len(self)) - self.episode_offsets[self.episode_of_row]

    @cached_property
    def frame_of_row(self) -> NDArray[np.int64]:
        """Frame that each row saw, ``int64[N]``; the frame after it is what its action caused."""
        return np.arange(len(self)) + self.episode_of_row

    @cached_property
    def longest_bag(self) -> int:
        """Most distinct functions in any frame's trace (at least 1)."""
        return max(1, int(np.diff(self.bag_offsets).max(initial=1)))

    @property
    def goal_names(self) -> tuple[str, ...]:
        """Full names of the goals, in the order of ``goals``."""
        return tuple(self.catalogue.name(int(goal)) for goal in self.goals)

    def bag(self, frame: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the distinct ids and the counts of one frame's trace."""
        part = slice(self.bag_offsets[frame], self.bag_offsets[frame + 1])
        return self.bag_ids[part], self.bag_counts[part]

    @classmethod
    def from_episodes(
        cls,
        episodes: Iterable[Episode],
        goals: Sequence[int],
        catalogue: Catalogue,
        action_count: int | None = None,
        action_bounds: Bounds | None = None,
    ) -> "GoalDataset":
        """Lay episodes end to end; those without an action are left out.

        Args:
            episodes: Read once, in order; each with its observations.
            goals: Function ids, distinct.
            catalogue: The catalogue that the episodes were recorded under.
            action_count: Number of the game's discrete actions; the largest action seen plus one
                if it is not given.
            action_bounds: Lowest and highest values of an action's numbers, for games whose
                actions are such; none if they are not given.

        Raises:
            InputError: If there is nothing to learn from, a goal is not in the catalogue, or an
                episode has no observations, another catalogue, actions out of range, or
                observations or actions of another kind than the rest.
        """
        _check_goals(goals, catalogue)
        frames: list[NDArray[Any]] = []
        actions: list[NDArray[Any]] = []
        bags: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
        names: list[str] = []
        for episode in episodes:
            if not episode.steps:
                continue
            observations = _observations(episode)
            if frames and (observations.shape[1:], observations.dtype) != (
                frames[0].shape[1:],
                frames[0].dtype,
            ):
                raise InputError(
                    f"Episode {episode.key.episode_id} has observations "
                    f"{observations.dtype}{list(observations.shape[1:])}, the ones before it "
                    f"{frames[0].dtype}{list(frames[0].shape[1:])}; train on one kind at a time."
                )
            frames.append(observations)
            actions.append(_actions(episode, action_count, action_bounds))
            if actions[-1].shape[1:] != actions[0].shape[1:]:
                raise InputError(
                    f"Episode {episode.key.episode_id} has actions of another kind than the ones "
                    "before it; train on one kind at a time."
                )
            bags.append(_bags(episode, catalogue))
            names.append(episode.key.episode_id)
        if not names:
            raise InputError("There is no episode with an action to learn from.")
        lengths = np.array([len(part) for part in actions])
        joined = np.concatenate(actions)
        if joined.ndim > 1:
            count, bounds = 0, action_bounds or _no_bounds(joined.shape[1])
        else:
            count, bounds = action_count or int(joined.max()) + 1, None
        return cls(
            observations=_join(frames),
            actions=joined,
            bag_ids=np.concatenate([ids for ids, _, _ in bags]),
            bag_counts=np.concatenate([counts for _, counts, _ in bags]),
            bag_offsets=np.concatenate([[0], *(sizes for _, _, sizes in bags)]).cumsum(),
            episode_offsets=np.concatenate([[0], lengths]).cumsum(),
            episode_ids=tuple(names),
            goals=np.array(goals, dtype=np.int64),
            catalogue=catalogue,
            action_count=count,
            action_bounds=bounds,
        )


def _check_goals(goals: Sequence[int], catalogue: Catalogue) -> None:
    if not len(goals):
        raise InputError("There is no goal to learn to reach; give at least one function.")
    if len(set(map(int, goals))) != len(goals):
        raise InputError("A goal is given more than once; each function may be given once.")
    outside = [int(goal) for goal in goals if not 0 <= int(goal) < len(catalogue)]
    if outside:
        raise InputError(
            f"Goals {outside} are not in the catalogue of {len(catalogue)} functions; "
            "take goals and catalogue from the same recording."
        )


def _observations(episode: Episode) -> NDArray[Any]:
    name = episode.key.episode_id
    observations = episode.observations
    if observations is None:
        raise InputError(f"Episode {name} was read without observations; read it with them.")
    if len(observations) != episode.steps + 1:
        raise InputError(
            f"Episode {name} has {len(observations)} observations for {episode.steps} actions; "
            "it must have one more than actions."
        )
    if observations.dtype == np.uint8 and observations.ndim == 4:
        return observations
    if np.issubdtype(observations.dtype, np.floating) and observations.ndim == 2:
        bad = np.flatnonzero(~np.isfinite(observations).all(axis=1))
        if bad.size:
            raise InputError(
                f"Episode {name} has an observation that is not a number at step {bad[0]}; "
                "leave the episode out or record it again."
            )
        return observations.astype(np.float32, copy=False)
    raise InputError(
        f"Episode {name} has observations {observations.dtype}{list(observations.shape[1:])}; "
        "agents read uint8 images [height, width, channels] or float vectors."
    )


def _actions(
    episode: Episode, action_count: int | None, bounds: Bounds | None
) -> NDArray[np.int64] | NDArray[np.float32]:
    if episode.actions.ndim > 1 or np.issubdtype(episode.actions.dtype, np.floating):
        if action_count is not None:
            raise InputError(
                f"Episode {episode.key.episode_id} has actions made of numbers, the game's are "
                "discrete; record it again."
            )
        return _numbers(episode, bounds)
    name, actions = episode.key.episode_id, episode.actions
    if bounds is not None:
        raise InputError(
            f"Episode {name} has discrete actions, but the game's are made of "
            f"{len(bounds[0])} numbers; record it again."
        )
    if actions.min() < 0 or (action_count is not None and actions.max() >= action_count):
        raise InputError(
            f"Episode {name} has actions from {actions.min()} to {actions.max()}; "
            f"they must lie in 0 to {'' if action_count is None else action_count - 1}".rstrip()
            + "."
        )
    return actions.astype(np.int64)


def _numbers(episode: Episode, bounds: Bounds | None) -> NDArray[np.float32]:
    """Return actions made of numbers, flattened to one row a step."""
    name = episode.key.episode_id
    actions = episode.actions.reshape(episode.steps, -1).astype(np.float32)
    low, high = (np.array(part, np.float32) for part in bounds or _no_bounds(actions.shape[1]))
    if len(low) != actions.shape[1]:
        raise InputError(
            f"Episode {name} has actions of {actions.shape[1]} numbers, the game of {len(low)}; "
            "record it again."
        )
    # Written so that what is not a number is refused too.
    bad = np.flatnonzero(~((low <= actions) & (actions <= high)).all(axis=1))
    if bad.size:
        raise InputError(
            f"Episode {name} has an action out of the game's bounds at step {bad[0]}: "
            f"{actions[bad[0]].tolist()}; leave the episode out or record it again."
        )
    return actions


def _no_bounds(numbers: int) -> Bounds:
    return (-math.inf,) * numbers, (math.inf,) * numbers


def _bags(
    episode: Episode, catalogue: Catalogue
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return distinct ids, counts, and the number of distinct ids of each of T + 1 frames."""
    name = episode.key.episode_id
    if episode.key.catalogue_sha256 != catalogue.sha256:
        raise InputError(
            f"Episode {name} was recorded under catalogue {episode.key.catalogue_sha256[:12]}, "
            f"not {catalogue.sha256[:12]}; train on episodes of one catalogue."
        )
    lengths = np.concatenate([[len(episode.reset_trace)], np.diff(episode.trace_offsets)])
    first, last = episode.trace_offsets[0], episode.trace_offsets[-1]
    ids = np.concatenate([episode.reset_trace.ids, episode.trace_ids[first:last]]).astype(np.int64)
    functions = len(catalogue)
    if ids.size and ids.max() >= functions:
        raise InputError(
            f"Episode {name} calls function {ids.max()}, the catalogue has {functions}; "
            "the recording is corrupt."
        )
    # One sort of (frame, function) pairs counts the calls of every frame at once.
    pairs, counts = np.unique(
        np.repeat(np.arange(len(lengths)), lengths) * functions + ids, return_counts=True
    )
    sizes = np.bincount(pairs // max(functions, 1), minlength=len(lengths))
    return (pairs % max(functions, 1)).astype(np.int32), counts.astype(np.int32), sizes


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate, giving each part up once it is copied, so that memory peaks near one copy."""
    joined = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    end = len(joined)
    while parts:
        part = parts.pop()
        joined[end - len(part) : end] = part
        end -= len(part)
    return joined
