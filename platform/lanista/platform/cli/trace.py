"""``lanista trace``."""

from pathlib import Path
from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, SeedOption
from lanista.platform.cli.output import emit, make_table, progress

BAR_WIDTH = 12


def trace(
    game: Annotated[str, typer.Argument(help="Game id, or module:attribute of your own.")],
    world: Annotated[int, typer.Option("--world", min=0, help="World to begin in.")] = 0,
    steps: Annotated[int, typer.Option("--steps", help="Random steps to play.")] = 400,
    scheme: Annotated[
        str, typer.Option("--scheme", help="How calls are told apart: definition, class or edge.")
    ] = "class",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PATTERN|FILE",
            help="Record only what matches; a file holds a pattern a line. May be repeated.",
        ),
    ] = None,
    overhead: Annotated[
        bool, typer.Option("--overhead/--no-overhead", help="Measure what the recording costs.")
    ] = True,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Play random steps and show which functions they called.

    Example: lanista trace crafter --world 7 --steps 400 --only 'Zombie.*'
    """
    from rich.console import Group
    from rich.text import Text

    from lanista.envs.errors import InputError
    from lanista.envs.game import load_game
    from lanista.envs.tracing.catalogue import Scheme
    from lanista.envs.tracing.scope import read_patterns
    from lanista.platform.trace_report import measure_overhead, play_and_count

    schemes: dict[str, Scheme] = {"definition": "definition", "class": "class", "edge": "edge"}
    if scheme not in schemes:
        raise InputError(f"No scheme is named {scheme!r}; there are definition, class and edge.")
    if steps < 1:
        raise InputError(f"{steps} steps cannot be played; give --steps 1 or more.")
    patterns: tuple[str, ...] | None = None
    if only:
        patterns = tuple(
            pattern
            for item in only
            for pattern in (read_patterns(Path(item)) if Path(item).is_file() else (item,))
        )
    found = load_game(game)
    with progress(steps, f"Playing {game}") as advance:
        played = play_and_count(
            found,
            world=world,
            steps=steps,
            seed=seed,
            scheme=schemes[scheme],
            patterns=patterns,
            on_step=advance,
        )
    value = played.to_json()
    if overhead:
        cost = measure_overhead(
            found, world=world, seed=seed, scheme=schemes[scheme], patterns=patterns
        )
        value["overhead"] = {
            "ratio": cost.ratio,
            "low": cost.low,
            "high": cost.high,
            "blocks": cost.blocks,
        }
    called = sorted(
        (row for row in value["functions"] if row["calls"]),
        key=lambda row: (-row["calls"], row["name"]),
    )
    table = make_table(
        f"{game}: {len(called)} of {len(value['functions'])} functions called in {steps} steps",
        {
            "function": "left",
            "where": "left",
            "calls": "right",
            "share of steps": "right",
            "": "left",
            "goal": "left",
        },
        [
            [
                row["name"],
                f"{row['file']}:{row['line']}",
                str(row["calls"]),
                f"{row['step_share']:.1%}",
                _bar(row["step_share"]),
                "goal" if row["goal"] else "",
            ]
            for row in called
        ],
    )
    per_step = value["calls_per_step"]
    lines = [
        f"{value['goals']} goals: called in some step, not in every one of this play",
        f"scheme {scheme}, catalogue {value['catalogue_sha256'][:12]}",
        f"calls per step: {per_step['mean']:.1f} on average, {per_step['max']} at most",
    ]
    if overhead:
        cost_of = value["overhead"]
        lines.append(
            f"recording takes {cost_of['ratio']:.3f} of the untraced time "
            f"(quartiles {cost_of['low']:.3f} to {cost_of['high']:.3f}, "
            f"{cost_of['blocks']} interleaved pairs of blocks)"
        )
    emit(value, as_json=as_json, shown=Group(table, Text("\n".join(lines))))


def _bar(share: float) -> str:
    eighths = round(share * BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + ("" if not rest else "▏▎▍▌▋▊▉"[rest - 1])
