"""What recording a Godot project costs, and which functions to leave out to stay under a budget.

A traced copy and one without hooks are measured in turns. A project with a godot-rl Sync node is
played by random actions through the bridge, both copies side by side, a few steps each; any other
one runs its main scene with nobody playing, and its frames are timed. Each plays the same several
times, and the best time of each stretch counts, as what else runs on the machine only adds to it.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.agent_spaces import ActionPart
from lanista.envs.godot.bridge_files import FOLDER
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine, run_engine
from lanista.envs.godot.faults import GameFault
from lanista.envs.godot.project import Project, import_project
from lanista.envs.tracing.catalogue import Scheme
from lanista.envs.tracing.gdscript.plan import Plan
from lanista.envs.tracing.gdscript.project import instrument_project, project_plan
from lanista.envs.tracing.gdscript.runtime import add_autoload, engine_file
from lanista.envs.tracing.gdscript.scope import GodotScope

_WARM_UP_STEPS = 30
_BLOCK_S = 0.1
_BLOCKS, _LEAST_ROUNDS = 10, 3
_RESAMPLES = 200
_WARM_UP_FRAMES, _BLOCK_FRAMES, _FRAME_BLOCKS, _FRAME_RUNS = 60, 30, 20, 5
_CLOCK = "frame_clock.gd"
_MARK = "lanista-frame-clock "


@dataclass(frozen=True)
class Cost:
    """What recording costs.

    Attributes:
        unit: What is timed: a step of the agents, or a frame of a game that nobody plays.
        ratio: Traced over untraced time of the same play, the best round of each stretch of it.
        low: Lower quartile of that over rounds drawn again.
        high: Upper quartile.
        rounds: How often the play was timed.
        untraced_us: Time of one without hooks, in microseconds.
        calls: Calls of each function in one, by the name of its definition; those called at all.
    """

    unit: Literal["step", "frame"]
    ratio: float
    low: float
    high: float
    rounds: int
    untraced_us: float
    calls: Mapping[str, float]

    @property
    def percent(self) -> float:
        """Added time, in percent of the untraced."""
        return 100.0 * (self.ratio - 1.0)

    @property
    def us_per_call(self) -> float:
        """Added time by call, in microseconds; 0 where there were no calls."""
        total = sum(self.calls.values())
        return self.untraced_us * (self.ratio - 1.0) / total if total else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the cost as JSON, functions by their calls."""
        return {
            "unit": self.unit,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "rounds": self.rounds,
            "percent": self.percent,
            "untraced_us": self.untraced_us,
            "us_per_call": self.us_per_call,
            "calls": [
                {"name": name, "calls": count}
                for name, count in sorted(self.calls.items(), key=lambda item: (-item[1], item[0]))
            ],
        }


