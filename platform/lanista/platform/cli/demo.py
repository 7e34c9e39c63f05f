"""``lanista demo``."""

from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SetOption
from lanista.platform.cli.sweep import WorkersOption, finish


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="The same job, smaller still: about two minutes.")
    ] = False,
    workers: WorkersOption = None,
    overrides: SetOption = None,
    root: RootOption = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Training seed; 0 by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Record Crafter, train code-aware and plain agents, judge them, leave a report.

    Example: lanista demo --quick
    """
    from lanista.platform.demo import demo_sweep
    from lanista.platform.root import Root
    from lanista.platform.sweep import run_sweep

    changes = list(overrides or [])
    if workers is not None:
        changes.append(f"scheduling.workers={workers}")
    if seed is not None:
        changes.append(f"seeds=[{seed}]")
    described = demo_sweep(quick=quick, overrides=changes)
    finish(run_sweep(described, Root.find(root)), as_json=as_json)
