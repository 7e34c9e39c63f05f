"""``lanista sweep`` and ``lanista resume``."""

from typing import Annotated, Any

import typer

from lanista.platform.cli.options import (
    JsonOption,
    ProfileOption,
    RootOption,
    SeedOption,
    SetOption,
)
from lanista.platform.cli.output import emit, make_table
from lanista.platform.cli.train import FileArgument, NameOption

WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Ray actors that record and judge; one per CPU by default."
    ),
]


def sweep(
    file: FileArgument,
    name: NameOption = None,
    workers: WorkersOption = None,
    overrides: SetOption = None,
    profile: ProfileOption = None,
    root: RootOption = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="The one training seed to run.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train and judge every agent of a file, or go on where that was interrupted.

    Example: lanista sweep experiments/crafter_table1.yaml --profile quick --workers 2
    """
    from lanista.platform.experiment import read_sweep
    from lanista.platform.root import Root
    from lanista.platform.sweep import run_sweep

    changes = list(overrides or [])
    if workers is not None:
        changes.append(f"scheduling.workers={workers}")
    if seed is not None:
        changes.append(f"seeds=[{seed}]")
    described = read_sweep(file, overrides=changes, profile=profile, name=name)
    finish(run_sweep(described, Root.find(root)), as_json=as_json)


def resume(
    name: Annotated[str, typer.Argument(help="Name of the sweep.", metavar="NAME")],
    workers: WorkersOption = None,
    root: RootOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Go on with a sweep that was interrupted, from the configuration that it began with.

    Its seeds are those it began with; --seed changes nothing here.

    Example: lanista resume crafter-table1
    """
    del seed
    from lanista.platform.root import Root
    from lanista.platform.sweep import resume_sweep

    finish(resume_sweep(Root.find(root), name, workers), as_json=as_json)


def finish(result: dict[str, Any], *, as_json: bool) -> None:
    """Print what a sweep came to; exit 1 where a trial failed."""
    emit(result, as_json=as_json, shown=results_table(result))
    if not as_json:
        from lanista.platform.cli.output import say

        for item in result["failures"]:
            say(f"failed: {item['trial']}: {item['error']}")
        spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result["parts"].items())
        say(f"Time:    {result['seconds']:.0f} s ({spent})")
        say(f"Report:  {result['report'] or 'none, since no trial was judged'}")
        say(f"Compare: {result['compare']}")
    if result["failed"]:
        raise typer.Exit(1)


def results_table(result: dict[str, Any]) -> Any:
    """Make the table of agents with what they were judged on as its title."""
    stated = result["protocol"]
    title = (
        f"{result['name']}: {stated['goals']} of {stated['goals_in_all']} goals × "
        f"{stated['episodes']} episodes, cap {stated['step_cap']} steps, "
        f"batch {stated['batch_size']}, {stated['updates']} updates"
    )
    columns = {
        "agent": "left",
        "seeds": "right",
        "success rate": "right",
        "episode return": "right",
        "function coverage": "right",
    }
    rows = []
    for row in result["table"]:
        coverage = row["function_coverage"]
        rows.append(
            [
                row["agent"],
                str(row["seeds"]),
                _shown(row["success_rate"], 100, " %"),
                _shown(row["episode_return"]),
                _coverage(coverage),
            ]
        )
    return make_table(title, columns, rows)


def _coverage(cell: dict[str, Any]) -> str:
    """Write coverage; with one seed its interval is of another quantity, named beside it."""
    if cell.get("mean_per_world") is None:
        return f"{_shown(cell)} of {cell['functions']}"
    per_world = _shown({**cell, "value": cell["mean_per_world"]})
    return f"{cell['value']} of {cell['functions']} (in one world {per_world})"


def _shown(cell: dict[str, Any], factor: float = 1.0, unit: str = "") -> str:
    """Write a value with its interval, where it has one."""
    if cell["value"] is None:
        return "–"
    text = f"{cell['value'] * factor:.3g}{unit}"
    if cell["low"] is None or cell["high"] is None:
        return text
    return f"{text} [{cell['low'] * factor:.3g}, {cell['high'] * factor:.3g}]"
