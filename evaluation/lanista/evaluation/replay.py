"""Playing a recorded path or finding again, and naming the first thing that differs."""

import contextlib
import multiprocessing
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lanista.data.episode import Episode, EpisodeKey
from lanista.data.lanes import DEATHS
from lanista.data.rollout import ActionTape, Play, rollout
from lanista.envs.errors import InputError
from lanista.envs.game import load_game
from lanista.evaluation.findings import Finding, Tape, engine_of, read_json, step_digests
from lanista.evaluation.journal import JournaledEnv, read_journal
from lanista.evaluation.paths import RecordedPath, first_calls

HANG_AFTER_S = 60.0


@dataclass(frozen=True)
class Difference:
    """The first thing in which a replay differs from the record.

    Attributes:
        step: Step from 0; -1 for something from before the first step.
        field: What differs: ``engine``, ``catalogue``, ``world``, ``trace``, ``length``,
            ``fault`` or ``function``.
        recorded: What the record says.
        replayed: What happened.
    """

    step: int
    field: str
    recorded: str
    replayed: str


@dataclass(frozen=True)
class ReplayResult:
    """What came of playing a file again.

    Attributes:
        kind: ``path`` or ``finding``.
        reproduced: A path: it reached its function at the recorded step. A finding: the game
            broke in the same way, at the same place and step. Either way with equal traces and
            rewards on the way there, where these were recorded.
        steps: Actions played.
        reached: Whether the path's function (or the finding's goal) was called.
        exception: ``Type: message`` of what the game raised, ``None`` if it did not.
        first_difference: The first thing that differs, ``None`` if nothing does. One of engine or
            catalogue alone doesn't speak against a path whose traces are the same.
        episode: The play with its observations; ``None`` where it took its process with it.
    """

    kind: str
    reproduced: bool
    steps: int
    reached: bool
    exception: str | None
    first_difference: Difference | None
    episode: Episode | None = None

    def to_json(self) -> dict[str, Any]:
        """Return everything but the episode as a JSON value."""
        value = {name: item for name, item in vars(self).items() if name != "episode"}
        difference = self.first_difference
        return value | {"first_difference": None if difference is None else asdict(difference)}


class _OtherFileError(InputError):
    """A file that is whole, and something else."""


def load_recording(file: Path) -> RecordedPath | Finding:
    """Read a file that ``lanista replay`` can play.

    Raises:
        InputError: If it is missing, broken, or something else.
    """
    value = read_json(file, "recording")
    try:
        match value.get("format"):
            case "lanista-path":
                recording: RecordedPath | Finding = RecordedPath.from_json(value)
            case "lanista-finding":
                recording = Finding.from_json(value)
            case other:
                raise _OtherFileError(f"{file} is no recorded path or finding (format {other!r}).")
    except _OtherFileError:
        raise
    except InputError as error:
        raise InputError(f"{file} is corrupt: {error}") from error
    if not (recording.tape.actions or (isinstance(recording, Finding) and recording.at_reset)):
        raise InputError(f"{file} holds no actions, so it cannot be played again.")
    return recording


def replay(
    recording: RecordedPath | Finding, *, hang_after_s: float = HANG_AFTER_S
) -> ReplayResult:
    """Play a recording again and compare.

    A recorded hang or crash of the interpreter is played in a process of its own, which counts as
    hung when no step ends for ``hang_after_s`` seconds.

    Raises:
        InputError: If its game is not there.
    """
    if isinstance(recording, RecordedPath):
        return _replay_path(recording)
    # A game outside this process tells by an exception what became of it, and takes nothing along.
    if recording.fault.kind in DEATHS and not recording.fault.exception:
        return _replay_apart(recording, hang_after_s)
    return _replay_finding(recording)


def play_tape(tape: Tape, *, journal: Path | None = None) -> Episode:
    """Play a tape's actions in its world and return the play, observations included."""
    game = load_game(tape.game)
    engine = engine_of(game)
    env: Any = game.make(tape.scheme, None)
    if journal is not None:
        env = JournaledEnv(env, journal)
    with contextlib.closing(env):
        catalogue = game.catalogue(tape.scheme)
        key = EpisodeKey(
            game=tape.game,
            engine_version=engine.get("version", ""),
            engine_sha256=engine.get("sha256", ""),
            catalogue_sha256=catalogue.sha256,
            world=tape.world,
            seat=0,
            player=tape.player,
            goal=tape.goal,
            step_cap=len(tape.actions),
        )
        actions = np.array(tape.actions)
        play = Play(key=key, goal=None, seed=(0,))
        return rollout([env], [play], testers=[ActionTape(actions)])[0]


