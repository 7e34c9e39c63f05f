"""What every trained agent of a sweep is judged by, and the table that comes of it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lanista.agents.player import load_player
from lanista.data.executor import Executor
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.protocol import check_protocol, evaluate
from lanista.evaluation.statistics import Interval, rate_interval, t_interval
from lanista.platform.experiment import EvaluateConfig, GoalSubset
from lanista.platform.training import Data


def make_protocol(config: EvaluateConfig, data: Data) -> GoalProtocol:
    """Fill in what a file leaves to the data and the game, and refuse what makes no sense.

    A subset of n goals is taken at even distances from all of them ordered by how many recorded
    steps call them (ties by name), so it spans easy and hard ones without any of them being
    chosen by hand.

    Raises:
        InputError: With a line for each thing that is wrong.
    """
    names = data.goal_names
    if isinstance(config.goals, GoalSubset):
        names = spread(data, config.goals.subset)
    elif config.goals != "all":
        names = tuple(config.goals)
    protocol = GoalProtocol(
        game=data.store.game_id,
        goals=names,
        episodes=config.episodes,
        worlds=config.world_list,
        step_cap=config.step_cap or data.game.step_cap,
        seed=config.seed,
        scheme=data.store.catalogue.scheme,
        goal_base=data.goal_names,
    )
    checked, _, _ = check_protocol(protocol, training_worlds=data.worlds)
    return checked


def spread(data: Data, count: int) -> tuple[str, ...]:
    """Return ``count`` goals at even distances in the order of how often they are called."""
    goals = set(data.goals)
    rows = [row for row in data.store.manifest["functions"] if row["id"] in goals]
    ordered = [row["name"] for row in sorted(rows, key=lambda row: (-row["steps"], row["name"]))]
    if count >= len(ordered):
        return tuple(ordered)
    step = (len(ordered) - 1) / max(1, count - 1)
    return tuple(ordered[round(index * step)] for index in range(count))


def judge(
    checkpoint: Path,
    protocol: GoalProtocol,
    data: Data,
    executor: Executor,
    *,
    greedy: bool,
    scratch: Path,
    on_unit: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Judge one checkpoint by the protocol; see :func:`lanista.evaluation.evaluate`."""
    player = load_player(
        checkpoint, data.game.catalogue(data.store.catalogue.scheme), "cpu", greedy
    )
    return evaluate(
        protocol,
        partial(load_player, checkpoint, device="cpu", greedy=greedy),
        player.content_hash,
        executor,
        on_unit=on_unit,
        training_worlds=data.worlds,
        scratch=scratch,
    )


def evaluation_metrics(found: Evaluation) -> dict[str, float]:
    """Return an evaluation's numbers under the names of :data:`..tracking.METRICS`.

    What was not observed is left out.
    """
    metrics: dict[str, float] = {}
    for name, interval in (
        ("success_rate", found.success_rate),
        ("episode_return", found.episode_return),
    ):
        metrics[f"evaluate/{name}"] = interval.value
        metrics[f"evaluate/{name}_low"] = interval.low
        metrics[f"evaluate/{name}_high"] = interval.high
    metrics |= {
        "evaluate/function_coverage": float(found.coverage),
        "evaluate/function_coverage_low": found.world_coverage.low,
        "evaluate/function_coverage_high": found.world_coverage.high,
        "evaluate/function_coverage_share": found.coverage / max(1, len(found.catalogue)),
        "evaluate/goals": float(len(found.protocol.goals)),
        "evaluate/episodes": float(found.played.sum()),
        "evaluate/steps": float(found.steps.sum()),
        "evaluate/findings": float(len(found.findings)),
        "evaluate/restarted": float(found.restarted),
    }
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def make_table(evaluations: Mapping[str, Sequence[Evaluation]]) -> list[dict[str, Any]]:
    """Return one row an agent: ``agent``, ``seeds`` and three metrics of value, low and high.

    With several training seeds a value is the mean over them and the interval Student's t over
    them. With one seed, success rate and return have their intervals over worlds; coverage is a
    union that worlds give no interval to, so its interval is that of the mean functions called in
    one world, and ``interval_of`` says so.
    """
    rows = []
    for label, found in evaluations.items():
        if not found:
            continue
        row: dict[str, Any] = {"agent": label, "seeds": len(found)}
        if len(found) == 1:
            [only] = found
            row["success_rate"] = _cell(only.success_rate.to_json())
            row["episode_return"] = _cell(only.episode_return.to_json())
            row["function_coverage"] = dict(only.summary()["function_coverage"])
        else:
            row["success_rate"] = _over_seeds(
                (item.success_rate.value for item in found), rate_interval
            )
            row["episode_return"] = _over_seeds(item.episode_return.value for item in found)
            row["function_coverage"] = _over_seeds(float(item.coverage) for item in found)
            row["function_coverage"]["interval_of"] = "coverage, over training seeds"
        row["function_coverage"]["functions"] = len(found[0].catalogue)
        rows.append(row)
    return rows


def _over_seeds(
    values: Iterable[float], make: Callable[[Sequence[float], str], Interval] = t_interval
) -> dict[str, Any]:
    return _cell(make(list(values), "training seeds").to_json())


def _cell(interval: Mapping[str, Any]) -> dict[str, Any]:
    return {name: interval[name] for name in ("value", "low", "high")}
