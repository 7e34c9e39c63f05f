"""``lanista data``: what a store of episodes holds, whether it is sound, and its exchange."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SeedOption
from lanista.platform.cli.output import emit, make_table, progress
from lanista.platform.root import Root

if TYPE_CHECKING:
    from lanista.data.store import EpisodeStore

app = typer.Typer(help="Describe, check and exchange stores of episodes.", no_args_is_help=True)

StoreArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the store.")]


@app.command("show")
def show(
    path: StoreArgument,
    functions: Annotated[
        bool,
        typer.Option("--functions", help="List every function: in how many steps it was called."),
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Describe a store: its episodes, testers, achievements, functions and goals.

    Example: lanista data show datasets/crafter
    """
    del seed
    from rich.console import Group

    from lanista.data.store import EpisodeStore

    path = Root.find(root).input(path)
    store = EpisodeStore.open(path)
    value = describe(store)
    totals = make_table(
        str(path),
        {"what": "left", "value": "left"},
        [
            ["game", f"{value['game']} {value['engine_version']}"],
            ["episodes", str(value["episodes"])],
            ["steps", str(value["steps"])],
            ["functions", f"{value['functions']} recorded of {value['catalogue']}"],
            ["scheme", value["scheme"]],
            *([f"goals, {rule}", str(count)] for rule, count in value["goals_by_rule"].items()),
            ["longest trace", f"{value['longest_trace']} calls"],
            ["calls a step", f"{value['calls_per_step']:.1f}"],
            ["split", ", ".join(f"{count} {side}" for side, count in value["split"].items())],
            ["faults", str(value["faults"])],
            ["observations", value["observations"]],
            ["on disk", f"{value['bytes'] / 1e6:.1f} MB"],
            ["manifest", value["manifest_sha256"]],
        ],
    )
    testers = make_table(
        "Testers",
        {"name": "left", "parameters": "left", "episodes": "right", "steps": "right"},
        [
            [item["name"], item["parameters"], str(item["episodes"]), str(item["steps"])]
            for item in value["testers"]
        ],
    )
    achievements = make_table(
        "Summary counts",
        {"name": "left", "share of episodes": "right", "total": "right"},
        [
            [item["name"], f"{item['episode_share']:.0%}", str(item["total"])]
            for item in value["achievements"]
        ],
    )
    tables = [totals, testers, achievements]
    if functions:
        resets = {
            int(call)
            for episode in store.episodes(observations=False)
            for call in episode.reset_trace.bag()[0]
        }
        tables.append(
            make_table(
                f"Functions: {len(value['unreached'])} of {value['catalogue']} were called by no "
                "step",
                {"function": "left", "where": "left", "steps": "right", "goal": "left"},
                [
                    [
                        item["name"].rpartition(":")[2],
                        f"{item['file']}:{item['line']}",
                        f"{item['steps']:,}" if item["steps"] else _never(item["id"] in resets),
                        "goal" if item["goal"] else "",
                    ]
                    for item in _functions(store)
                ],
            )
        )
    emit(value, as_json=as_json, shown=Group(*tables))


def _never(at_reset: bool) -> str:
    return "in resets only" if at_reset else "never"


def _functions(store: "EpisodeStore") -> list[dict[str, Any]]:
    """Return every function with the steps that called it; the rarest first, never first of all."""
    called = {item["id"]: item["steps"] for item in store.manifest["functions"]}
    goals = set(store.goals("recorded_minus_always"))
    found = [
        {
            "id": number,
            "name": function.name,
            "file": function.file,
            "line": function.line,
            "steps": int(called.get(number, 0)),
            "goal": number in goals,
        }
        for number, function in enumerate(store.catalogue.functions)
    ]
    return sorted(found, key=lambda item: (item["steps"], item["name"]))


def describe(store: "EpisodeStore") -> dict[str, Any]:
    """Return what ``lanista data show`` tells of a store, as plain values."""
    manifest, rows = store.manifest, store.rows()
    totals, goals = manifest["totals"], manifest["goals"]
    names = {item["sha256"]: item for item in store.recipe.get("testers", []) if "sha256" in item}
    testers: dict[str, dict[str, Any]] = {}
    counts: dict[str, list[int]] = {}
    for row in rows:
        player = row["key"]["player"]
        known = names.get(player, {})
        tester = testers.setdefault(
            player,
            {
                "name": known.get("name", player[:12]),
                "parameters": ", ".join(
                    f"{name} {item}" for name, item in known.get("parameters", {}).items()
                ),
                "episodes": 0,
                "steps": 0,
            },
        )
        tester["episodes"] += 1
        tester["steps"] += row["steps"]
        for name, count in row["summary"].items():
            entry = counts.setdefault(name, [0, 0])
            entry[0] += count > 0
            entry[1] += count
    return {
        "game": store.game_id,
        "engine_version": manifest["engine"]["version"],
        "episodes": totals["episodes"],
        "steps": totals["steps"],
        "functions": len(manifest["functions"]),
        "catalogue": len(store.catalogue),
        "unreached": [item["name"] for item in _functions(store) if not item["steps"]],
        "scheme": store.catalogue.scheme,
        "goals": len(goals["recorded_minus_always"]["ids"]),
        "goals_by_rule": {rule: len(found["ids"]) for rule, found in goals.items()},
        "longest_trace": totals["longest_trace"],
        "calls_per_step": totals["calls"] / max(1, totals["steps"]),
        "split": totals["split"],
        "faults": totals["faults"],
        "observations": store.observation_mode,
        "bytes": totals["bytes"],
        "testers": sorted(testers.values(), key=lambda item: (-item["episodes"], item["name"])),
        "achievements": [
            {"name": name, "episode_share": entry[0] / len(rows), "total": entry[1]}
            for name, entry in sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
        ],
        "manifest_sha256": store.manifest_sha256,
    }


