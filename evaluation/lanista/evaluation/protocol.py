"""The goal protocol: every goal, N plays on unseen worlds, judged the same with any workers."""

import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lanista.data.episode import Episode, EpisodeKey, Fault
from lanista.data.executor import Executor, WorkerFailure
from lanista.data.lanes import Lanes
from lanista.data.rollout import Play
from lanista.envs.errors import InputError, RunError
from lanista.envs.game import Game, load_game
from lanista.envs.policy import Policy
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.findings import Finding, Tape, engine_of, merge_findings
from lanista.evaluation.journal import JournaledEnv, read_journal
from lanista.evaluation.paths import RecordedPath, first_calls, merge_paths, shortest_paths

FIRST_WORLD = 10_000
"""Evaluation worlds start here; collection, from 0 on, never comes this far."""

_STREAM = 0x4A55
_LANES = 10

type Cell = tuple[int, int]
"""A play of the protocol: position of its goal, position of its world."""


@dataclass(frozen=True)
class Unit:
    """Plays that one worker makes side by side.

    Attributes:
        cells: Which plays of the protocol.
        journal: Where to note the actions of a lone play that may not come back.
    """

    cells: tuple[Cell, ...]
    journal: Path | None = None


@dataclass(frozen=True)
class _Record:
    """What is kept of one play: its cell, the numbers of its row, and what broke."""

    cell: Cell
    reached_at: int
    episode_return: float
    steps: int
    called: NDArray[np.bool_]
    finding: Finding | None


@dataclass(frozen=True)
class _UnitResult:
    records: tuple[_Record, ...]
    paths: tuple[RecordedPath, ...]


def default_worlds(episodes: int) -> tuple[int, ...]:
    """Return the first worlds set aside for evaluation, one an episode."""
    return tuple(range(FIRST_WORLD, FIRST_WORLD + episodes))


def check_protocol(
    protocol: GoalProtocol, *, training_worlds: Collection[int] = ()
) -> tuple[GoalProtocol, Game, Catalogue]:
    """Refuse a protocol that makes no sense, and write its goals by their full names.

    Args:
        protocol: What a person asked for; goals may be unique suffixes.
        training_worlds: Worlds that the player's data was recorded in, where known.

    Returns:
        The protocol with full names, its game and the game's catalogue.

    Raises:
        InputError: With a line for each thing that is wrong.
    """
    game = load_game(protocol.game)
    problems: list[str] = []
    if protocol.scheme not in {"definition", "class", "edge"}:
        raise InputError(f"Scheme {protocol.scheme!r} is none of definition, class, edge.")
    catalogue = game.catalogue(cast("Scheme", protocol.scheme))
    if protocol.episodes < 1:
        problems.append(f"{protocol.episodes} episodes per goal judge nothing; ask for 1 or more.")
    if protocol.step_cap < 1:
        problems.append(f"A step cap of {protocol.step_cap} leaves no step; give 1 or more.")
    if len(set(protocol.worlds)) != len(protocol.worlds):
        problems.append("The worlds name one twice; each may stand there once.")
    if len(protocol.worlds) < protocol.episodes:
        problems.append(
            f"{protocol.episodes} episodes per goal need as many worlds; "
            f"{len(protocol.worlds)} are given."
        )
    used = protocol.worlds[: max(0, protocol.episodes)]
    if seen := sorted(set(used) & set(training_worlds)):
        shown = ", ".join(map(str, seen[:5])) + ("…" if len(seen) > 5 else "")
        problems.append(
            f"The player was trained on {len(seen)} of these worlds ({shown}); "
            f"choose unseen ones, from {FIRST_WORLD} on."
        )
    if not protocol.goals:
        problems.append("No goal is given; name at least one function to reach.")
    goals, more = _resolve(protocol.goals, catalogue)
    base, others = _resolve(protocol.goal_base, catalogue)
    problems += more + [problem for problem in others if problem not in more]
    if len(set(goals)) != len(goals):
        problems.append("The goals name a function twice.")
    if problems:
        raise InputError(*problems)
    return replace(protocol, goals=goals, worlds=used, goal_base=base), game, catalogue


