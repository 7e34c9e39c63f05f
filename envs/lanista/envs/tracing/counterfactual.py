"""Which functions depend on the action: same state, every action, which calls differ."""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np

from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace


def action_dependent_functions(
    env: Any, plays: Iterable[tuple[int, Sequence[int]]], *, every: int = 1
) -> frozenset[int]:
    """Find the functions whose calls in a step depend on the action taken there.

    Plays are followed; at each state looked at, every action is tried from the same saved state. A
    function depends on the action if some actions call it and others don't. This reads the paper's
    "called whatever the action" strictly; the rule from data alone is ``recorded_minus_always``.

    Args:
        env: A traced environment with discrete actions, ``save()`` and ``restore(state)``.
        plays: World number and the actions taken in it, for each play to follow.
        every: Look at every so many-th state of a play.

    Returns:
        Ids of the functions, as ``env.catalogue`` knows them.

    Raises:
        InputError: If the game lacks discrete actions, saving and restoring, or traces; if an
            action does not exist; if restoring does not bring the same state back.
    """
    count = _check(env)
    if every < 1:
        raise InputError(f"Looking at every {every}-th state makes no sense; take 1 or more.")
    found: set[int] = set()
    for world, actions in plays:
        _, info = env.reset(options={"world": int(world)})
        _trace_of(info)
        for number, action in enumerate(actions):
            if not 0 <= int(action) < count:
                raise InputError(f"World {world}: action {action} at step {number} doesn't exist.")
            if number % every == 0:
                found |= _differing(env, count, f"world {world}, step {number}")
            _, _, terminated, truncated, _ = env.step(int(action))
            if terminated or truncated:
                break
    return frozenset(found)


def _differing(env: Any, count: int, where: str) -> set[int]:
    state = env.save()
    called: list[set[int]] = []
    first: CallTrace | None = None
    for action in (*range(count), 0):
        env.restore(state)
        trace = _trace_of(env.step(action)[4])
        if len(called) < count:
            called.append(set(trace.bag()[0].tolist()))
            first = first if first is not None else trace
        elif trace != first:
            raise InputError(
                f"The game's restore does not bring its whole state back ({where}): "
                "one action called other functions the second time."
            )
    env.restore(state)
    return set().union(*called) - called[0].intersection(*called)


def _check(env: Any) -> int:
    space = env.action_space
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise InputError(
            f"Action-dependent functions need discrete actions; this game's are {space}."
        )
    if int(space.start) != 0:
        raise InputError(f"Action-dependent functions need actions that count from 0, not {space}.")
    for name in ("save", "restore"):
        if not callable(getattr(env, name, None)):
            raise InputError(
                "Action-dependent functions need a game that can save and restore; "
                f"this one has no {name}()."
            )
    return int(np.int64(space.n))


def _trace_of(info: dict[str, Any]) -> CallTrace:
    trace = info.get("call_trace")
    if not isinstance(trace, CallTrace):
        raise InputError("Action-dependent functions need a traced game; wrap it in TracedEnv.")
    return trace
