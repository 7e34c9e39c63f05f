"""``lanista godot instrument``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lanista.platform.cli.options import JsonOption, SeedOption
from lanista.platform.cli.output import emit, make_table, say

_SHOWN = 20
_PATTERNS = "PATTERN|FILE"


def instrument(
    project: Annotated[Path, typer.Argument(help="Folder of the Godot project; it is only read.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the traced copy.")],
    scheme: Annotated[
        str, typer.Option("--scheme", help="How calls are told apart: definition or class.")
    ] = "class",
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar=_PATTERNS,
            help="Record what matches (scripts.robot, 'enemies:*', 'addons.my_plugin'); all but "
            "addons by default. May be repeated; a file holds a pattern a line.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar=_PATTERNS, help="Leave out what matches."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar=_PATTERNS, help="Of all that, record only names that match."
        ),
    ] = None,
    lambdas: Annotated[
        bool, typer.Option("--lambdas/--no-lambdas", help="Record lambdas too.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Import the copy and load every script in the engine, before and after.",
        ),
    ] = True,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="PERCENT",
            help="Measure what recording adds to the game's time, and say which functions to leave "
            "out to stay under this.",
        ),
    ] = None,
    budget_file: Annotated[
        Path | None,
        typer.Option("--budget-file", help="Write those functions here, for --exclude."),
    ] = None,
    scene: Annotated[
        str | None,
        typer.Option("--scene", help="Scene to measure (res://…), where the main one is a menu."),
    ] = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Make a copy of a Godot project whose function calls are recorded.

    Example: lanista godot instrument my_game --out my_game_traced
    """
    from rich.console import Group

    from lanista.envs.errors import InputError
    from lanista.envs.godot.engine import find_engine
    from lanista.envs.tracing.gdscript.project import instrument_project
    from lanista.envs.tracing.gdscript.scope import GodotScope

    scope = GodotScope(
        include=_patterns(include) or ("*",),
        exclude=_patterns(exclude) or (),
        only=_patterns(only),
    )
    if budget is not None and not budget > 0:
        raise InputError(f"A budget of {budget:g} % leaves nothing to record; give more than 0.")
    if budget is None and (budget_file is not None or scene is not None):
        raise InputError("--budget-file and --scene go with --budget PERCENT.")
    engine = find_engine() if check or budget is not None else None
    made = instrument_project(
        project,
        out,
        scheme=_scheme(scheme),
        scope=scope,
        lambdas=lambdas,
        engine=engine if check else None,
        on_stage=lambda stage: say(f"{stage} …"),
    )
    value = made.to_json()
    shown = [_shown(value)]
    if budget is not None and engine is not None:
        from lanista.envs.tracing.gdscript.budget import measure_cost, propose

        cost = measure_cost(
            project,
            engine,
            scheme=_scheme(scheme),
            scope=scope,
            lambdas=lambdas,
            scene=scene,
            seed=seed,
            on_stage=lambda stage: say(f"{stage} …"),
        )
        proposal = propose(cost, budget)
        value["budget"] = {**cost.to_json(), **proposal.to_json()}
        shown.append(_shown_budget(value["budget"]))
        if budget_file is not None:
            head = f"# Left out to stay under {budget:g} % of added time.\n"
            budget_file.write_text(head + "".join(f"{item}\n" for item in proposal.exclude))
    emit(value, as_json=as_json, shown=Group(*shown))


def _scheme(name: str) -> Any:
    from lanista.envs.errors import InputError

    if name not in ("definition", "class"):
        raise InputError(f"No scheme for Godot is named {name!r}; there are definition and class.")
    return name


def _patterns(given: list[str] | None) -> tuple[str, ...] | None:
    from lanista.envs.tracing.scope import read_patterns

    if not given:
        return None
    return tuple(
        pattern
        for item in given
        for pattern in (read_patterns(Path(item)) if Path(item).is_file() else (item,))
    )


def _shown(value: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.text import Text

    count = f"{_count(value['functions'], 'function')} in {_count(value['scripts'], 'script')}"
    lines = [f"Recorded in {value['path']}: {count}"]
    if value["threads"]:
        lines.append(
            f"calls from other threads are not recorded; used here: {value['threads'][0]}"
            + (f" and {len(value['threads']) - 1} more" if len(value["threads"]) > 1 else "")
        )
    if not value["checked"]:
        lines.append(f"its scripts were not loaded for a check: {value['unchecked']}")
    failing = list(value["failing_before"].items())
    lines.extend(
        f"does not load in the project itself: {file} ({why})" for file, why in failing[:5]
    )
    if len(failing) > 5:
        lines.append(f"and {len(failing) - 5} more scripts do not (--json names them)")
    lines.extend(
        f"{item['file']} {item['owner']}: the engine's functions differ from those read "
        f"(missing {', '.join(item['missing']) or 'none'}, "
        f"unexpected {', '.join(item['unexpected']) or 'none'})"
        for item in value["differences"]
    )
    text = Text("\n".join(lines))
    if not value["skipped"]:
        return text
    unseen = sum(item["functions"] for item in value["skipped"])
    table = make_table(
        f"Left as they are: {_count(len(value['skipped']), 'script')}, "
        f"{_count(unseen, 'function')} unseen",
        {"script": "left", "line": "right", "why": "left", "functions": "right"},
        [
            [item["file"], str(item["line"] or ""), item["why"], str(item["functions"])]
            for item in value["skipped"][:_SHOWN]
        ],
    )
    return Group(text, table)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _shown_budget(value: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.text import Text

    unit = value["unit"]
    text = (
        f"recording adds {value['percent']:.1f} % to a {unit} of {value['untraced_us']:.0f} µs "
        f"(ratio {value['ratio']:.3f}, {value['low']:.3f} to {value['high']:.3f} in half of the "
        f"draws from {value['rounds']} rounds)"
    )
    total = sum(item["calls"] for item in value["calls"])
    table = make_table(
        f"{total:.1f} calls a {unit}",
        {"function": "left", f"calls a {unit}": "right", "share": "right", "leave out": "left"},
        [
            [
                item["name"],
                f"{item['calls']:.2f}",
                f"{item['calls'] / total:.1%}",
                "yes" if item["name"] in value["exclude"] else "",
            ]
            for item in value["calls"][:_SHOWN]
        ],
    )
    if not value["exclude"]:
        return Group(Text(f"{text}: under the budget of {value['budget']:g} %"), table)
    left = " ".join(f"--exclude '{name}'" for name in value["exclude"])
    after = (
        f"to stay under {value['budget']:g} % (about {value['expected_percent']:.1f} % then, "
        f"{value['kept_calls']:.0%} of the calls kept): {left}"
    )
    return Group(Text(text), table, Text(after))