def plan_units(protocol: GoalProtocol) -> list[Unit]:
    """Cut the protocol into units: its plays in order, ten at a time (one goal's, for N = 10).

    Units follow from the protocol alone, so the plays batched together, and with them every
    rounding of a network's arithmetic, are the same for any number of workers.
    """
    cells = [
        (goal, world) for goal in range(len(protocol.goals)) for world in range(protocol.episodes)
    ]
    return [Unit(tuple(cells[start : start + _LANES])) for start in range(0, len(cells), _LANES)]


def evaluate(
    protocol: GoalProtocol,
    make_policy: Callable[[Catalogue], Policy],
    player: str,
    executor: Executor,
    *,
    on_unit: Callable[[int, int], None] | None = None,
    training_worlds: Collection[int] = (),
    scratch: Path | None = None,
) -> Evaluation:
    """Judge a player by the paper's protocol (sections 6.1 and 6.2).

    Each goal is played ``episodes`` times; a play goes on after its goal has been reached, to the
    game's end or the step cap. The result is the same for any number of workers and any order in
    which they finish.

    A unit whose worker hangs or dies is played again one play at a time, so that only the play
    at fault is lost; that play becomes a finding.

    Args:
        protocol: What to play; see :func:`check_protocol` for what is refused.
        make_policy: Makes the player's policy for the game's catalogue; it must pickle.
        player: The player's content hash.
        executor: Where the units run.
        on_unit: Told after each unit how many plays it made and how many there are.
        training_worlds: Worlds that the player's data was recorded in, where known.
        scratch: Folder, shared with the workers, for the actions of plays that may not come
            back; without it a hang is found but cannot be replayed.

    Raises:
        InputError: If the protocol makes no sense.
        RunError: If no play left a record.
    """
    protocol, game, catalogue = check_protocol(protocol, training_worlds=training_worlds)
    make_worker = partial(_Worker, protocol, make_policy, player)
    units = plan_units(protocol)
    total = len(protocol.goals) * protocol.episodes
    results: list[_UnitResult] = []
    suspects: list[Unit] = []
    lost: list[tuple[Unit, WorkerFailure]] = []

    def settle(pending: Sequence[Unit]) -> Iterator[tuple[Unit, WorkerFailure]]:
        for index, outcome in executor.run(make_worker, pending):
            unit = pending[index]
            if isinstance(outcome, WorkerFailure):
                yield unit, outcome
                continue
            results.append(outcome)
            if on_unit is not None:
                on_unit(len(unit.cells), total)

    for unit, _ in settle(units):
        suspects += [Unit((cell,), _journal_file(scratch, cell)) for cell in unit.cells]
    suspects.sort(key=lambda unit: unit.cells)
    for unit, failure in settle(suspects) if suspects else ():
        lost.append((unit, failure))
        if on_unit is not None:
            on_unit(len(unit.cells), total)
    if not results:
        raise RunError(
            f"No play left a record: all {total} workers' units failed, "
            f"the first with {lost[0][1].kind}: {lost[0][1].detail}."
        )
    engine = engine_of(game)
    findings = [
        _lost_play(protocol, unit, failure, player, catalogue, engine) for unit, failure in lost
    ]
    return _assemble(protocol, player, engine, catalogue, results, findings, executor.restarted)


class _Worker:
    """Plays units; keeps its games open between them."""

    def __init__(
        self, protocol: GoalProtocol, make_policy: Callable[[Catalogue], Policy], player: str
    ) -> None:
        self._protocol = protocol
        self._game = load_game(protocol.game)
        self._catalogue = self._game.catalogue(cast("Scheme", protocol.scheme))
        self._engine = engine_of(self._game)
        self._policy = make_policy(self._catalogue)
        self._player = player
        self._lanes = Lanes(self._make_env)

    def __call__(self, unit: Unit) -> _UnitResult:
        plays = [self._play(cell) for cell in unit.cells]
        wrap = None if unit.journal is None else partial(JournaledEnv, file=unit.journal)
        episodes = self._lanes.play(plays, policy=self._policy, keep_observations=False, wrap=wrap)
        records = tuple(
            self._record(cell, episode) for cell, episode in zip(unit.cells, episodes, strict=True)
        )
        return _UnitResult(records, shortest_paths(episodes, self._catalogue, self._engine))

    def close(self) -> None:
        """Close the games."""
        self._lanes.close()

    def _make_env(self) -> Any:
        env = self._game.make(cast("Scheme", self._protocol.scheme), None)
        found = env.get_wrapper_attr("catalogue").sha256
        if found != self._catalogue.sha256:
            raise RunError(
                f"Game {self._game.id} records other functions than its catalogue says "
                f"({found[:12]} against {self._catalogue.sha256[:12]})."
            )
        return env

    def _play(self, cell: Cell) -> Play:
        name, world = self._protocol.goals[cell[0]], self._protocol.worlds[cell[1]]
        key = episode_key(self._protocol, self._catalogue, self._engine, self._player, name, world)
        # By name and world rather than by position: a goal's plays stay the same whichever other
        # goals and worlds are judged beside it.
        seed = (self._protocol.seed, _STREAM, zlib.crc32(name.encode()), world)
        return Play(key=key, goal=self._catalogue.resolve(name), seed=seed)

    def _record(self, cell: Cell, episode: Episode) -> _Record:
        first = first_calls(episode, len(self._catalogue))
        goal = self._catalogue.resolve(self._protocol.goals[cell[0]])
        return _Record(
            cell=cell,
            reached_at=int(first[goal]) + 1,
            episode_return=float(episode.rewards.astype(np.float64).sum()),
            steps=episode.steps,
            called=first >= 0,
            finding=Finding.of(episode, self._catalogue, self._engine),
        )


