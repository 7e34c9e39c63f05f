"""``lanista trace``."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, SeedOption
from lanista.platform.cli.output import emit, make_table, progress, say

BAR_WIDTH = 12
WIDE = 110
"""Columns of a terminal from which on the table says where a function is written."""


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
    from rich.console import Console, Group
    from rich.text import Text

    from lanista.envs.errors import InputError, RunError
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
    cost = (
        measure_overhead(found, world=world, seed=seed, scheme=schemes[scheme], patterns=patterns)
        if overhead and played.broke is None
        else None
    )
    if cost is not None:
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
    wide = Console().width >= WIDE
    names = [row["name"] for row in value["functions"]]
    shown = dict(zip(names, _shortest(names), strict=True))
    columns = {"function": "left", **({"where": "left"} if wide else {})}
    columns |= {"calls": "right", "in steps": "right", "": "left", "goal": "left"}
    table = make_table(
        f"{game}: {len(called)} of {len(names)} functions called in {value['steps']} steps",
        columns,
        [
            [
                shown[row["name"]],
                *([f"{row['file']}:{row['line']}"] if wide else []),
                str(row["calls"]),
                f"{row['step_share']:.1%}",
                _bar(row["step_share"], BAR_WIDTH if wide else BAR_WIDTH // 2),
                "goal" if row["goal"] else "",
            ]
            for row in called
        ],
    )
    # A long name goes on in the next line: cut, it could not be told from others.
    table.columns[0].overflow = "fold"
    per_step = value["calls_per_step"]
    lines = [
        f"{value['goals']} goals: called in some step, not in every one of this play",
        f"scheme {scheme}, catalogue {value['catalogue_sha256'][:12]}",
        f"calls per step: {per_step['mean']:.1f} on average, {per_step['max']} at most",
    ]
    if cost is not None:
        cost_of = value["overhead"]
        lines.append(
            f"recording takes {cost_of['ratio']:.3f} of the untraced time "
            f"(quartiles {cost_of['low']:.3f} to {cost_of['high']:.3f}, "
            f"{cost_of['blocks']} interleaved pairs of blocks)"
        )
    elif overhead and played.broke is None:
        lines.append("what recording costs: lanista godot instrument --budget measures it")
    emit(value, as_json=as_json, shown=Group(table, Text("\n".join(lines))))
    if (broke := played.broke) is not None:
        say(broke["traceback"])
        raise RunError(
            f"The game broke in world {broke['world']} at step {broke['step']}: "
            f"{broke['exception']} at {broke['where']}: {broke['message']}; lanista collect keeps "
            "it as a finding that can be replayed."
        )


def _shortest(names: list[str]) -> list[str]:
    """Return names without their modules, or in full where two would then be alike."""
    short = [" -> ".join(part.rpartition(":")[2] for part in name.split(" -> ")) for name in names]
    counts = Counter(short)
    return [brief if counts[brief] == 1 else name for brief, name in zip(short, names, strict=True)]


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + ("" if not rest else "▏▎▍▌▋▊▉"[rest - 1])
