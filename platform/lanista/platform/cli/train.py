"""``lanista train``."""

from pathlib import Path
from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, ProfileOption, RootOption, SetOption
from lanista.platform.cli.output import emit, make_table

FileArgument = Annotated[Path, typer.Argument(help="YAML file; see experiments/.", metavar="FILE")]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the run; the file's own by default.")
]


def train(
    file: FileArgument,
    name: NameOption = None,
    overrides: SetOption = None,
    profile: ProfileOption = None,
    root: RootOption = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Training seed; the file's by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train the agent that a file describes, or go on where its training was interrupted.

    Example: lanista train experiments/crafter_train.yaml --set train.steps=500 --name short
    """
    from lanista.platform.experiment import read_training
    from lanista.platform.root import Root
    from lanista.platform.train_run import run_training

    changes = [*(overrides or []), *([] if seed is None else [f"train.seed={seed}"])]
    described = read_training(file, overrides=changes, profile=profile, name=name)
    result = run_training(described, Root.find(root))
    table = make_table(
        f"Trained {result['name']}",
        {"what": "left", "value": "left"},
        [
            ["checkpoint", result["checkpoint"]],
            ["updates", str(result["updates"])],
            ["loss", f"{result['loss']:.4f}"],
            ["MLflow run", result["run_id"]],
            ["compare", result["compare"]],
        ],
    )
    emit(result, as_json=as_json, shown=table)
