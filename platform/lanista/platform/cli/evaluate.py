"""``lanista evaluate``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SeedOption, parse_worlds
from lanista.platform.cli.output import emit, make_table, progress, say


def evaluate(
    checkpoint: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint, of a training or of a trial.")
    ],
    goals: Annotated[
        list[str] | None,
        typer.Option(
            "--goals", help="Functions to reach: names with commas, or again; all by default."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", help="Episodes per goal.")] = 10,
    worlds: Annotated[
        str | None,
        typer.Option("--worlds", help="Worlds, one an episode; from 10000 on by default."),
    ] = None,
    game: Annotated[
        str | None, typer.Option("--game", help="Game id; the one trained on by default.")
    ] = None,
    step_cap: Annotated[
        int | None, typer.Option("--step-cap", help="Steps an episode; the game's by default.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="Ray actors; 0 plays in this process."),
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Take the likeliest action instead of drawing one.")
    ] = False,
    device: Annotated[
        str, typer.Option("--device", help="Where the network runs: cpu, cuda or auto.")
    ] = "cpu",
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Store it was trained on, whose worlds are refused."),
    ] = None,
    hang_timeout: Annotated[
        float, typer.Option("--hang-timeout", help="Seconds until a worker's unit counts as hung.")
    ] = 900.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the result, findings and paths.")
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Judge a checkpoint: every goal, N episodes on unseen worlds.

    Example: lanista evaluate runs/demo/trials/gc-dt-ca2-seed-0 --goals all --episodes 10
    """
    from lanista.platform.checkpoint_judging import JudgingRequest, judge_checkpoint
    from lanista.platform.cluster import available_cpus
    from lanista.platform.root import Root
    from lanista.platform.run_folder import checkpoints_of

    names = tuple(
        name.strip() for part in goals or ["all"] for name in part.split(",") if name.strip()
    )
    place = Root.find(root)
    out = None if out is None else place.output(out)
    request = JudgingRequest(
        checkpoint=checkpoints_of(place.input(checkpoint)),
        game=game,
        goals=names,
        episodes=episodes,
        worlds=None if worlds is None else tuple(parse_worlds(worlds)),
        step_cap=step_cap,
        seed=seed,
        greedy=greedy,
        device=device,
        data=None if data is None else place.input(data),
    )
    with progress(None, "Judging") as advance:
        found = judge_checkpoint(
            request,
            workers=available_cpus() if workers is None else workers,
            hang_timeout_s=hang_timeout,
            out=out,
            datasets=place.datasets,
            on_start=lambda plays: say(f"Playing {plays} episodes."),
            on_unit=lambda plays, total: advance(plays, note=f"of {total} episodes"),
        )
    summary = found.summary()
    value: dict[str, Any] = {
        **summary,
        "findings": [
            {
                "kind": finding.fault.kind,
                "where": finding.fault.where,
                "exception": finding.fault.exception,
                "message": finding.fault.message,
                "occurrences": finding.occurrences,
                "replay": str(out / "findings" / finding.file_name) if out else None,
            }
            for finding in found.findings
        ],
        "player": found.player,
        "step_cap": found.protocol.step_cap,
        "worlds": list(found.protocol.worlds),
        "out": str(out.resolve()) if out else None,
    }
    emit(value, as_json=as_json, shown=_shown(summary))
    if not as_json:
        for finding in found.findings:
            fault = finding.fault
            say(f"Finding: {fault.kind} {fault.exception} {fault.message} at {fault.where}")

    if lost := int((~found.played).sum()):
        # Their findings say what became of them.
        say(f"{lost} of {found.played.size} plays left no record.")
        raise typer.Exit(1)


def _shown(summary: dict[str, Any]) -> Any:
    from rich.console import Group

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f} %"

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    rate, returned = summary["success_rate"], summary["episode_return"]
    coverage = summary["function_coverage"]
    totals = make_table(
        "Metrics",
        {"metric": "left", "value": "right", "95 % interval": "left"},
        [
            [
                "success rate",
                percent(rate["value"]),
                f"{percent(rate['low'])} to {percent(rate['high'])}, over worlds",
            ],
            [
                "episode return",
                number(returned["value"]),
                f"{number(returned['low'])} to {number(returned['high'])}, over worlds",
            ],
            [
                "function coverage",
                f"{coverage['value']} of {coverage['functions']}",
                f"one world: {number(coverage['low'])} to {number(coverage['high'])} functions",
            ],
            ["goals covered", f"{coverage['goals_covered']} of {coverage['goals']}", ""],
        ],
    )
    goals = make_table(
        "Goals",
        {"goal": "left", "success": "right", "95 % interval": "left"},
        [
            [
                item["name"],
                percent(item["success_rate"]),
                f"{percent(item['low'])} to {percent(item['high'])}",
            ]
            for item in summary["goals"]
        ],
    )
    return Group(totals, goals)
