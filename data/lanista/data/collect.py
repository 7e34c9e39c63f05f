"""Recording with testers: which plays a recipe means, and a folder that ends up holding them."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lanista.data.episode import EpisodeKey
from lanista.data.episode_file import EncodedEpisode, ObservationMode, encode_episode
from lanista.data.executor import Executor, WorkerFailure
from lanista.data.files import only_writer, remove_unfinished
from lanista.data.lanes import Lanes
from lanista.data.rollout import Play
from lanista.data.store import EpisodeStore
from lanista.envs.errors import InputError, RunError
from lanista.envs.game import Game, canonical_game_id, load_game
from lanista.envs.policy import Tester
from lanista.envs.tracing.catalogue import Catalogue, Scheme

STOP_STEPS = "stop_steps"
"""The parameter of every tester that says between how many steps it stops of itself."""

_CHOICE, _PLAY, _PLAN = 1, 2, 3
"""Random streams of an episode: which tester plays and how long, its steps, its plans."""


class MakeTester(Protocol):
    """Makes a tester for one play; must pickle."""

    def __call__(
        self, game_id: str, name: str, parameters: Mapping[str, Any], rng: np.random.Generator
    ) -> Tester:
        """Return the tester."""
        ...


TesterHash = Callable[[str, str, Mapping[str, Any]], str]
"""Returns the content hash of a game's tester, given its name and parameters."""


@dataclass(frozen=True)
class RecipeTester:
    """A tester and the share of the episodes that it plays.

    Attributes:
        name: What the game's testers call it.
        weight: Its share, relative to the others' weights.
        parameters: Its parameters. ``stop_steps: [low, high]`` makes it stop of itself after a
            number of steps drawn from that range for each play.
    """

    name: str
    weight: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CollectRecipe:
    """All that decides what a recording holds.

    Attributes:
        game: Id of the game.
        episodes: Number of plays; play i happens in world ``first_world + i``.
        testers: Who plays; each play draws one by weight.
        first_world: World of the first play.
        step_cap: Steps after which a play is cut; the game's own cap if ``None``.
        seed: What all random draws are spawned from.
        scheme: How the game's calls are told apart.
        only: Patterns of the functions to record; all of the game's if ``None``.
        observations: Whether observations are ``stored``, or ``replayed`` when they are read.
    """

    game: str
    episodes: int
    testers: tuple[RecipeTester, ...]
    first_world: int = 0
    step_cap: int | None = None
    seed: int = 0
    scheme: Scheme = "class"
    only: tuple[str, ...] | None = None
    observations: ObservationMode = "stored"

    def check(self) -> None:
        """Refuse a recipe that makes no sense, with all that is wrong with it.

        Raises:
            InputError: One line a problem.
        """
        problems = []
        if self.episodes < 1:
            problems.append(f"episodes is {self.episodes}; a recording needs at least 1.")
        if self.first_world < 0:
            problems.append(f"first_world is {self.first_world}; worlds are counted from 0.")
        if self.step_cap is not None and self.step_cap < 1:
            problems.append(f"step_cap is {self.step_cap}; a play needs at least 1 step.")
        if self.seed < 0:
            problems.append(f"seed is {self.seed}; seeds are not negative.")
        if not self.testers:
            problems.append("testers is empty; name at least one.")
        problems += [
            f"Tester {share.name!r} has weight {share.weight}; weights are above 0."
            for share in self.testers
            if not (0 < share.weight < float("inf"))
        ]
        if problems:
            raise InputError(*problems)


@dataclass(frozen=True)
class Assignment:
    """One play of a recipe, with all that decides it.

    Attributes:
        play: What is played.
        tester: Who plays it.
        parameters: The tester's parameters.
        plan_seed: What the generator is made from that the tester draws its plans from.
    """

    play: Play
    tester: str
    parameters: Mapping[str, Any]
    plan_seed: tuple[int, ...]


