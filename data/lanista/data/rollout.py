"""The one loop in which games are played, for every recording and every judging."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.data.episode import Episode, EpisodeKey, Fault
from lanista.data.faults import fault_of
from lanista.envs.errors import InputError, LanistaError, RunError
from lanista.envs.policy import Memory, Observation, Policy, Tester
from lanista.envs.tracing.trace import CallTrace

_NO_CALLS = CallTrace()


@dataclass(frozen=True)
class Play:
    """One play to be made.

    Attributes:
        key: What play it is; its world and step cap are played.
        goal: Id of the function that the policy is told to reach, or ``None``.
        seed: What the player's random generator of this play is made from.
        stop_after: Steps after which the player stops of itself, or ``None``.
    """

    key: EpisodeKey
    goal: int | None
    seed: tuple[int, ...]
    stop_after: int | None = None

    @property
    def limit(self) -> int:
        """Steps after which the play is cut at the latest."""
        cap = self.key.step_cap
        return cap if self.stop_after is None else min(cap, self.stop_after)

    def generator(self) -> np.random.Generator:
        """Return the play's generator, anew at each call."""
        return np.random.default_rng(np.random.SeedSequence(list(self.seed)))


class ActionTape:
    """A tester that plays given actions, one after the other."""

    def __init__(self, actions: NDArray[Any]) -> None:
        self._actions = iter(actions)

    def act(self, env: Any, rng: np.random.Generator) -> Any:
        """Return the next action of the tape."""
        del env, rng
        return next(self._actions)


def rollout(
    envs: Sequence[Any],
    plays: Sequence[Play],
    *,
    policy: Policy | None = None,
    testers: Sequence[Tester] | None = None,
    keep_observations: bool = True,
) -> list[Episode]:
    """Play each play in its environment, all side by side, to its end.

    A lane's result does not depend on its neighbours, apart from what a network's batched
    arithmetic rounds differently. What a game raises ends its own lane alone and becomes the
    episode's fault; the calls up to there are kept. What a tester raises outside the game, and an
    action that does not fit the game, end their lane in the same way, with the fault's kind
    ``player``; numbers out of their bounds are put back onto them.

    Args:
        envs: One traced Gymnasium environment a play; see ``Game.make``.
        plays: What to play.
        policy: Plays all lanes, in one batch a step.
        testers: Or one tester a lane.
        keep_observations: Whether the episodes hold their observations.

    Returns:
        One episode a play, in the order of the plays.

    Raises:
        InputError: If not exactly one of policy and testers is given, or the numbers of
            environments, plays and testers differ, or only some plays have a goal.
        RunError: If the policy fails, which takes all of its batch with it.
        LanistaError: What an environment raises on purpose, such as a refused world.
    """
    if (policy is None) == (testers is None):
        raise InputError("A rollout takes either a policy or testers.")
    if len(envs) != len(plays) or (testers is not None and len(testers) != len(plays)):
        raise InputError(f"{len(plays)} plays need as many environments (and testers).")
    if len({play.goal is None for play in plays}) > 1:
        raise InputError("Some plays of a rollout have a goal and some have none.")
    lanes = [_Lane(env, play, keep_observations) for env, play in zip(envs, plays, strict=True)]
    for lane in lanes:
        lane.reset()
    if testers is not None:
        for lane, tester in zip(lanes, testers, strict=True):
            while lane.alive:
                lane.step_with(tester)
    else:
        assert policy is not None
        while alive := [lane for lane in lanes if lane.alive]:
            for lane, action in zip(alive, _act(policy, alive), strict=True):
                lane.step(action)
    return [lane.episode() for lane in lanes]


