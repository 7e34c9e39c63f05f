"""Turning a report's input into one HTML file that needs nothing else."""

import base64
import math
from pathlib import Path
from typing import Any

import numpy as np

from lanista.data.files import write_atomically
from lanista.envs.errors import InputError
from lanista.evaluation.report.charts import learning_curves, legend
from lanista.evaluation.report.coverage_map import coverage_map
from lanista.evaluation.report.inputs import ReportInput, VideoClip
from lanista.evaluation.report.tables import GroupRow, difference_rows, group_rows, mean_table
from lanista.evaluation.statistics import Interval, wilson_interval
from lanista.evaluation.video import still_of

_TEMPLATE = "template.html.j2"


def write_report(content: ReportInput, file: Path) -> Path:
    """Write the page, and return its absolute path.

    Raises:
        InputError: If there is no agent to report, a video is missing, or the file cannot be
            written.
    """
    write_atomically(file, render_report(content).encode())
    return file.resolve()


def render_report(content: ReportInput) -> str:
    """Return the page's HTML: styles, charts and videos are inside.

    Raises:
        InputError: If there is no agent to report or a video is missing.
    """
    import jinja2

    if not content.agents:
        raise InputError("A report needs at least one agent that was judged.")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "percent": _percent,
        "percent_range": lambda found: _range(found, _percent),
        "points": _points,
        "points_range": lambda found: _range(found, _points),
        "number": _number,
        "number_range": lambda found: _range(found, _number),
        "clip": lambda value: min(100.0, max(0.0, 100 * value)),
        "known": lambda value: not math.isnan(value),
        "short": lambda name: name.rpartition(":")[2],
    }
    rows = group_rows(content.agents)
    first = content.agents[0].evaluation
    files = coverage_map(content.agents, content.recorded)
    return environment.get_template(_TEMPLATE).render(
        content=content,
        rows=rows,
        differences=difference_rows(content.agents),
        legend=legend(content.agents),
        curves=learning_curves(content.agents),
        goals=_goal_table(rows),
        files=files,
        unreached=sum(cell.agents == 0 for file in files for cell in file.cells),
        missed=sum(
            cell.agents == 0 and cell.recorded is True for file in files for cell in file.cells
        ),
        protocol=first.protocol,
        protocols_agree=all(
            agent.evaluation.protocol == first.protocol for agent in content.agents
        ),
        engine=first.engine,
        functions=len(first.catalogue),
        goal_count=len(first.goal_base),
        scheme=first.catalogue.scheme,
        catalogue_sha256=first.catalogue.sha256,
        lost=sum(int((~agent.evaluation.played).sum()) for agent in content.agents),
        videos=[(clip, _embedded(clip.file), _still(clip)) for clip in content.videos],
    )


def _goal_table(rows: list[GroupRow]) -> list[dict[str, Any]]:
    """Return per goal the success rate of each group, hardest goals last."""
    names = dict.fromkeys(
        name for row in rows for agent in row.agents for name in agent.evaluation.protocol.goals
    )
    table = []
    for name in names:
        cells = [_goal_cell(row, name) for row in rows]
        known = [cell.value for cell in cells if cell is not None and cell.samples]
        table.append(
            {"name": name, "cells": cells, "mean": float(np.mean(known)) if known else -1.0}
        )
    return sorted(table, key=lambda item: (-item["mean"], item["name"]))


def _goal_cell(row: GroupRow, name: str) -> Interval | None:
    tables = [
        agent.evaluation.success[agent.evaluation.protocol.goals.index(name)]
        for agent in row.agents
        if name in agent.evaluation.protocol.goals
    ]
    if not tables:
        return None
    if len(tables) == 1:
        known = tables[0][~np.isnan(tables[0])]
        return wilson_interval(int(known.sum()), known.size)
    if len({table.shape for table in tables}) > 1:
        known = np.concatenate(tables)
        return Interval(float(np.nanmean(known)), math.nan, math.nan, known.size, "no interval")
    # Plays of several seeds in one world are one cluster: Wilson's with the worlds as trials.
    means = mean_table(tables)
    means = means[~np.isnan(means)]
    found = wilson_interval(round(float(means.sum())), means.size)
    value = float(means.mean()) if means.size else math.nan
    return Interval(value, min(found.low, value), max(found.high, value), means.size, found.method)


def _embedded(file: Path) -> str:
    try:
        return base64.b64encode(file.read_bytes()).decode()
    except OSError as error:
        raise InputError(f"The video {file} cannot be read: {error.strerror}.") from error


def _still(clip: VideoClip) -> str:
    file = still_of(clip.file)
    return _embedded(file) if file.exists() else ""


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _points(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:+.1f}".replace("-", "−")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")


def _range(found: Interval, shown: Any) -> str:
    if math.isnan(found.low):
        return ""
    return f"{shown(found.low)} to {shown(found.high)}"
