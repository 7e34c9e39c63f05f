"""``lanista collect``."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanista.platform.cli.options import JsonOption, ProfileOption, RootOption, SetOption
from lanista.platform.cli.output import emit, make_table, progress, say

if TYPE_CHECKING:
    from lanista.data.collect import CollectRecipe
    from lanista.data.executor import WorkerFailure


def collect(
    game: Annotated[
        str | None,
        typer.Argument(metavar="GAME|FILE", help="A game's id, or a YAML recipe."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the store, under the root.")
    ] = None,
    episodes: Annotated[int | None, typer.Option("--episodes", help="Number of plays.")] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="Ray actors; 0 plays in this process without Ray."),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", help="YAML recipe; see experiments/.")
    ] = None,
    games_per_worker: Annotated[
        int, typer.Option("--games", min=1, help="Games that each worker keeps open.")
    ] = 2,
    hang_timeout: Annotated[
        float,
        typer.Option(
            "--hang-timeout", min=0.1, help="Seconds after which a worker counts as hung."
        ),
    ] = 900.0,
    states: Annotated[
        int,
        typer.Option(
            "--states", min=0, help="States to look at for action-dependent goals; 0 for none."
        ),
    ] = 120,
    overrides: SetOption = None,
    profile: ProfileOption = None,
    root: RootOption = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed; the recipe's, or 0, by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Record plays of a game with testers; go on where a recording was interrupted.

    Without a recipe each of the game's testers plays an equal share.

    Example: lanista collect crafter --out datasets/crafter --episodes 300 --workers 2
    """
    from lanista.agents.experts import make_tester, tester_hash
    from lanista.data.collect import collect as record
    from lanista.data.executor import SerialExecutor
    from lanista.data.store import EpisodeStore
    from lanista.envs.errors import InputError
    from lanista.platform.recording import add_action_dependent, save_found
    from lanista.platform.root import Root

    if out is None:
        raise InputError("Say where to record to: --out datasets/NAME.")
    out = Root.find(root).output(out)
    described = _recipe(game, recipe, episodes, seed, overrides or [], profile)
    executor = SerialExecutor() if workers == 0 else _LateRay(workers, hang_timeout)
    steps = 0
    with progress(described.episodes, f"record {described.game}") as advance:

        def tell(row: Any) -> None:
            nonlocal steps
            steps += row["steps"]
            advance(1, note=f"{steps} steps")

        result = record(
            out,
            described,
            executor,
            make_tester,
            tester_hash,
            tell,
            games_per_worker=games_per_worker,
        )
    store = EpisodeStore.open(out)
    if states and not result.failures:
        add_action_dependent(store, states)
    found = save_found(store, result.findings)
    goals = {rule: len(found["ids"]) for rule, found in store.manifest["goals"].items()}
    value = {
        "episodes": result.episodes,
        "steps": result.steps,
        "workers": executor.workers if isinstance(executor, _LateRay) else 0,
        "restarted": result.restarted,
        "findings": found,
        "failures": result.failures,
        "goals": goals,
        "manifest_sha256": result.manifest_sha256,
    }
    table = make_table(
        f"Recorded into {out}",
        {"what": "left", "value": "left"},
        [
            ["episodes", str(result.episodes)],
            ["steps", str(result.steps)],
            ["goals", ", ".join(f"{count} {rule}" for rule, count in goals.items())],
            ["findings", str(len(result.findings))],
            ["workers restarted", str(result.restarted)],
            ["manifest", result.manifest_sha256],
            *(
                row
                for item in found
                for row in (
                    [
                        f"finding ({item['count']}×)",
                        f"{item['exception']} at {item['where']}: {item['message']}",
                    ],
                    *(
                        [["  to see it", f"lanista replay {_quoted(item)}"]]
                        if item["replay"]
                        else []
                    ),
                )
            ),
            *(
                [f"not recorded: world {item['world']}", f"{item['kind']}: {item['detail']}"]
                for item in result.failures
            ),
        ],
    )
    # A command is there to be copied whole.
    table.columns[1].overflow = "fold"
    emit(value, as_json=as_json, shown=table)
    if result.failures:
        raise typer.Exit(1)


def _quoted(item: Mapping[str, Any]) -> str:
    path = Path(item["replay"])
    here = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.quote(str(here))


class _LateRay:
    """Starts Ray once there is work, so that bad input and finished recordings never wait for it.

    Implements :class:`lanista.data.executor.Executor`.
    """

    def __init__(self, workers: int | None, hang_timeout_s: float) -> None:
        from lanista.platform.cluster import available_cpus

        self.workers = workers or available_cpus()
        self.restarted = 0
        self._hang_timeout_s = hang_timeout_s

    def run[U, R](
        self, make_worker: Callable[[], Callable[[U], R]], units: Sequence[U]
    ) -> Iterator[tuple[int, "R | WorkerFailure"]]:
        """Run every unit on Ray actors."""
        from lanista.platform.cluster import available_cpus, ray_session
        from lanista.platform.executor import RayExecutor

        executor = RayExecutor(self.workers, hang_timeout_s=self._hang_timeout_s, notify=say)
        with ray_session(cpus=max(self.workers, available_cpus())):
            for index, result in executor.run(make_worker, units):
                self.restarted = executor.restarted
                yield index, result
            self.restarted = executor.restarted


def _recipe(
    game: str | None,
    file: Path | None,
    episodes: int | None,
    seed: int | None,
    overrides: list[str],
    profile: str | None,
) -> "CollectRecipe":
    from lanista.agents.experts import tester_names
    from lanista.data.collect import CollectRecipe
    from lanista.envs.errors import InputError
    from lanista.platform.config import make, parse_document, read_document

    if file is None and game is not None and game.endswith((".yaml", ".yml")):
        file, game = Path(game), None
    given = {"game": game, "episodes": episodes, "seed": seed}
    changes = [f"{name}={value}" for name, value in given.items() if value is not None]
    if file is not None:
        document = read_document(file, overrides=[*changes, *overrides], profile=profile)
    elif game is None:
        raise InputError("Name a game to record, such as crafter, or a recipe file.")
    elif profile is not None:
        raise InputError("--profile goes with a recipe file.")
    else:
        if episodes is None:
            raise InputError("Say how many plays to record: --episodes 300.")
        from lanista.envs.game import load_game

        load_game(game)
        testers = ", ".join(f"{{name: {name}}}" for name in tester_names(game))
        text = f"testers: [{testers}]"
        document = parse_document(text, "the command line", overrides=[*changes, *overrides])
    return make(CollectRecipe, document)
