"""What ``lanista trace`` finds: a play of random steps and the functions that it called."""

import hashlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanista.data.faults import fault_of
from lanista.data.goals import recorded_minus_always
from lanista.envs.errors import InputError, LanistaError, RunError
from lanista.envs.game import Game
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.trace import CallTrace

OVERHEAD_BLOCKS = 7
OVERHEAD_STEPS = 60
WARM_UP_STEPS = 20


@dataclass(frozen=True)
class Overhead:
    """What recording costs: traced over untraced processor time of the same steps.

    Attributes:
        ratio: Median over pairs of blocks.
        low: Their lower quartile.
        high: Their upper quartile.
        blocks: Number of pairs.
    """

    ratio: float
    low: float
    high: float
    blocks: int


@dataclass(frozen=True)
class PlayedTrace:
    """A play of random steps.

    Attributes:
        catalogue: The functions.
        steps: Steps played.
        calls: Calls of each function in steps, by id.
        steps_called: Steps in which each was called, by id.
        goals: Ids of the goals by the rule ``recorded_minus_always``, applied to this play.
        calls_per_step: Calls of each step.
        observations_sha256: Hash of every observation in order, those of resets too.
        traces_sha256: Hash of every trace in order, those of resets too.
        worlds: The worlds played.
        broke: What broke the game before all steps were played: ``world``, ``step``,
            ``exception``, ``message``, ``where`` and ``traceback``; ``None`` if nothing did.
    """

    catalogue: Catalogue
    steps: int
    calls: tuple[int, ...]
    steps_called: tuple[int, ...]
    goals: tuple[int, ...]
    calls_per_step: tuple[int, ...]
    observations_sha256: str
    traces_sha256: str
    worlds: tuple[int, ...]
    broke: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that ``lanista trace --json`` prints, without the overhead."""
        goals = set(self.goals)
        return {
            "steps": self.steps,
            "functions": [
                {
                    "id": index,
                    "name": function.name,
                    "file": function.file,
                    "line": function.line,
                    "calls": self.calls[index],
                    "step_share": self.steps_called[index] / self.steps,
                    "goal": index in goals,
                }
                for index, function in enumerate(self.catalogue.functions)
            ],
            "calls_per_step": {
                "mean": statistics.fmean(self.calls_per_step),
                "max": max(self.calls_per_step),
            },
            "goals": len(self.goals),
            "scheme": self.catalogue.scheme,
            "catalogue_sha256": self.catalogue.sha256,
            "observations_sha256": self.observations_sha256,
            "traces_sha256": self.traces_sha256,
            "worlds": list(self.worlds),
            "broke": self.broke,
        }


def play_and_count(
    game: Game,
    *,
    world: int,
    steps: int,
    seed: int,
    scheme: Scheme = "class",
    patterns: Sequence[str] | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> PlayedTrace:
    """Play random steps, on in the next world when an episode ends, and count the calls.

    Raises:
        InputError: If there are no steps to play, or a pattern matches nothing.
        RunError: If the game raises something or wants to exit before a step is over.
    """
    if steps < 1:
        raise InputError(f"{steps} steps cannot be played; give --steps 1 or more.")
    env = game.make(scheme, None if patterns is None else tuple(patterns))
    try:
        catalogue: Catalogue = env.get_wrapper_attr("catalogue")
        calls = np.zeros(len(catalogue), np.int64)
        steps_called = np.zeros(len(catalogue), np.int64)
        per_step: list[int] = []
        observations, traces = hashlib.sha256(), hashlib.sha256()
        worlds: list[int] = []

        def take(observation: Any, info: dict[str, Any]) -> CallTrace:
            trace: CallTrace = info["call_trace"]
            observations.update(np.ascontiguousarray(observation).tobytes())
            traces.update(len(trace).to_bytes(8, "little"))
            traces.update(trace.ids.astype("<u4").tobytes())
            return trace

        def start() -> None:
            worlds.append(world + len(worlds))
            take(*env.reset(options={"world": worlds[-1]}))
            # Each world's draws are its own, so that more steps never change earlier ones.
            space = env.action_space
            space.seed(int(np.random.SeedSequence([seed, worlds[-1]]).generate_state(1)[0]))

        length = 0
        broke: dict[str, Any] | None = None
        start()
        for _ in range(steps):
            observation, _, terminated, truncated, info = env.step(env.action_space.sample())
            ids, counts = take(observation, info).bag()
            calls[ids] += counts
            steps_called[ids] += 1
            per_step.append(int(counts.sum()))
            length += 1
            on_step()
            if (terminated or truncated or length >= game.step_cap) and len(per_step) < steps:
                start()
                length = 0
    except LanistaError:
        raise
    except (Exception, SystemExit) as error:
        if not per_step:
            raise RunError(
                f"The game broke in world {worlds[-1]} at step {length}: "
                f"{type(error).__name__}: {error}; lanista collect keeps it as a finding."
            ) from error
        fault = fault_of(error, catalogue)
        broke = {
            "world": worlds[-1],
            "step": length,
            **{
                name: getattr(fault, name)
                for name in ("exception", "message", "where", "traceback")
            },
        }
    finally:
        env.close()
    goals = recorded_minus_always(
        {index: (int(count), int(count)) for index, count in enumerate(steps_called) if count},
        len(per_step),
    )
    return PlayedTrace(
        catalogue,
        len(per_step),
        tuple(calls.tolist()),
        tuple(steps_called.tolist()),
        goals,
        tuple(per_step),
        observations.hexdigest(),
        traces.hexdigest(),
        tuple(worlds),
        broke,
    )


def measure_overhead(
    game: Game,
    *,
    world: int,
    seed: int,
    scheme: Scheme = "class",
    patterns: Sequence[str] | None = None,
    blocks: int = OVERHEAD_BLOCKS,
    steps: int = OVERHEAD_STEPS,
) -> Overhead | None:
    """Measure what recording costs, in interleaved pairs of blocks of the same steps.

    Untraced blocks step the game inside the tracing wrapper after the tracer was taken out.

    Returns:
        The cost; ``None`` for a game whose tracer is built into it and cannot be taken out.
    """
    env = game.make(scheme, None if patterns is None else tuple(patterns))
    if not env.has_wrapper_attr("tracer"):
        env.close()
        return None
    tracer = env.get_wrapper_attr("tracer")
    inner: Any = env
    while not isinstance(inner, TracedEnv):
        inner = inner.env
    inner = inner.env

    def block(played: Any) -> float:
        played.reset(options={"world": world})
        played.action_space.seed(int(np.random.SeedSequence([seed, world]).generate_state(1)[0]))
        spent, done = 0.0, 0
        # Code that was exchanged a moment ago runs slower until the interpreter has adapted it.
        for number in range(WARM_UP_STEPS + steps):
            action = played.action_space.sample()
            start = time.process_time()
            _, _, terminated, truncated, _ = played.step(action)
            if number >= WARM_UP_STEPS:
                spent += time.process_time() - start
                done += 1
            if terminated or truncated:
                played.reset(options={"world": world})
        return spent / done

    def untraced() -> float:
        tracer.uninstall()
        try:
            return block(inner)
        finally:
            tracer.install()

    try:
        block(env)
        untraced()
        ratios = []
        for number in range(blocks):
            # Each kind goes first in turn, so that a machine that slows down favours neither.
            if number % 2:
                traced, plain = block(env), untraced()
            else:
                plain, traced = untraced(), block(env)
            ratios.append(traced / plain if plain else 1.0)
    finally:
        env.close()
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return Overhead(ratio, low, high, blocks)
