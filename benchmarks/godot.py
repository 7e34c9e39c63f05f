"""Godot: steps per second against godot_rl's own client, and what recording costs.

``python -m benchmarks.godot`` measures on the multi-level robot, or on another project with
continuous actions (``--project``, ``--agents`` as many as it has), both in one run:

* **speed**: agent-steps per second through ``godot_rl``'s ``GodotEnv`` at its defaults and at
  ``speedup=8``, which play the project as it is, and through Lanista's client, which plays a traced
  copy of it, for each number of agents and of processes. Every measurement starts its own
  processes, one measurement at a time and in turn; start-up is not counted, resets are.
* **tracing**: the time of a step of a traced copy over that of a copy with the bridge and without
  hooks. A round plays the same steps from the same seed several times in each copy, in an order
  that rotates, and takes the least time of each step, on the clock and of the processors (engine
  and Python together, which other work on the machine lengthens less); a second untraced copy is
  the A/A control. The observations of all copies are compared.
"""

import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanista.envs.godot
from lanista.envs.godot.bridge_files import install_bridge
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine, find_engine, private_environment
from lanista.envs.godot.project import import_project
from lanista.envs.tracing.gdscript.project import instrument_project

ROBOT = Path(lanista.envs.godot.__file__).parent / "multilevel_robot"
DEFAULTS, SPEEDUP, LANISTA = "godot_rl, its defaults", "godot_rl, speedup=8", "Lanista, traced"
METHODS = (DEFAULTS, SPEEDUP, LANISTA)
TARGETS = {DEFAULTS: 100, SPEEDUP: 20}
AGENTS = (1, 4, 10)
PROCESSES = (1, 2)
OVERHEAD_TARGET = 1.03
KINDS = ("time", "processors")
SEED = 7


@dataclass(frozen=True)
class Setting:
    """One thing measured."""

    method: str
    agents: int
    processes: int


@dataclass(frozen=True)
class Copies:
    """The project as it is, and a traced and an untraced copy that the bridge plays."""

    original: Path
    traced: Path
    untraced: Path


def run_speed(
    copies: Copies,
    engine: Engine,
    rounds: int = 3,
    seconds: float = 4.0,
    agents_counts: Sequence[int] = AGENTS,
) -> list[dict[str, Any]]:
    """Measure every setting ``rounds`` times in turn.

    Returns:
        Rows ``{"method", "agents", "processes", "low", "median", "high"}``: agent-steps per second
        of all processes together, over the rounds; and ``faster``: by how much that is more than
        each way of godot_rl with the first number of agents, median of the rounds' ratios.
    """
    settings = [
        Setting(method, agents, processes)
        for agents in agents_counts
        for method in METHODS
        for processes in (PROCESSES if method == LANISTA else (1,))
    ]
    speeds: dict[Setting, list[float]] = {setting: [] for setting in settings}
    for number in range(rounds):
        for setting in settings if number % 2 == 0 else settings[::-1]:
            speeds[setting].append(_speed(setting, copies, engine, seconds))
    rows = []
    for setting, values in speeds.items():
        row: dict[str, Any] = asdict(setting)
        row |= {
            "low": min(values),
            "median": statistics.median(values),
            "high": max(values),
            "faster": {
                base: statistics.median(
                    here / there
                    for here, there in zip(
                        values, speeds[Setting(base, agents_counts[0], 1)], strict=True
                    )
                )
                for base in TARGETS
            },
        }
        rows.append(row)
    return rows


def run_tracing(
    copies: Copies,
    engine: Engine,
    rounds: int = 9,
    steps: int = 300,
    repeats: int = 5,
    agents: int = 1,
) -> list[dict[str, Any]]:
    """Measure traced against untraced steps of one process.

    Returns:
        Rows ``{"method", "time", "processors", "microseconds", "calls"}``: low quartile, median and
        high quartile of the rounds' ratios of time and of processor time, median time of a step,
        calls recorded in a step; the A/A control first.

    Raises:
        RuntimeError: If the copies do not show the same.
    """
    names = ("untraced", "untraced again (A/A)", LANISTA)
    folders = dict(zip(names, (copies.untraced, copies.untraced, copies.traced), strict=True))
    clients = {name: _start(engine, folder, agents) for name, folder in folders.items()}
    times: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    calls = 0.0
    try:
        hashes = {}
        for name, client in clients.items():
            _, hashes[name], calls = _block(client, steps)
        if len(set(hashes.values())) != 1:
            raise RuntimeError(f"the copies play differently: {hashes}")
        for number in range(rounds):
            least: dict[str, NDArray[np.int64]] = {}
            for repeat in range(repeats):
                shift = (number + repeat) % len(names)
                for name in names[shift:] + names[:shift]:
                    spent, *_ = _block(clients[name], steps)
                    least[name] = np.minimum(least.get(name, spent), spent)
            for name in names:
                times[name].append(least[name].sum(axis=0) / steps / 1000)
    finally:
        for client in clients.values():
            client.close()
    measured = {name: np.array(values) for name, values in times.items()}
    both = (measured[names[0]] + measured[names[1]]) / 2
    rows = []
    for name, base in ((names[1], measured[names[0]]), (LANISTA, both)):
        spread = np.quantile(measured[name] / base, [0.25, 0.5, 0.75], axis=0)
        rows.append(
            {
                "method": name,
                "time": spread[:, 0].tolist(),
                "processors": spread[:, 1].tolist(),
                "microseconds": float(np.median(measured[name][:, 0])),
                "calls": calls if name == LANISTA else 0.0,
            }
        )
    return rows


