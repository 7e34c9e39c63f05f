"""Learning curves as SVG that takes its text and line colours from the page around it."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanista.evaluation.report.inputs import AgentReport

PALETTE = (
    "#3b76c4",
    "#d9772b",
    "#2f9e6e",
    "#b0559a",
    "#8a8330",
    "#6f6fd1",
    "#c2484f",
    "#4b97a8",
    "#7d6148",
    "#71808f",
)
_INK, _LINE = "#010203", "#040506"
_PANELS = 6
_FIRST = ("loss", "accuracy", "success", "evaluate")


@dataclass(frozen=True)
class LegendEntry:
    """What a line of the charts stands for.

    Attributes:
        name: Name of the group.
        colour: Its colour; one a learner.
        dashed: Whether its line is dashed: *Simple* agents'.
    """

    name: str
    colour: str
    dashed: bool


def legend(agents: Sequence[AgentReport]) -> list[LegendEntry]:
    """Give each learner a colour; *Simple* agents are dashed, further encoders get their own."""
    entries: dict[str, LegendEntry] = {}
    colours: dict[tuple[str, str, str], str] = {}
    for agent in agents:
        if agent.group in entries:
            continue
        # The first code-aware agent of a learner shares the colour of the Simple one.
        kin = agent.algorithm, agent.options, ""
        if agent.variant == "ca2" and any(
            entry.colour == colours.get(kin) and not entry.dashed for entry in entries.values()
        ):
            kin = agent.algorithm, agent.options, agent.encoder
        colour = colours.setdefault(kin, PALETTE[len(colours) % len(PALETTE)])
        entries[agent.group] = LegendEntry(agent.group, colour, agent.variant == "simple")
    return list(entries.values())


def learning_curves(agents: Sequence[AgentReport]) -> str:
    """Draw one panel a metric, one thin line a seed; an empty string where there are no curves."""
    metrics = sorted({name for agent in agents for name, points in agent.curves.items() if points})
    if not metrics:
        return ""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # What is learned comes before how fast it went.
    metrics = sorted(metrics, key=_interest)[:_PANELS]
    columns = min(3, max(2, len(metrics)))
    rows = -(-len(metrics) // columns)
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "lanista",
        "font.family": "sans-serif",
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.edgecolor": _LINE,
        "grid.color": _LINE,
        "font.size": 10.5,
    }
    entries = {entry.name: entry for entry in legend(agents)}
    with mpl.rc_context(style):
        # As wide as the page, so that its text comes out as large as it says.
        figure = Figure(figsize=(14, 3.4 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, metric in zip(panels, metrics, strict=False):
            for agent in agents:
                points = agent.curves.get(metric, ())
                if points:
                    entry = entries[agent.group]
                    panel.plot(
                        [update for update, _ in points],
                        [value for _, value in points],
                        color=entry.colour,
                        linestyle="--" if entry.dashed else "-",
                        linewidth=1.8,
                        marker="o" if len(points) == 1 else None,
                        markersize=3,
                    )
            panel.set_title(metric, fontsize=11.5, loc="left")
            panel.set_xlabel("updates")
            panel.grid(visible=True, linewidth=0.5, alpha=0.6)
            panel.spines[["top", "right"]].set_visible(False)
        for panel in panels[len(metrics) :]:
            panel.set_visible(False)
        return _svg(figure)


def _interest(metric: str) -> tuple[int, str]:
    ranks = [rank for rank, word in enumerate(_FIRST) if word in metric]
    return min(ranks, default=len(_FIRST)), metric


def _svg(figure: object) -> str:
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    return text.replace(_INK, "var(--ink)").replace(_LINE, "var(--line)")
