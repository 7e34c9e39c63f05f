"""One play of a game as it is recorded: rows, key and fault."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.tracing.trace import CallTrace


@dataclass(frozen=True)
class EpisodeKey:
    """Everything that can differ between two plays; equal keys mean the same play.

    Attributes:
        game: Game id.
        engine_version: Version of the engine.
        engine_sha256: Hash of the engine's source files.
        catalogue_sha256: Hash of the functions recorded.
        world: World number.
        seat: Seat of the player whose record this is.
        player: Content hash of the player (or tester, with its parameters).
        goal: Full name of the function that the player was told to reach, or ``None``.
        step_cap: Steps after which the play is cut.
        repeat: Counts plays that are alike in all of the above, from 0.
    """

    game: str
    engine_version: str
    engine_sha256: str
    catalogue_sha256: str
    world: int
    seat: int
    player: str
    goal: str | None
    step_cap: int
    repeat: int = 0

    @property
    def episode_id(self) -> str:
        """Name of the play with all its seats: 24 hex digits of the key without its seat."""
        parts = {name: value for name, value in asdict(self).items() if name != "seat"}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Fault:
    """A crash or hang of the game: a finding, not an abort.

    Attributes:
        kind: ``exception``, ``hang``, ``crash`` (the game took its process with it) or ``player``
            (who played it broke).
        exception: Type name of the exception, empty for a hang.
        message: Text of the exception.
        where: ``file:line:function`` of the innermost frame inside the game; faults with equal
            kind, exception and place are one finding.
        traceback: The whole traceback as text.
    """

    kind: str
    exception: str
    message: str
    where: str
    traceback: str


@dataclass(frozen=True)
class Episode:
    """One seat's record of one play, ``T`` actions long.

    Row t holds what the policy saw at t, the action it chose there, and the trace and reward that
    this action caused. A learner's input at t therefore takes the trace of row t - 1, and reset's
    at t = 0.

    Attributes:
        key: What play this is.
        world_fingerprint: Hash of the initial conditions that were really drawn.
        actions: ``int64[T]`` (or ``float32[T, dims]``).
        rewards: ``float32[T]``, the game's own reward.
        trace_ids: All steps' traces end to end, ``uint16`` or ``uint32`` ``[calls]``.
        trace_offsets: ``int64[T + 1]``; row t's trace is ``trace_ids[offsets[t]:offsets[t + 1]]``.
        reset_trace: The calls made by reset.
        terminated: The game ended by its own rules (death, victory).
        truncated: The play was cut by a step cap, by the tester or by a fault.
        observations: ``[T + 1, ...]``, the last one seen after the last action; ``None`` if they
            were not kept. After a fault it repeats the one before.
        step_info: Numbers of each step by name, each ``[T]``.
        summary: Counts of the whole play by name.
        fault: What broke the play, or ``None``; then the last action is the one that broke it.
    """

    key: EpisodeKey
    world_fingerprint: str
    actions: NDArray[Any]
    rewards: NDArray[np.float32]
    trace_ids: NDArray[np.unsignedinteger[Any]]
    trace_offsets: NDArray[np.int64]
    reset_trace: CallTrace
    terminated: bool
    truncated: bool
    observations: NDArray[Any] | None = None
    step_info: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    summary: Mapping[str, int] = field(default_factory=dict)
    fault: Fault | None = None

    @property
    def steps(self) -> int:
        """Number of actions played."""
        return len(self.actions)

    def trace(self, step: int) -> CallTrace:
        """Return the trace that the action at ``step`` caused."""
        start, stop = self.trace_offsets[step], self.trace_offsets[step + 1]
        return CallTrace(self.trace_ids[start:stop])

    def input_trace(self, step: int) -> CallTrace:
        """Return the trace that a policy sees at ``step``: of the action before, or reset's."""
        return self.trace(step - 1) if step else self.reset_trace