@dataclass(frozen=True)
class CollectResult:
    """What a recording came to.

    Attributes:
        episodes: Number of episodes in the store.
        steps: Number of their steps.
        restarted: How many workers had to be started anew.
        findings: Faults of the game, equal ones once: ``kind``, ``exception``, ``message``,
            ``where``, ``count``, and ``world`` and ``episode_id`` of the first.
        failures: Plays that are missing, since their worker died or hung each time: ``world``,
            ``kind``, ``detail``, ``tries``. Recording once more tries them again.
        manifest_sha256: Hash of what the store holds.
    """

    episodes: int
    steps: int
    restarted: int
    findings: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    manifest_sha256: str


def assignments(
    recipe: CollectRecipe, game: Game, catalogue: Catalogue, tester_hash: TesterHash
) -> list[Assignment]:
    """Return the plays of a recipe; play i is a function of the recipe and i alone."""
    hashes = [tester_hash(recipe.game, item.name, item.parameters) for item in recipe.testers]
    engine = game.engine()
    weights = np.array([share.weight for share in recipe.testers], dtype=np.float64)
    plays = []
    for index in range(recipe.episodes):
        rng = np.random.default_rng(np.random.SeedSequence([recipe.seed, _CHOICE, index]))
        chosen = int(rng.choice(len(weights), p=weights / weights.sum()))
        share = recipe.testers[chosen]
        key = EpisodeKey(
            game=recipe.game,
            engine_version=engine["version"],
            engine_sha256=engine["sha256"],
            catalogue_sha256=catalogue.sha256,
            world=recipe.first_world + index,
            seat=0,
            player=hashes[chosen],
            goal=None,
            step_cap=recipe.step_cap or game.step_cap,
        )
        play = Play(key, None, (recipe.seed, _PLAY, index), _drawn_stop(share.parameters, rng))
        plays.append(Assignment(play, share.name, share.parameters, (recipe.seed, _PLAN, index)))
    return plays


def collect(
    path: Path | str,
    recipe: CollectRecipe,
    executor: Executor,
    make_tester: MakeTester,
    tester_hash: TesterHash,
    on_episode: Callable[[Mapping[str, Any]], None] | None = None,
    *,
    games_per_worker: int = 1,
) -> CollectResult:
    """Record what a recipe means into a folder; go on where an earlier call was interrupted.

    Workers play and compress; this process alone writes, one whole file an episode. So a worker
    that dies loses the plays it was at and nothing else, no play is ever there twice, and workers
    need no disk in common. What the folder holds in the end does not depend on the executor.

    Args:
        path: Folder of the store.
        recipe: What to record.
        executor: What runs the workers.
        make_tester: Makes the testers, inside the workers.
        tester_hash: Tells the testers' content hashes.
        on_episode: Is handed the manifest's row of each episode once it is on the disk, those
            that are there already first.
        games_per_worker: How many games a worker keeps open and plays as one unit.

    Raises:
        InputError: If the recipe makes no sense, the folder cannot be written to, is being
            written by another process, or holds something else: another recipe's recording
            (testers whose source has changed count as others), or missing files.
        RunError: If the game's workers record other functions than expected.
    """
    recipe.check()
    if games_per_worker < 1:
        raise InputError(f"games_per_worker is {games_per_worker}; at least 1 is needed.")
    recipe = dataclasses.replace(recipe, game=canonical_game_id(recipe.game))
    game = load_game(recipe.game)
    catalogue = recorded_catalogue(game, recipe)
    plays = assignments(recipe, game, catalogue, tester_hash)
    with only_writer(Path(path)):
        remove_unfinished(Path(path))
        store = EpisodeStore.create(
            path, game=game, catalogue=catalogue, recipe=_to_json(recipe, game, tester_hash)
        )
        store.check_files()
        rows = {row["episode_id"]: row for row in store.rows()}
        for row in rows.values():
            if on_episode is not None:
                on_episode(row)
        missing = [item for item in plays if item.play.key.episode_id not in rows]
        units = [
            tuple(missing[start : start + games_per_worker])
            for start in range(0, len(missing), games_per_worker)
        ]
        failures: list[dict[str, Any]] = []
        make_worker = functools.partial(Recorder, recipe, catalogue.sha256, make_tester)
        for index, result in executor.run(make_worker, units) if units else ():
            if isinstance(result, WorkerFailure):
                failures += [
                    {"world": item.play.key.world, **dataclasses.asdict(result)}
                    for item in units[index]
                ]
                continue
            for encoded in result:
                if store.add_encoded(encoded) and on_episode is not None:
                    on_episode(encoded.row)
        store.save()
        totals = store.manifest["totals"]
        return CollectResult(
            episodes=totals["episodes"],
            steps=totals["steps"],
            restarted=executor.restarted,
            findings=findings(store),
            failures=sorted(failures, key=lambda item: int(item["world"])),
            manifest_sha256=store.manifest_sha256,
        )


