"""The numbers that a report prints: one row an agent, seeds together, and paired differences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanista.evaluation.evaluation import Evaluation
from lanista.evaluation.report.inputs import AgentReport
from lanista.evaluation.statistics import (
    Interval,
    paired_difference,
    rate_interval,
    t_interval,
    world_interval,
)


@dataclass(frozen=True)
class GroupRow:
    """One agent over its training seeds.

    Attributes:
        name: Name of the group.
        algorithm: Learner.
        variant: ``simple`` or ``ca2``.
        agents: Its seeds.
        success: Success rate: the mean over seeds, its interval over worlds.
        episode_return: Likewise.
        coverage: Functions called over all plays, the mean over seeds; its interval is over
            training seeds, and has no ends for a single one.
        world_coverage: Functions called in one world, the mean over seeds; interval over worlds.
        seed_success: Success rate with its interval over training seeds.
        goals_covered: Goals called over all plays, the mean over seeds.
    """

    name: str
    algorithm: str
    variant: str
    agents: tuple[AgentReport, ...]
    success: Interval
    episode_return: Interval
    coverage: Interval
    world_coverage: Interval
    seed_success: Interval
    goals_covered: float


@dataclass(frozen=True)
class DifferenceRow:
    """CA2 minus Simple of one learner.

    Attributes:
        name: What is compared.
        success: Paired difference of the success rate over worlds.
        episode_return: Paired difference of the return over worlds.
        seeds: Seeds that both have, whose plays were averaged.
        seed_success: Paired difference of the success rate over training seeds.
        goals: Number of goals played by both.
    """

    name: str
    success: Interval
    episode_return: Interval
    seeds: tuple[int, ...]
    seed_success: Interval
    goals: int


def group_rows(agents: Sequence[AgentReport]) -> list[GroupRow]:
    """Put the seeds of each agent together, in the order of first appearance."""
    groups: dict[str, list[AgentReport]] = {}
    for agent in agents:
        groups.setdefault(agent.group, []).append(agent)
    return [_row(name, tuple(members)) for name, members in groups.items()]


def _row(name: str, agents: tuple[AgentReport, ...]) -> GroupRow:
    found = [agent.evaluation for agent in agents]
    if all(_same_plays(found[0], other) for other in found[1:]):
        success = world_interval(mean_table([item.success for item in found]), rate=True)
        returned = world_interval(mean_table([item.returns for item in found]))
        coverage = [_functions_per_world(item) for item in found]
        per_world = t_interval(np.mean(coverage, axis=0), "worlds")
    else:
        # Seeds that were judged differently share no worlds; what is left is their spread.
        success = rate_interval([item.success_rate.value for item in found], "training seeds")
        returned = t_interval([item.episode_return.value for item in found], "training seeds")
        per_world = t_interval([item.world_coverage.value for item in found], "training seeds")
    return GroupRow(
        name=name,
        algorithm=agents[0].algorithm,
        variant=agents[0].variant,
        agents=agents,
        success=success,
        episode_return=returned,
        coverage=t_interval([float(item.coverage) for item in found], "training seeds"),
        world_coverage=per_world,
        seed_success=rate_interval([item.success_rate.value for item in found], "training seeds"),
        goals_covered=float(np.mean([item.goals_covered for item in found])),
    )


def difference_rows(agents: Sequence[AgentReport]) -> list[DifferenceRow]:
    """Compare each code-aware agent with the *Simple* one of the same learner and options.

    Only agents that played the same goals in the same worlds under one step cap are paired.
    """
    rows = []
    groups = group_rows(agents)
    for simple in (row for row in groups if row.variant == "simple"):
        for other in groups:
            if other.variant == "simple" or _kin(other) != _kin(simple):
                continue
            row = _difference(simple, other)
            if row is not None:
                rows.append(row)
    return rows


def _kin(row: GroupRow) -> tuple[str, str]:
    return row.algorithm, row.agents[0].options


def _difference(simple: GroupRow, other: GroupRow) -> DifferenceRow | None:
    first = {agent.seed: agent.evaluation for agent in other.agents}
    second = {agent.seed: agent.evaluation for agent in simple.agents}
    seeds = sorted(
        seed for seed in first.keys() & second.keys() if _same_plays(first[seed], second[seed])
    )
    if not seeds or not all(_same_plays(first[seeds[0]], first[seed]) for seed in seeds):
        return None
    ours, theirs = [first[seed] for seed in seeds], [second[seed] for seed in seeds]
    per_seed = [_mean(our.success - their.success) for our, their in zip(ours, theirs, strict=True)]
    return DifferenceRow(
        name=f"{other.name} − {simple.name}",
        success=paired_difference(
            mean_table([item.success for item in ours]),
            mean_table([item.success for item in theirs]),
        ),
        episode_return=paired_difference(
            mean_table([item.returns for item in ours]),
            mean_table([item.returns for item in theirs]),
        ),
        seeds=tuple(seeds),
        seed_success=t_interval(per_seed, "training seeds"),
        goals=len(ours[0].protocol.goals),
    )


def mean_table(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean over seeds, play by play; NaN where any seed's play is missing."""
    mean: NDArray[np.float64] = np.mean(np.stack(tables), axis=0)
    return mean


def _same_plays(first: Evaluation, second: Evaluation) -> bool:
    ours, theirs = first.protocol, second.protocol
    return (ours.game, ours.goals, ours.worlds, ours.step_cap, ours.scheme) == (
        theirs.game,
        theirs.goals,
        theirs.worlds,
        theirs.step_cap,
        theirs.scheme,
    )


def _functions_per_world(found: Evaluation) -> NDArray[np.float64]:
    counts = found.called.any(axis=0).sum(axis=1).astype(np.float64)
    counts[~found.played.any(axis=0)] = np.nan
    return counts


def _mean(table: NDArray[np.float64]) -> float:
    return float(np.nanmean(table)) if not np.all(np.isnan(table)) else float("nan")