@dataclass(frozen=True)
class Proposal:
    """Which functions to leave out.

    Attributes:
        budget: The percentage asked for.
        exclude: Patterns for ``--exclude``, the most called function first; empty if none is
            needed.
        percent: Added time that is expected then.
        kept_calls: Share of the calls that is still recorded.
    """

    budget: float
    exclude: tuple[str, ...]
    percent: float
    kept_calls: float

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as JSON."""
        return {
            "budget": self.budget,
            "exclude": list(self.exclude),
            "expected_percent": self.percent,
            "kept_calls": self.kept_calls,
        }


def propose(cost: Cost, budget: float) -> Proposal:
    """Choose the fewest functions to leave out so that recording stays under a budget.

    Every call is taken to cost the same, so that the most called functions go first. Those say
    least: what every step calls whatever the action is no goal.

    Args:
        cost: What was measured.
        budget: Added time allowed, in percent.

    Raises:
        InputError: If the budget is not above 0.
    """
    if not budget > 0:
        raise InputError(f"A budget of {budget:g} % leaves nothing to record; give more than 0.")
    total = sum(cost.calls.values())
    ordered = sorted(cost.calls.items(), key=lambda item: (-item[1], item[0]))
    out, remaining = 0, total
    while out < len(ordered) and cost.percent * remaining / total > budget:
        out += 1
        remaining = sum(count for _, count in ordered[out:])
    chosen = [name for name, _ in ordered[:out]]
    share = remaining / total if total else 1.0
    return Proposal(budget, tuple(chosen), cost.percent * share if total else cost.percent, share)


def measure_cost(
    source: Path | str,
    engine: Engine,
    *,
    scheme: Scheme = "class",
    scope: GodotScope,
    lambdas: bool = False,
    scene: str | None = None,
    seconds: float = 20.0,
    seed: int = 0,
    on_stage: Callable[[str], None] = lambda _: None,
) -> Cost:
    """Measure what recording a project costs, in copies made for that and removed again.

    Args:
        source: The project.
        engine: The engine.
        scheme: As for ``instrument_project``.
        scope: Which functions are recorded.
        lambdas: Whether lambdas are recorded too.
        scene: Scene to play instead of the main one (``res://…``), where that is a menu.
        seconds: About how long to measure.
        seed: Seed of the random actions and of the game.
        on_stage: Told what is being done.

    Raises:
        InputError: If it is no project, or a pattern matches nothing.
        RunError: If the game does not run, or calls no recorded function.
    """
    project = Project.open(source)
    plan = project_plan(project, scheme, scope, lambdas=lambdas)
    nothing = GodotScope(exclude=("*",))
    with tempfile.TemporaryDirectory(prefix="lanista-budget-") as folder:
        traced, bare = Path(folder) / "traced", Path(folder) / "bare"
        on_stage("making a traced copy and one without hooks")
        instrument_project(source, traced, scheme=scheme, scope=scope, lambdas=lambdas)
        instrument_project(source, bare, scheme=scheme, scope=nothing)
        import_project(engine, traced)
        _share_import(traced, bare)
        if project.sync_nodes or project.binary_scenes:
            on_stage("playing both in turns with random actions")
            try:
                cost = _by_steps(engine, traced, bare, plan, scene, seconds, seed)
            except GameFault as fault:
                raise RunError(f"The game broke while it was measured: {fault}") from fault
        else:
            on_stage("running both in turns, with nobody playing")
            cost = _by_frames(engine, traced, bare, plan, scene)
    if not cost.calls:
        raise RunError(
            "The game called no recorded function while it was measured: its first scene may be "
            "a menu; name the scene to play with --scene."
        )
    return cost


def _share_import(imported: Path, other: Path) -> None:
    """Give another copy what the import made: their assets are the same, and importing is slow."""
    shutil.copytree(imported / ".godot", other / ".godot")
    for path in imported.rglob("*"):
        beside = other / path.relative_to(imported)
        if path.suffix in {".import", ".uid"} and not beside.exists():
            shutil.copy2(path, beside)


def _by_steps(
    engine: Engine,
    traced: Path,
    bare: Path,
    plan: Plan,
    scene: str | None,
    seconds: float,
    seed: int,
) -> Cost:
    counts = np.zeros(len(plan.catalogue), np.int64)
    counted = 0
    times: dict[str, list[list[float]]] = {"traced": [], "bare": []}
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(GodotClient.start(engine, path, seed=seed, scene=scene))
            for name, path in (("traced", traced), ("bare", bare))
        }
        for client in clients.values():
            client.reset(seed=seed)
            warm_up, _ = _play(client, np.random.default_rng(seed), _WARM_UP_STEPS)
        steps = min(max(round(_BLOCK_S * _WARM_UP_STEPS / warm_up), 1), 500)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or len(times["bare"]) < _LEAST_ROUNDS:
            draws = {}
            for name, client in clients.items():
                # Every round is the same play, in both, as far as the game repeats itself.
                client.reset(seed=seed, reload=True)
                draws[name] = np.random.default_rng(np.random.SeedSequence([seed, 0]))
                times[name].append([])
            for block in range(_BLOCKS):
                for name in sorted(clients, reverse=bool(block % 2)):
                    taken, traces = _play(clients[name], draws[name], steps)
                    times[name][-1].append(taken / steps)
                    if name == "traced":
                        counted += steps
                        for trace in traces:
                            counts += np.bincount(trace, minlength=len(counts))
    return _cost("step", times["traced"], times["bare"], counts / counted, plan)


def _play(
    client: GodotClient, draws: np.random.Generator, steps: int
) -> tuple[float, list[NDArray[np.int32]]]:
    traces: list[NDArray[np.int32]] = []
    actions = [[_action(agent.action, draws) for agent in client.spaces] for _ in range(steps)]
    began = _processor_s(client.pid)
    for action in actions:
        frame = client.step(action)
        if frame.traces[0] is not None:
            traces.append(frame.traces[0])
    return _processor_s(client.pid) - began, traces


def _processor_s(pid: int) -> float:
    """Return the seconds that a process and this one have used; of the clock outside Linux."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
        used = sum(int(task.read_text().split()[0]) for task in tasks)
    except OSError:
        used = 0
    return time.process_time() + 1e-9 * used if used else time.perf_counter()


def _action(parts: Sequence[ActionPart], draws: np.random.Generator) -> dict[str, Any]:
    return {
        part.name: int(draws.integers(part.size))
        if part.discrete
        else draws.uniform(-1.0, 1.0, part.size)
        for part in parts
    }


def _by_frames(engine: Engine, traced: Path, bare: Path, plan: Plan, scene: str | None) -> Cost:
    for copy in (traced, bare):
        (copy / FOLDER / _CLOCK).write_bytes(engine_file(_CLOCK))
        add_autoload(copy, "LanistaFrameClock", f"res://{FOLDER}/{_CLOCK}")
    counts = np.zeros(len(plan.catalogue), np.float64)
    told = _run_frames(engine, traced, scene, counting=True)
    for number, count in told["counts"].items():
        counts[int(number)] = count / (_FRAME_BLOCKS * _BLOCK_FRAMES)
    times: dict[Path, list[list[float]]] = {traced: [], bare: []}
    for _ in range(_FRAME_RUNS):
        for copy in (traced, bare):
            told = _run_frames(engine, copy, scene, counting=False)
            times[copy].append([item / _BLOCK_FRAMES / 1e6 for item in told["times"]])
    return _cost("frame", times[traced], times[bare], counts, plan)


def _run_frames(engine: Engine, copy: Path, scene: str | None, *, counting: bool) -> dict[str, Any]:
    arguments = ["--headless", "--fixed-fps", "60", "--path", str(copy)]
    settings = {
        "LANISTA_WARM_UP": _WARM_UP_FRAMES,
        "LANISTA_BLOCK": _BLOCK_FRAMES,
        "LANISTA_BLOCKS": _FRAME_BLOCKS,
        "LANISTA_COUNTING": int(counting),
    }
    command = ("env", *(f"{name}={value}" for name, value in settings.items()), *engine.command)
    finished = run_engine(command, [*arguments, *([scene] if scene else [])], timeout_s=300.0)
    for line in finished.output.splitlines():
        if line.startswith(_MARK):
            told: dict[str, Any] = json.loads(line.removeprefix(_MARK))
            return told
    raise RunError(
        f"The game ended before its frames were timed (status {finished.code}); it printed last: "
        f"{finished.last_lines or 'nothing'}."
    )


def _cost(
    unit: Literal["step", "frame"],
    traced: Sequence[Sequence[float]],
    bare: Sequence[Sequence[float]],
    calls: NDArray[np.float64],
    plan: Plan,
) -> Cost:
    """Make the cost of times by round and block; block i of every round is the same play."""
    with_hooks, without = np.asarray(traced), np.asarray(bare)
    draws = np.random.default_rng(0)
    rounds = len(without)
    again = [
        _ratio(with_hooks[chosen], without[chosen])
        for chosen in draws.integers(rounds, size=(_RESAMPLES, rounds))
    ]
    low, high = np.quantile(again, (0.25, 0.75))
    named: dict[str, float] = {}
    for number in np.flatnonzero(calls):
        name = plan.definitions[number]
        named[name] = named.get(name, 0.0) + float(calls[number])
    return Cost(
        unit=unit,
        ratio=_ratio(with_hooks, without),
        low=float(low),
        high=float(high),
        rounds=rounds,
        untraced_us=1e6 * float(without.min(axis=0).mean()),
        calls=named,
    )


def _ratio(traced: NDArray[np.float64], bare: NDArray[np.float64]) -> float:
    # Whatever disturbs a block makes it longer, so that its best round says most.
    return float(traced.min(axis=0).sum() / bare.min(axis=0).sum())