def findings(store: EpisodeStore) -> list[dict[str, Any]]:
    """Return the faults in a store, those with equal kind, exception and place as one."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in store.rows():
        fault = row["fault"]
        if fault is None:
            continue
        place = (fault["kind"], fault["exception"], fault["where"])
        first = {"world": row["key"]["world"], "episode_id": row["episode_id"], "count": 0}
        found.setdefault(place, {**fault, **first})["count"] += 1
    return list(found.values())


def recorded_catalogue(game: Game, recipe: CollectRecipe) -> Catalogue:
    """Return the functions that a recipe records."""
    if recipe.only is None:
        return game.catalogue(recipe.scheme)
    env: Any = game.make(recipe.scheme, recipe.only)
    catalogue: Catalogue = env.catalogue
    env.close()
    return catalogue


class Recorder:
    """A worker: keeps games open, plays assignments and returns their files' bytes."""

    def __init__(
        self,
        recipe: CollectRecipe,
        catalogue_sha256: str,
        make_tester: MakeTester,
    ) -> None:
        self._recipe = recipe
        self._catalogue_sha256 = catalogue_sha256
        self._make_tester = make_tester
        self._game = load_game(recipe.game)
        self._lanes = Lanes(self._make_env)

    def __call__(self, unit: Sequence[Assignment]) -> list[EncodedEpisode]:
        """Play all of a unit's assignments side by side."""

        def tester(number: int) -> Tester:
            item = unit[number]
            rng = np.random.default_rng(np.random.SeedSequence(list(item.plan_seed)))
            return self._make_tester(self._recipe.game, item.tester, item.parameters, rng)

        episodes = self._lanes.play([item.play for item in unit], make_tester=tester)
        return [encode_episode(episode, self._recipe.observations) for episode in episodes]

    def close(self) -> None:
        """Close the games."""
        self._lanes.close()

    def _make_env(self) -> Any:
        env: Any = self._game.make(self._recipe.scheme, self._recipe.only)
        if env.catalogue.sha256 != self._catalogue_sha256:
            raise RunError(
                f"A worker finds other functions in {self._recipe.game} than this process does; "
                "make sure that all run the same versions."
            )
        return env


def _drawn_stop(parameters: Mapping[str, Any], rng: np.random.Generator) -> int | None:
    bounds = parameters.get(STOP_STEPS)
    if bounds is None:
        return None
    try:
        low, high = bounds
        return int(rng.integers(int(low), int(high) + 1))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{STOP_STEPS} is {bounds!r} but must be two whole numbers of steps, the lower first."
        ) from error


def _to_json(recipe: CollectRecipe, game: Game, tester_hash: TesterHash) -> dict[str, Any]:
    value = dataclasses.asdict(recipe) | {"step_cap": recipe.step_cap or game.step_cap}
    for item, share in zip(value["testers"], recipe.testers, strict=True):
        item["sha256"] = tester_hash(recipe.game, share.name, share.parameters)
    return value