def _act(policy: Policy, alive: Sequence["_Lane"]) -> NDArray[Any]:
    masks = [lane.legal_mask for lane in alive]
    known = next((mask for mask in masks if mask is not None), None)
    goals = [lane.play.goal for lane in alive]
    observation = Observation(
        obs=np.stack([lane.observation for lane in alive]),
        call_trace=[lane.trace for lane in alive],
        goal=None if None in goals else np.array(goals, dtype=np.int64),
        legal_mask=None
        if known is None
        else np.stack([np.ones_like(known) if mask is None else mask for mask in masks]),
    )
    try:
        actions, memory = policy.act(
            observation, [lane.memory for lane in alive], [lane.rng for lane in alive]
        )
    except LanistaError:
        raise
    except Exception as error:
        steps = max(len(lane.actions) for lane in alive)
        raise RunError(
            f"The player failed at step {steps}: {type(error).__name__}: {error}."
        ) from error
    if len(actions) != len(alive) or len(memory) != len(alive):
        raise RunError(f"The player returned {len(actions)} actions for {len(alive)} lanes.")
    for lane, kept in zip(alive, memory, strict=True):
        lane.memory = kept
    return np.asarray(actions)


class _Lane:
    """One play while it goes on."""

    def __init__(self, env: Any, play: Play, keep_observations: bool) -> None:
        self.env = env
        self.play = play
        self.rng = play.generator()
        self.memory: Memory = None
        self.observation: NDArray[Any] = _blank_observation(env)
        self.trace = _NO_CALLS
        self.legal_mask: NDArray[np.bool_] | None = None
        self.actions: list[NDArray[Any]] = []
        space = _attribute(env, "action_space")
        self._action_shape: tuple[int, ...] = getattr(space, "shape", None) or ()
        discrete = np.issubdtype(getattr(space, "dtype", None) or np.int64, np.integer)
        self._action_dtype = np.dtype(np.int64 if discrete else np.float32)
        self._action_bounds = None if discrete else (space.low, space.high)
        first, count = getattr(space, "start", 0), getattr(space, "n", None)
        several = count is None or bool(self._action_shape)
        self._choices = None if several else range(int(first), int(first) + int(count or 0))
        self._answered = False
        self._rewards: list[float] = []
        self._traces: list[CallTrace] = []
        self._reset_trace = _NO_CALLS
        self._infos: list[Mapping[str, Any]] = []
        self._step_info: Mapping[str, Any] = {}
        self._summary: Mapping[str, int] = {}
        self._fingerprint = ""
        self._observations: list[NDArray[Any]] | None = [] if keep_observations else None
        self._terminated = False
        self._truncated = False
        self._fault: Fault | None = None

    @property
    def alive(self) -> bool:
        return not (self._terminated or self._truncated)

    def reset(self) -> None:
        """Start the play in its world."""
        try:
            observation, info = self.env.reset(options={"world": self.play.key.world})
            self._see(observation, info)
            self._fingerprint = str(info.get("world_fingerprint", ""))
        except LanistaError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a crash is a finding
            self._break(error)
        self._reset_trace = self.trace
        self._keep()
        self._truncated |= self.play.limit <= 0

    def step_with(self, tester: Tester) -> None:
        """Let a tester choose the next action and take it."""
        try:
            action = tester.act(self.env, self.rng)
        except LanistaError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - loses its own lane alone
            self._blame_player(error)
            return
        self.step(action)

    def step(self, action: Any) -> None:
        """Take an action, and note what it caused."""
        try:
            taken = self._fitted(action)
        except (TypeError, ValueError) as error:
            self._blame_player(error)
            return
        self.actions.append(taken)
        reward, terminated, truncated = 0.0, False, False
        self._answered = False
        try:
            # Discrete actions go in as plain integers, as most games expect them.
            observation, given, ended, cut, info = self.env.step(
                taken if self._action_shape else taken.item()
            )
            self._see(observation, info)
            reward, terminated, truncated = float(given), bool(ended), bool(cut)
        except LanistaError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a crash is a finding
            self._break(error)
        self._rewards.append(reward)
        self._traces.append(self.trace)
        self._infos.append(self._step_info)
        self._keep()
        self._terminated |= terminated
        self._truncated |= truncated or (not terminated and len(self.actions) >= self.play.limit)

    def _fitted(self, action: Any) -> NDArray[Any]:
        """Return an action as the game takes it and as it is recorded.

        Numbers are put back onto the bounds that they leave, so that the record holds what the
        game was given and nothing that a learner would have to refuse.
        """
        taken = np.array(action, dtype=self._action_dtype).reshape(self._action_shape)
        if self._action_bounds is None:
            if not np.array_equal(taken, np.reshape(action, taken.shape)) or (
                self._choices is not None and taken.item() not in self._choices
            ):
                raise ValueError(f"an action that the game does not have was chosen: {action}")
            return taken
        if not np.isfinite(taken).all():
            raise ValueError(f"an action that is not a number was chosen: {taken.tolist()}")
        fitted: NDArray[np.float32] = np.clip(taken, *self._action_bounds).astype(np.float32)
        return fitted

    def _see(self, observation: Any, info: Mapping[str, Any]) -> None:
        # The trace first: should the rest be malformed, the calls that led there are still kept.
        trace = info.get("call_trace", _NO_CALLS)
        if not isinstance(trace, CallTrace):
            raise TypeError(f"the game's call_trace is no CallTrace: {type(trace).__name__}")
        self.trace, self._answered = trace, True
        seen = np.array(observation)
        if seen.dtype == object:
            raise TypeError(f"the game's observation is no array of numbers: {type(observation)}")
        if self.actions and (seen.shape, seen.dtype) != (
            self.observation.shape,
            self.observation.dtype,
        ):
            raise ValueError(
                f"the game's observation changed from {self.observation.dtype}"
                f"{self.observation.shape} to {seen.dtype}{seen.shape}"
            )
        self.observation = seen
        mask = info.get("legal_mask")
        self.legal_mask = None if mask is None else np.asarray(mask, dtype=np.bool_)
        self._step_info = {
            str(name): _number(value) for name, value in info.get("step_info", {}).items()
        }
        self._summary = {str(name): int(count) for name, count in info.get("summary", {}).items()}

    def _keep(self) -> None:
        if self._observations is not None:
            self._observations.append(self.observation)

    def _break(self, error: BaseException) -> None:
        self._fault = fault_of(error, _attribute(self.env, "catalogue"))
        self._truncated = True
        if not self._answered:
            # What a traced environment keeps of a step that raised; not that of an earlier step,
            # should the fault have come before the game was reached.
            partial = _attribute(self.env, "last_trace")
            self.trace = _NO_CALLS if partial is None or partial is self.trace else partial

    def _blame_player(self, error: BaseException) -> None:
        self._fault = fault_of(error, None, kind="player")
        self._truncated = True

    def episode(self) -> Episode:
        """Return the record of the play."""
        ids = [trace.ids for trace in self._traces]
        offsets = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum([len(item) for item in ids], out=offsets[1:])
        return Episode(
            key=self.play.key,
            world_fingerprint=self._fingerprint,
            actions=np.array(self.actions, dtype=self._action_dtype).reshape(
                len(self.actions), *self._action_shape
            ),
            rewards=np.array(self._rewards, dtype=np.float32),
            trace_ids=np.concatenate(ids) if ids else np.zeros(0, dtype=np.uint16),
            trace_offsets=offsets,
            reset_trace=self._reset_trace,
            terminated=self._terminated,
            truncated=self._truncated,
            observations=None if self._observations is None else np.stack(self._observations),
            step_info=_columns(self._infos),
            summary=dict(self._summary),
            fault=self._fault,
        )


def _attribute(env: Any, name: str) -> Any:
    """Return an attribute of an environment or of what it wraps, or ``None``."""
    while env is not None:
        found = getattr(env, name, None)
        if found is not None:
            return found
        env = getattr(env, "env", None)
    return None


def _blank_observation(env: Any) -> NDArray[Any]:
    """Return what stands for an observation where a reset broke before there was one."""
    space = _attribute(env, "observation_space")
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    return np.zeros(shape or (), dtype=dtype or np.uint8)


def _number(value: Any) -> bool | int | float:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _columns(infos: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Turn the numbers of each step into one array a name: bool, int64 or float64.

    A step that lacks a name that others have makes its column float64, with NaN there.
    """
    names = sorted({name for info in infos for name in info})
    columns: dict[str, NDArray[Any]] = {}
    for name in names:
        values = [info.get(name, np.nan) for info in infos]
        if all(isinstance(value, bool) for value in values):
            columns[name] = np.array(values, dtype=np.bool_)
        elif all(isinstance(value, int) for value in values):
            columns[name] = np.array(values, dtype=np.int64)
        else:
            columns[name] = np.array(values, dtype=np.float64)
    return columns
