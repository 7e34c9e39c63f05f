"""Steps per second of Lanista's Crafter against stock Crafter, side by side in one run.

``python -m benchmarks.crafter`` plays the same worlds and random actions, resets included, in

* ``stock``: ``crafter.Env`` as ``pip install crafter`` gives it, without Numba;
* ``stock+numba``: the same where Numba is installed, which the noise library then uses by itself;
* ``lanista``: ``lanista/Crafter-v0``.

Both stock games have the determinism fixes and nothing else. Each plays in a process of its own,
one at a time and in turn, and time is the CPU time of the playing process, resets included and
start-up not. The observations of all three are hashed and must be equal.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

KINDS = ("stock", "stock+numba", "lanista")


def run(rounds: int = 15, steps: int = 400, seed: int = 0) -> dict[str, Any]:
    """Play ``rounds`` times ``steps`` steps with each game in turn.

    Returns:
        ``steps_per_second``: median by game; ``ratio``: for each stock game the median, least and
        greatest ratio of a round, and ``whole``, that of the whole run; ``resets``;
        ``observations_sha256``, the same for all games.

    Raises:
        RuntimeError: If the observations of two games differ.
    """
    servers = {
        kind: subprocess.Popen(
            [sys.executable, "-m", "benchmarks.crafter", "--serve", kind, "--seed", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        for kind in KINDS
    }
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    answers: dict[str, dict[str, Any]] = {}
    try:
        for number in range(rounds):
            order = KINDS if number % 2 == 0 else KINDS[::-1]
            for kind in order:
                answers[kind] = _ask(servers[kind], steps)
                seconds[kind].append(answers[kind]["seconds"])
            hashes = {kind: answer["sha256"] for kind, answer in answers.items()}
            if len(set(hashes.values())) != 1:
                raise RuntimeError(f"the games differ in round {number}: {hashes}")
    finally:
        for server in servers.values():
            server.communicate()
    ratios = {
        kind: [slow / fast for slow, fast in zip(seconds[kind], seconds["lanista"], strict=True)]
        for kind in KINDS[:2]
    }
    return {
        "rounds": rounds,
        "steps": rounds * steps,
        "resets": answers["lanista"]["resets"],
        "steps_per_second": {kind: rounds * steps / sum(seconds[kind]) for kind in KINDS},
        "ratio": {
            kind: {
                "whole": sum(seconds[kind]) / sum(seconds["lanista"]),
                "median": statistics.median(values),
                "least": min(values),
                "greatest": max(values),
            }
            for kind, values in ratios.items()
        },
        "observations_sha256": answers["lanista"]["sha256"],
    }


def _ask(server: "subprocess.Popen[str]", steps: int) -> dict[str, Any]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{steps}\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


def _serve(kind: str, seed: int) -> None:
    """Play as many steps as each line of standard input says, and answer with time and hash."""
    if kind == "stock":
        sys.modules["numba"] = None  # type: ignore[assignment]
        import opensimplex  # noqa: F401  (the noise library looks for Numba once)

        del sys.modules["numba"]
    reset, step = _game(kind)
    import numpy as np

    chance = np.random.default_rng(seed)
    seen, resets, world, over = hashlib.sha256(), 0, seed, False
    reset(world), step(0)  # compiles or loads what has been compiled
    for line in sys.stdin:
        actions = chance.integers(17, size=int(line)).tolist()
        observations = []
        start = time.process_time()
        if not resets:
            observations.append(reset(world))
            resets = 1
        for action in actions:
            if over:
                world, resets = world + 1, resets + 1
                observations.append(reset(world))
            observation, over = step(action)
            observations.append(observation)
        seconds = time.process_time() - start
        for observation in observations:
            seen.update(observation.tobytes())
        answer = {"seconds": seconds, "sha256": seen.hexdigest(), "resets": resets}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _game(kind: str) -> tuple[Callable[[int], Any], Callable[[int], tuple[Any, bool]]]:
    from lanista.envs.crafter import Crafter

    if kind == "lanista":
        env = Crafter()

        def step(action: int) -> tuple[Any, bool]:
            observation, _, terminated, truncated, _ = env.step(action)
            return observation, terminated or truncated

        return lambda world: env.reset(options={"world": world})[0], step

    import crafter

    from lanista.envs.crafter.determinism import make_deterministic, reset_world

    game = crafter.Env()
    make_deterministic(game)

    def stock_step(action: int) -> tuple[Any, bool]:
        observation, _, done, _ = game.step(action)
        return observation, done

    return lambda world: reset_world(game, world), stock_step


def main(arguments: Sequence[str] = ()) -> None:
    """Run and print the table; ``--json`` prints the raw result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=400, help="steps of a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        _serve(options.serve, options.seed)
        return
    result = run(options.rounds, options.steps, options.seed)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"Random play, {result['steps']} steps in {result['rounds']} rounds, "
        f"{result['resets']} resets, observations equal ({result['observations_sha256'][:12]})"
    )
    for kind in KINDS:
        line = f"{kind:12} {result['steps_per_second'][kind]:7.0f} steps/s"
        if kind in result["ratio"]:
            ratio = result["ratio"][kind]
            line += (
                f"   lanista is {ratio['whole']:.1f}× as fast "
                f"(rounds {ratio['least']:.1f} to {ratio['greatest']:.1f}, "
                f"median {ratio['median']:.1f})"
            )
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