@contextmanager
def prepared(project: Path, engine: Engine) -> Iterator[Copies]:
    """Copy a project three ways into a temporary folder and import each copy."""
    with tempfile.TemporaryDirectory(prefix="lanista-benchmark-") as name:
        folder = Path(name)
        copies = Copies(folder / "original", folder / "traced", folder / "untraced")
        for copy in (copies.original, copies.untraced):
            shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".godot"))
        install_bridge(copies.untraced)
        for copy in (copies.original, copies.untraced):
            import_project(engine, copy)
        instrument_project(project, copies.traced, engine=engine)
        yield copies


def _speed(setting: Setting, copies: Copies, engine: Engine, seconds: float) -> float:
    """Play in as many processes as asked, begun together; return all their agent-steps a second."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(setting.processes)
    answers = context.SimpleQueue()
    workers = [
        context.Process(target=_work, args=(setting, copies, engine, seconds, barrier, answers))
        for _ in range(setting.processes)
    ]
    for worker in workers:
        worker.start()
    speeds = []
    for worker in workers:
        worker.join(seconds * 10 + 120)
        if worker.exitcode != 0:
            for other in workers:
                other.kill()
            raise RuntimeError(f"{setting} failed with status {worker.exitcode}")
        speeds.append(answers.get())
    return float(sum(speeds))


def _work(
    setting: Setting, copies: Copies, engine: Engine, seconds: float, barrier: Any, answers: Any
) -> None:
    """Play for some seconds and answer with agent-steps per second."""
    player = _lanista if setting.method == LANISTA else _godot_rl
    with player(setting, copies, engine) as step:
        for _ in range(3):
            step()
        barrier.wait()
        start = time.perf_counter()
        done = 0
        while (spent := time.perf_counter() - start) < seconds:
            step()
            done += 1
    answers.put(done * setting.agents / spent)


@contextmanager
def _lanista(setting: Setting, copies: Copies, engine: Engine) -> Iterator[Callable[[], None]]:
    client = _start(engine, copies.traced, agents=setting.agents)
    try:
        world = SEED
        client.reset(seed=world)
        actions = _actions(client, 1000)
        number = 0

        def step() -> None:
            nonlocal number, world
            frame = client.step(actions[number % len(actions)])
            number += 1
            if setting.agents == 1 and (frame.terminated[0] or frame.truncated[0]):
                world += 1
                client.reset(seed=world)

        yield step
    finally:
        client.close()


@contextmanager
def _godot_rl(setting: Setting, copies: Copies, engine: Engine) -> Iterator[Callable[[], None]]:
    from godot_rl.core.godot_env import GodotEnv

    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        # It starts a program by this ending, splits its command at spaces, and chooses no port.
        program = Path(name) / "game.x86_64"
        command = shlex.join([*engine.command, "--path", str(copies.original)])
        program.write_text(f'#!/bin/sh\nexec {command} "$@" >/dev/null 2>&1\n')
        program.chmod(0o755)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        alone = private_environment(Path(name))
        os.environ.clear()
        os.environ.update(alone)
        with contextlib.redirect_stdout(io.StringIO()):
            env = GodotEnv(
                env_path=str(program),
                port=port,
                seed=SEED,
                speedup=8 if setting.method == SPEEDUP else None,
                **_options(setting.agents),
            )
        try:
            if env.num_envs != setting.agents:
                raise RuntimeError(f"the game has {env.num_envs} agents, not {setting.agents}")
            env.reset()
            size = next(iter(env.action_spaces[0].values())).shape[0]
            chance = np.random.default_rng(SEED)
            actions = chance.uniform(-1, 1, (1000, 1, setting.agents, size))
            number = 0

            def step() -> None:
                nonlocal number
                env.step(actions[number % len(actions)])
                number += 1

            yield step
        finally:
            with contextlib.redirect_stdout(io.StringIO()):
                env.close()
            try:
                env.proc.wait(10)
            except subprocess.TimeoutExpired:
                env.proc.kill()
                env.proc.wait()


def _start(engine: Engine, project: Path, agents: int) -> GodotClient:
    client = GodotClient.start(engine, project, seed=SEED, options=_options(agents))
    if client.n_agents != agents:
        client.close()
        raise RuntimeError(f"the game has {client.n_agents} agents, not {agents}")
    return client


def _options(agents: int) -> dict[str, str]:
    return {"agents": str(agents)}


def _actions(client: GodotClient, count: int) -> list[list[dict[str, list[float]]]]:
    """Draw ``count`` steps of actions for all agents of a game with continuous actions."""
    chance = np.random.default_rng(SEED)
    return [
        [
            {part.name: chance.uniform(-1, 1, part.size).tolist() for part in space.action}
            for space in client.spaces
        ]
        for _ in range(count)
    ]


def _block(client: GodotClient, steps: int) -> tuple[NDArray[np.int64], str, float]:
    """Play the same steps as every time.

    Returns:
        Nanoseconds of each step, by the clock and of processors, shape ``[steps, 2]``; a hash of
        what was seen; calls recorded in a step.
    """
    clock, spent, seen = time.perf_counter_ns, np.zeros((steps, 2), np.int64), hashlib.sha256()
    world, calls = SEED, 0
    client.reset(seed=world, reload=True)
    for number, actions in enumerate(_actions(client, steps)):
        used, before = _processor_ns(client.pid), clock()
        frame = client.step(actions)
        spent[number, 0] = clock() - before
        spent[number, 1] = _processor_ns(client.pid) - used
        for observation in frame.obs:
            for value in observation.values():
                seen.update(np.ascontiguousarray(value).tobytes())
        trace = frame.traces[0]
        calls += 0 if trace is None else len(trace)
        if client.n_agents == 1 and (frame.terminated[0] or frame.truncated[0]):
            world += 1
            client.reset(seed=world)
    return spent, seen.hexdigest(), calls / steps


def _processor_ns(pid: int) -> int:
    """Return the processor time of this process and all threads of another, as Linux counts it."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return time.process_time_ns() + sum(int(task.read_text().split()[0]) for task in tasks)


