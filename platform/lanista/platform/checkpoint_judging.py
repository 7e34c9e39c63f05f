"""Judging a checkpoint from the command line: what it plays, where, and where results go."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lanista.data.executor import Executor, SerialExecutor
from lanista.envs.errors import InputError
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.platform.cli.output import say

if TYPE_CHECKING:
    from lanista.agents.config import Spaces
    from lanista.data.store import EpisodeStore
    from lanista.envs.game import Game

EVALUATION_FILE = "evaluation.json"


@dataclass(frozen=True)
class JudgingRequest:
    """What a person asked for.

    Attributes:
        checkpoint: The checkpoint's folder.
        game: Game id; ``None`` takes the one whose engine the checkpoint was trained on.
        goals: Names, or ``("all",)`` for every goal that the checkpoint was trained for.
        episodes: Plays per goal.
        worlds: Worlds to play in; ``None`` for the first ones set aside for evaluation.
        step_cap: Steps after which a play is cut; ``None`` for the game's own.
        seed: Seed of the player's draws.
        greedy: Whether the player takes its likeliest action.
        device: Where its network runs.
        data: Store that it was trained on, whose worlds are refused.
    """

    checkpoint: Path
    game: str | None = None
    goals: tuple[str, ...] = ("all",)
    episodes: int = 10
    worlds: tuple[int, ...] | None = None
    step_cap: int | None = None
    seed: int = 0
    greedy: bool = False
    device: str = "cpu"
    data: Path | None = None


def judge_checkpoint(
    request: JudgingRequest,
    *,
    workers: int,
    hang_timeout_s: float,
    out: Path | None = None,
    datasets: Path | None = None,
    on_start: Callable[[int], None] | None = None,
    on_unit: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Judge a checkpoint; a result that is in ``out`` already is read instead.

    Args:
        request: What to judge, and how.
        workers: Ray actors; 0 plays in this process.
        hang_timeout_s: Seconds after which a worker's unit counts as hung (Ray only).
        out: Folder for ``evaluation.json``, ``findings/`` and ``paths/``.
        datasets: Folder in which to look for the store that the checkpoint was trained on.
        on_start: Told how many plays there will be.
        on_unit: Told after each unit how many plays it made and how many there are.

    Raises:
        InputError: If something asked for makes no sense, the game is not one that the agent can
            play, or ``out`` holds another evaluation.
    """
    from lanista.agents.checkpoint import load_checkpoint
    from lanista.envs.game import load_game
    from lanista.evaluation.findings import engine_of
    from lanista.evaluation.players import CheckpointMaker
    from lanista.evaluation.protocol import check_protocol, default_worlds, evaluate

    checkpoint = load_checkpoint(request.checkpoint, optimiser=False)
    store = _store_of(request, checkpoint.data, datasets)
    if store is None and request.worlds is not None:
        say(
            "The recording that the checkpoint learned from is not found, so these worlds may be "
            "ones that it has seen; name its folder with --data to have them checked."
        )
    game = load_game(request.game or _game_of(checkpoint.engine, store))
    _check_fits(request.checkpoint, checkpoint.spaces, game)
    scheme = checkpoint.catalogue.scheme
    maker = CheckpointMaker(request.checkpoint.resolve(), request.device, request.greedy)
    player = maker.load(game.catalogue(scheme))
    asked = player.goals if request.goals == ("all",) else request.goals
    protocol, _, _ = check_protocol(
        GoalProtocol(
            game=game.id,
            goals=tuple(asked),
            episodes=request.episodes,
            worlds=request.worlds or default_worlds(max(1, request.episodes)),
            step_cap=game.step_cap if request.step_cap is None else request.step_cap,
            seed=request.seed,
            scheme=scheme,
            goal_base=tuple(player.goals),
        ),
        training_worlds=frozenset() if store is None else _worlds(store.rows()),
    )
    if foreign := [name for name in protocol.goals if name not in player.goals]:
        raise InputError(
            f"{request.checkpoint} was not trained to reach {', '.join(foreign[:5])}; "
            "--goals all takes those that it was."
        )
    if out is not None and (known := _finished(out, protocol, player.content_hash)) is not None:
        if known.engine == engine_of(game):
            return known
        raise InputError(
            f"{out} holds an evaluation on another version of {game.id}; choose another --out."
        )
    if on_start is not None:
        on_start(len(protocol.goals) * protocol.episodes)
    with _executor(workers, hang_timeout_s) as executor, scratch_folder(out) as scratch:
        found = evaluate(
            protocol, maker, player.content_hash, executor, on_unit=on_unit, scratch=scratch
        )
    if out is not None:
        save_evaluation(found, out)
    return found