def episode_key(
    protocol: GoalProtocol,
    catalogue: Catalogue,
    engine: dict[str, str],
    player: str,
    goal: str,
    world: int,
) -> EpisodeKey:
    """Return the key of one play of the protocol."""
    return EpisodeKey(
        game=protocol.game,
        engine_version=engine.get("version", ""),
        engine_sha256=engine.get("sha256", ""),
        catalogue_sha256=catalogue.sha256,
        world=world,
        seat=0,
        player=player,
        goal=goal,
        step_cap=protocol.step_cap,
    )


def _assemble(
    protocol: GoalProtocol,
    player: str,
    engine: dict[str, str],
    catalogue: Catalogue,
    results: Sequence[_UnitResult],
    findings: Sequence[Finding],
    restarted: int,
) -> Evaluation:
    shape = len(protocol.goals), protocol.episodes
    played = np.zeros(shape, dtype=np.bool_)
    reached_at = np.zeros(shape, dtype=np.int64)
    returns = np.full(shape, np.nan)
    steps = np.zeros(shape, dtype=np.int64)
    called = np.zeros((*shape, len(catalogue)), dtype=np.bool_)
    records = [record for result in results for record in result.records]
    for record in records:
        played[record.cell] = True
        reached_at[record.cell] = record.reached_at
        returns[record.cell] = record.episode_return
        steps[record.cell] = record.steps
        called[record.cell] = record.called
    found = [record.finding for record in records if record.finding is not None]
    return Evaluation(
        protocol=protocol,
        player=player,
        engine=engine,
        catalogue=catalogue,
        played=played,
        reached_at=reached_at,
        returns=returns,
        steps=steps,
        called=called,
        findings=merge_findings([*found, *findings]),
        paths=merge_paths(result.paths for result in results),
        restarted=restarted,
    )


def _lost_play(
    protocol: GoalProtocol,
    unit: Unit,
    failure: WorkerFailure,
    player: str,
    catalogue: Catalogue,
    engine: dict[str, str],
) -> Finding:
    (goal, world) = unit.cells[0]
    actions = read_journal(unit.journal) if unit.journal is not None else ()
    tape = Tape(
        game=protocol.game,
        engine=engine,
        scheme=catalogue.scheme,
        catalogue_sha256=catalogue.sha256,
        world=protocol.worlds[world],
        world_fingerprint="",
        player=player,
        goal=protocol.goals[goal],
        actions=actions,
    )
    # Nothing is left that says where it happened, so each such play is a finding of its own.
    where = f"world {tape.world}, goal {tape.goal}"
    return Finding(Fault(failure.kind, "", failure.detail, where, ""), tape)


def _journal_file(scratch: Path | None, cell: Cell) -> Path | None:
    return None if scratch is None else scratch / f"play-{cell[0]}-{cell[1]}.jsonl"


def _resolve(names: Sequence[str], catalogue: Catalogue) -> tuple[tuple[str, ...], list[str]]:
    found: list[str] = []
    problems: list[str] = []
    for name in names:
        try:
            found.append(catalogue.name(catalogue.resolve(name)))
        except InputError as error:
            problems += error.problems
    return tuple(found), problems
