"""What recording costs: traced over untraced ``env.step`` of the fast Crafter, others beside it.

``python -m benchmarks.tracing`` plays the same steps from the same saved state under each method.
A round plays them ``repeats`` times with every method in turn, in an order that rotates, and takes
the least time of each step: what another process does to one of the repeats drops out, what a
method does in each of them stays. Lanista's time includes reading all traces of the block as
arrays. A round's time is divided by the mean of its two untraced ones; their own ratio is the A/A
control. Code that has just been exchanged is warmed up before the clock runs.
"""

import argparse
import cProfile
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.crafter import environment as crafter_environment
from lanista.envs.crafter.game import scope
from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.tracer import Tracer

WARM_UP = 60
STEPS = 200
REPEATS = 3
WORLD = 11
TARGET = 1.03


def run(rounds: int = 15, steps: int = STEPS, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Measure; return a row per method with the median ratio of the rounds and its quartiles.

    Returns:
        Rows ``{"method", "ratio", "low", "high", "ordered", "by_class", "microseconds"}``; the
        first is the A/A control, the second Lanista's own. ``microseconds`` is the median of a
        step's time.
    """
    env = crafter_environment.Crafter(render_mode="rgb_array")
    env.reset(options={"world": WORLD})
    start = env.save()
    draws = np.random.default_rng(0)
    warm_up = draws.integers(0, 17, WARM_UP).tolist()
    actions = draws.integers(0, 17, steps).tolist()

    def block(played: Any) -> NDArray[np.int64]:
        """Return the nanoseconds of every step, and last of reading all traces."""
        env.restore(start)
        for action in warm_up:
            if played.step(action)[2]:
                env.restore(start)
        env.restore(start)
        clock, spent, traces = time.perf_counter_ns, np.zeros(steps + 1, np.int64), []
        # The collector runs at the same steps of each repeat, so that its share is not lost.
        gc.collect()
        for number, action in enumerate(actions):
            before = clock()
            result = played.step(action)
            spent[number] = clock() - before
            traces.append(result[4]["call_trace"])
            if result[2]:
                env.restore(start)
        if played is not env:
            before = clock()
            read = sum(len(trace.ids) for trace in traces)
            spent[steps] = clock() - before
            assert read
        return spent

    def inside(method: Callable[[], Any]) -> NDArray[np.int64]:
        with method():
            return block(env)

    tracers = {name: Tracer(scope(), name) for name in ("class", "definition", "edge")}

    def traced(name: str) -> NDArray[np.int64]:
        # The wrapper closes the game with itself, so only its recording is stopped here.
        tracer = tracers[name]
        with tracer:
            return block(_Recorded(env, tracer))

    methods: dict[str, Callable[[], NDArray[np.int64]]] = {
        "untraced": lambda: block(env),
        "untraced again (A/A)": lambda: block(env),
        "Lanista, class": lambda: traced("class"),
        "Lanista, definition": lambda: traced("definition"),
        "Lanista, edge": lambda: traced("edge"),
        "sys.monitoring": lambda: inside(_monitoring),
        "sys.setprofile": lambda: inside(_setprofile),
        "cProfile": lambda: inside(_cprofile),
        "coverage.py": lambda: inside(_coverage),
    }
    names = list(methods)
    times: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        methods[name]()
    for number in range(rounds):
        least: dict[str, NDArray[np.int64]] = {}
        for repeat in range(repeats):
            shift = (number + repeat) % len(names)
            for name in names[shift:] + names[:shift]:
                spent = methods[name]()
                least[name] = np.minimum(least.get(name, spent), spent)
        for name in names:
            times[name].append(float(least[name].sum()) / steps / 1000)
    plain, again = np.array(times["untraced"]), np.array(times["untraced again (A/A)"])
    rows = []
    for name in names[1:]:
        base = plain if name == names[1] else (plain + again) / 2
        low, ratio, high = np.quantile(np.array(times[name]) / base, [0.25, 0.5, 0.75]).tolist()
        rows.append(
            {
                "method": name,
                "ratio": ratio,
                "low": low,
                "high": high,
                "ordered": name not in {"cProfile", "coverage.py"},
                "by_class": name in {"Lanista, class", "sys.setprofile"},
                "microseconds": float(np.median(times[name])),
            }
        )
    env.close()
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| method | ratio to untraced (quartiles) | µs/step | ordered, repeated | class of self |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        control = row["method"].startswith("untraced")
        ordered = "–" if control else "yes" if row["ordered"] else "no"
        by_class = "–" if control else "yes" if row["by_class"] else "no"
        spread = f"{row['ratio']:.3f} ({row['low']:.3f}–{row['high']:.3f})"
        lines.append(
            f"| {row['method']} | {spread} | {row['microseconds']:.0f} | {ordered} | {by_class} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Run and print the table; ``--json`` prints the raw rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a block")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="blocks of a round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = run(options.rounds, options.steps, options.repeats)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(
        f"env.step of the fast Crafter, default scope, {options.rounds} rounds of "
        f"{options.repeats} × {options.steps} steps, Python {sys.version.split()[0]}; "
        f"target ≤ {TARGET} for class"
    )
    print(table(rows))


class _Recorded(TracedEnv):
    """The traced environment, whose tracer the benchmark itself puts in and takes out."""

    def __init__(self, env: Any, tracer: Tracer) -> None:
        super().__init__(env, tracer)
        self._stop()


def _codes() -> list[CodeType]:
    """The code objects of the default scope, found from the modules themselves."""
    import crafter

    found: list[CodeType] = []
    for holder in (crafter.env, crafter.objects, crafter.engine.World):
        values = vars(holder).values()
        classes = [holder] if isinstance(holder, type) else []
        classes += [v for v in values if isinstance(v, type) and v.__module__ == holder.__name__]
        for owner in classes:
            for value in vars(owner).values():
                for function in (value, getattr(value, "fget", None), getattr(value, "fset", None)):
                    if isinstance(function, FunctionType):
                        found.extend(_with_inner(function.__code__))
    return found


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


@contextmanager
def _monitoring() -> Iterator[None]:
    codes = _codes()
    numbers = {id(code): number for number, code in enumerate(codes)}
    record: list[int] = []
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(2, "benchmark")
    append = record.append

    def started(code: CodeType, _: int) -> None:
        append(numbers[id(code)])

    sys.monitoring.register_callback(2, events.PY_START, started)
    for code in codes:
        sys.monitoring.set_local_events(2, code, events.PY_START)
    try:
        yield
    finally:
        for code in codes:
            sys.monitoring.set_local_events(2, code, 0)
        sys.monitoring.free_tool_id(2)


@contextmanager
def _setprofile() -> Iterator[None]:
    wanted = {id(code) for code in _codes()}
    record: list[tuple[int, type]] = []
    append = record.append

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and id(frame.f_code) in wanted:
            append((id(frame.f_code), type(frame.f_locals.get("self"))))

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextmanager
def _cprofile() -> Iterator[None]:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()


@contextmanager
def _coverage() -> Iterator[None]:
    import coverage

    measured = coverage.Coverage(data_file=None, source_pkgs=["crafter"], config_file=False)
    measured.start()
    try:
        yield
    finally:
        measured.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