def speed_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of :func:`run_speed` as a Markdown table."""
    lines = [
        "| client | agents | processes | agent-steps/s (least–most) | × defaults | × speedup=8 |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        faster = [f"{row['faster'][base]:.1f}" for base in TARGETS]
        lines.append(
            f"| {row['method']} | {row['agents']} | {row['processes']} | {row['median']:.0f} "
            f"({row['low']:.0f}–{row['high']:.0f}) | {faster[0]} | {faster[1]} |"
        )
    return "\n".join(lines)


def tracing_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of :func:`run_tracing` as a Markdown table."""
    lines = [
        "| game | time, ratio to untraced (quartiles) | processor time | µs/step | calls/step |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        ratios = [f"{row[kind][1]:.3f} ({row[kind][0]:.3f}–{row[kind][2]:.3f})" for kind in KINDS]
        calls = f"{row['calls']:.0f}" if row["calls"] else "–"
        lines.append(
            f"| {row['method']} | {ratios[0]} | {ratios[1]} | {row['microseconds']:.0f} | {calls} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Run both and print their tables; ``--json`` prints the raw rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="of speed; tracing has three times")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement of speed")
    parser.add_argument("--project", type=Path, default=ROBOT)
    parser.add_argument("--agents", type=int, nargs="+", default=AGENTS)
    parser.add_argument("--only", choices=("speed", "tracing"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    engine = find_engine()
    rows: dict[str, Any] = {"engine": engine.version}
    with prepared(options.project, engine) as copies:
        if options.only != "tracing":
            rows["speed"] = run_speed(
                copies, engine, options.rounds, options.seconds, options.agents
            )
        if options.only != "speed":
            rows["tracing"] = run_tracing(
                copies, engine, options.rounds * 3, agents=options.agents[0]
            )
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{options.project.name}, Godot {engine.version}, Python {sys.version.split()[0]}")
    if "speed" in rows:
        targets = ", ".join(f"≥ {least}× of {base}" for base, least in TARGETS.items())
        print(
            f"Speed, {options.rounds} rounds; targets for {options.agents[0]} agent(s): {targets}"
        )
        print(speed_table(rows["speed"]))
    if "tracing" in rows:
        print(f"Recording, {options.rounds * 3} rounds; target ≤ {OVERHEAD_TARGET}")
        print(tracing_table(rows["tracing"]))


if __name__ == "__main__":
    main(sys.argv[1:])