def _replay_path(path: RecordedPath) -> ReplayResult:
    episode = play_tape(path.tape)
    catalogue = load_game(path.tape.game).catalogue(path.tape.scheme)
    reached_at = -1
    with contextlib.suppress(InputError):
        reached_at = int(first_calls(episode, len(catalogue))[catalogue.resolve(path.function)])
    difference = _on_the_way(path.tape, episode, path.steps)
    if difference is None and reached_at != path.steps - 1:
        difference = Difference(
            path.steps - 1,
            "function",
            f"{path.function} first called here",
            "never called" if reached_at < 0 else f"first called at step {reached_at}",
        )
    return ReplayResult(
        kind="path",
        reproduced=reached_at == path.steps - 1 and _harmless(difference),
        steps=episode.steps,
        reached=reached_at >= 0,
        exception=_exception(episode),
        first_difference=difference,
        episode=episode,
    )


def _replay_finding(finding: Finding) -> ReplayResult:
    tape = finding.tape
    episode = play_tape(tape)
    recorded = f"{finding.fault.exception} at {finding.fault.where}"
    fault = episode.fault
    replayed = "nothing broke" if fault is None else f"{fault.exception} at {fault.where}"
    same = fault is not None and recorded == replayed and episode.steps == len(tape.actions)
    difference = _on_the_way(tape, episode, len(tape.actions))
    if difference is None and not same:
        difference = Difference(episode.steps - 1, "fault", recorded, replayed)
    return ReplayResult(
        kind="finding",
        reproduced=same and _harmless(difference),
        steps=episode.steps,
        reached=_goal_reached(tape, episode),
        exception=_exception(episode),
        first_difference=difference,
        episode=episode,
    )


def _replay_apart(finding: Finding, hang_after_s: float) -> ReplayResult:
    tape = finding.tape
    with tempfile.TemporaryDirectory(prefix="lanista-") as folder:
        journal = Path(folder) / "play.jsonl"
        process = multiprocessing.get_context("spawn").Process(
            target=play_tape, args=(tape,), kwargs={"journal": journal}, daemon=True
        )
        process.start()
        noted, since = -1, time.monotonic()
        while process.is_alive() and time.monotonic() - since < hang_after_s:
            process.join(0.2)
            size = journal.stat().st_size if journal.exists() else -1
            if size != noted:
                noted, since = size, time.monotonic()
        hung = process.is_alive()
        if hung:
            process.kill()
            process.join()
        steps = len(read_journal(journal))
    if hung:
        end = "hang"
    elif process.exitcode:
        end = "crash"
    else:
        end = "nothing broke"
    same = end == finding.fault.kind and steps == len(tape.actions)
    difference = None if same else Difference(steps - 1, "fault", finding.fault.kind, end)
    return ReplayResult("finding", same, steps, False, None, difference)


def _on_the_way(tape: Tape, episode: Episode, steps: int) -> Difference | None:
    """Compare the step hashes; where they cannot be compared, say why."""
    found = step_digests(episode)
    if tape.world_fingerprint and episode.world_fingerprint != tape.world_fingerprint:
        return Difference(-1, "world", tape.world_fingerprint, episode.world_fingerprint)
    if tape.catalogue_sha256 != episode.key.catalogue_sha256:
        return Difference(
            -1, "catalogue", tape.catalogue_sha256[:12], episode.key.catalogue_sha256[:12]
        )
    for step, (recorded, replayed) in enumerate(zip(tape.digests, found, strict=False)):
        if recorded != replayed:
            return Difference(step, "trace", recorded, replayed)
    if episode.steps != steps:
        return Difference(episode.steps, "length", f"{steps} steps", f"{episode.steps} steps")
    if tape.engine.get("sha256") != episode.key.engine_sha256:
        return Difference(
            -1,
            "engine",
            tape.engine.get("sha256", "")[:12],
            episode.key.engine_sha256[:12],
        )
    return None


def _harmless(difference: Difference | None) -> bool:
    return difference is None or difference.field in {"engine", "catalogue"}


def _exception(episode: Episode) -> str | None:
    fault = episode.fault
    return None if fault is None else f"{fault.exception}: {fault.message}"


def _goal_reached(tape: Tape, episode: Episode) -> bool:
    if tape.goal is None:
        return False
    catalogue = load_game(tape.game).catalogue(tape.scheme)
    try:
        goal = catalogue.resolve(tape.goal)
    except InputError:
        return False
    return bool(first_calls(episode, len(catalogue))[goal] >= 0)