def save_evaluation(found: Evaluation, out: Path) -> None:
    """Write an evaluation with its findings and paths; the evaluation comes last."""
    from lanista.evaluation.findings import save_findings, write_json
    from lanista.evaluation.paths import save_paths

    save_findings(found.findings, out / "findings")
    save_paths(found.paths, out / "paths")
    write_json(out / EVALUATION_FILE, found.to_json())


def _check_fits(path: Path, spaces: "Spaces", game: "Game") -> None:
    """Refuse a game that shows or takes something else than what the agent was made for."""
    problems = []
    seen = f"{spaces.observation_dtype}{list(spaces.observation_shape)}"
    shown = f"{game.observation_dtype}{list(game.observation_shape)}"
    if seen != shown:
        problems.append(f"{path} reads observations {seen}; {game.id} shows {shown}.")
    given = _actions(spaces.actions, len(spaces.action_low))
    taken = _actions(len(game.actions), len(game.action_low))
    # A recording without the game's last actions knows fewer, which does no harm.
    if len(spaces.action_low) != len(game.action_low) or spaces.actions > len(game.actions):
        problems.append(f"{path} gives {given}; {game.id} takes {taken}.")
    if problems:
        raise InputError(*problems)


def _actions(discrete: int, numbers: int) -> str:
    return f"an action of {numbers} numbers" if numbers else f"one of {discrete} actions"


def _game_of(engine: object, store: "EpisodeStore | None") -> str:
    from lanista.envs.game import game_ids

    if store is not None:
        return store.game_id
    told = engine if isinstance(engine, dict) else {}
    name = str(told.get("name", ""))
    if game := told.get("game") or (name if name in game_ids() else None):
        return str(game)
    raise InputError(
        f"The checkpoint was trained on engine {name!r}, which is no game's id; give --game."
    )


def _store_of(
    request: JudgingRequest, data: object, datasets: Path | None
) -> "EpisodeStore | None":
    """Return the store that the checkpoint was trained on, if it can be found."""
    from lanista.data.store import EpisodeStore

    wanted = str(data.get("manifest_sha256", "")) if isinstance(data, dict) else ""
    if request.data is not None:
        store = EpisodeStore.open(request.data)
        if wanted and store.manifest_sha256 != wanted:
            raise InputError(f"{request.data} is not the store that the checkpoint learned from.")
        return store
    for folder in sorted(datasets.glob("*/")) if datasets is not None and wanted else ():
        with contextlib.suppress(InputError):
            store = EpisodeStore.open(folder)
            if store.manifest_sha256 == wanted:
                return store
    return None


def _worlds(rows: Sequence[dict[str, object]]) -> frozenset[int]:
    keys = [row["key"] for row in rows]
    return frozenset(int(key["world"]) for key in keys if isinstance(key, dict))


def _finished(out: Path, protocol: GoalProtocol, player: str) -> Evaluation | None:
    from lanista.evaluation.findings import read_json

    file = out / EVALUATION_FILE
    if not file.exists():
        return None
    known = Evaluation.from_json(read_json(file, "evaluation"))
    if known.protocol == protocol and known.player == player:
        return known
    raise InputError(
        f"{file} holds another evaluation (another player or protocol); choose another --out."
    )


@contextlib.contextmanager
def _executor(workers: int, hang_timeout_s: float) -> Iterator[Executor]:
    if workers == 0:
        yield SerialExecutor()
        return
    from lanista.platform.cluster import ray_session
    from lanista.platform.executor import RayExecutor

    with ray_session(cpus=workers):
        yield RayExecutor(workers, hang_timeout_s=hang_timeout_s, max_tries=2)


@contextlib.contextmanager
def scratch_folder(out: Path | None) -> Iterator[Path]:
    """Make a folder for the actions of plays that may not come back; it goes with the block.

    Raises:
        InputError: If it cannot be made.
    """
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=".plays-", dir=out)
    except OSError as error:
        place = out or tempfile.gettempdir()
        raise InputError(f"{place} cannot be written to: {error.strerror or error}.") from error
    # What is raised while it is used says itself what went wrong.
    with made as folder:
        yield Path(folder)