@app.command("verify")
def verify(
    path: StoreArgument,
    quarantine: Annotated[
        bool,
        typer.Option("--quarantine", help="Set bad files aside and make the manifest anew."),
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Read every file of a store and name those that are corrupt, altered, missing or strange.

    Changes nothing without --quarantine. Exits with 1 if there are problems.

    Example: lanista data verify datasets/crafter --json
    """
    del seed
    from lanista.data import verify as checks

    path = Root.find(root).input(path)
    found = checks.quarantine(path) if quarantine else checks.verify(path)
    value = {
        "ok": found.ok,
        "episodes": len(found.sound),
        "problems": [{"file": item.file, "what": item.what} for item in found.problems],
        "quarantined": quarantine and not found.ok,
    }
    title = f"{path}: {len(found.sound)} sound episodes, {len(found.problems)} problems"
    table = make_table(
        title + (", set aside" if value["quarantined"] else ""),
        {"file": "left", "what": "left"},
        [[item.file, item.what] for item in found.problems],
    )
    emit(value, as_json=as_json, shown=title if found.ok else table)
    if not found.ok:
        raise typer.Exit(1)


@app.command("goals")
def goals(
    path: StoreArgument,
    plays: Annotated[int, typer.Option("--plays", min=1, help="Plays to follow.")] = 12,
    states: Annotated[int, typer.Option("--states", min=1, help="States to look at.")] = 120,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Find the functions that depend on the action: same state, every action.

    They are saved in the manifest beside the goals that follow from the data alone.

    Example: lanista data goals datasets/crafter --states 200
    """
    del seed
    from lanista.data.goals import action_dependent
    from lanista.data.store import EpisodeStore

    path = Root.find(root).input(path)
    store = EpisodeStore.open(path)
    with progress(min(plays, len(store)), "try every action") as advance:
        found = action_dependent(store, plays=plays, states=states, on_play=lambda: advance(1))
    store.save_action_dependent(found)
    by_rule = {rule: item["names"] for rule, item in store.manifest["goals"].items()}
    names = sorted(set().union(*by_rule.values()))
    table = make_table(
        f"Goals of {path}",
        {"function": "left", **dict.fromkeys(by_rule, "left")},
        [[name, *("yes" if name in item else "" for item in by_rule.values())] for name in names],
    )
    value = {
        "goals": len(by_rule["recorded_minus_always"]),
        "action_dependent": len(found["ids"]),
        "plays": found["plays"],
        "states": found["states"],
        "names": by_rule,
    }
    emit(value, as_json=as_json, shown=table)


DatasetOption = Annotated[
    str, typer.Option("--dataset-id", help="Minari's name for it: crafter/testers-v0.")
]


@app.command("export-minari")
def export(
    path: StoreArgument,
    dataset_id: DatasetOption,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Write a store as a Minari dataset, without loss (MINARI_DATASETS_PATH says where).

    Example: lanista data export-minari datasets/crafter --dataset-id crafter/testers-v0
    """
    del seed
    from lanista.data.minari_exchange import export_minari
    from lanista.data.store import EpisodeStore

    episodes = export_minari(EpisodeStore.open(Root.find(root).input(path)), dataset_id)
    emit(
        {"episodes": episodes, "dataset_id": dataset_id},
        as_json=as_json,
        shown=f"{episodes} episodes are in Minari as {dataset_id}.",
    )


@app.command("import-minari")
def import_(
    path: StoreArgument,
    dataset_id: DatasetOption,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Make a store of a Minari dataset that export-minari wrote.

    Example: lanista data import-minari datasets/copy --dataset-id crafter/testers-v0
    """
    del seed
    from lanista.data.minari_exchange import import_minari

    path = Root.find(root).output(path)
    store = import_minari(dataset_id, path)
    emit(
        {"episodes": len(store), "manifest_sha256": store.manifest_sha256},
        as_json=as_json,
        shown=f"{len(store)} episodes are in {path}.",
    )
