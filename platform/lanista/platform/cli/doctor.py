"""``lanista doctor``."""

from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SeedOption
from lanista.platform.cli.output import emit, make_table


def doctor(
    root: RootOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out starting Ray.")] = False,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Check this machine and say what to do about each failure.

    Example: lanista doctor --json
    """
    del seed
    from lanista.platform.doctor import run_checks

    checks = run_checks(root, start_ray=not quick)
    table = make_table(
        "This machine",
        {"check": "left", "": "left", "detail": "left", "what to do": "left"},
        [[item.name, "ok" if item.ok else "FAILS", item.detail, item.fix] for item in checks],
    )
    emit({"checks": [item.__dict__ for item in checks]}, as_json=as_json, shown=table)
    if not all(item.ok for item in checks):
        raise typer.Exit(1)
