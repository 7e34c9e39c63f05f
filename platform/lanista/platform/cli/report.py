"""``lanista report``."""

from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SeedOption
from lanista.platform.cli.output import emit, progress


def report(
    name: Annotated[str, typer.Argument(help="Name of the sweep, a folder under runs/.")],
    videos: Annotated[
        int, typer.Option("--videos", min=0, help="Videos to show at most; 0 for none.")
    ] = 4,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Write the HTML page of a sweep: one file that needs nothing else.

    Example: lanista report demo
    """
    # A report draws nothing at random.
    del seed
    from lanista.envs.errors import InputError
    from lanista.evaluation.report.collect import collect_report_input
    from lanista.evaluation.report.page import write_report
    from lanista.platform.root import Root

    runs = Root.find(root).runs
    folder = runs / name
    if not folder.resolve().is_relative_to(runs.resolve()) or not folder.is_dir():
        known = sorted(path.parent.name for path in runs.glob("*/sweep.json"))
        raise InputError(
            f"No sweep is named {name!r} under {runs}; "
            + (f"there are {', '.join(known)}." if known else "there is none yet.")
        )
    with progress(None, "Reporting"):
        path = write_report(collect_report_input(folder, videos=videos), folder / "report.html")
    emit({"path": str(path)}, as_json=as_json, shown=str(path))
