"""Experiment files: one agent to train, or a sweep of agents over seeds, and what judges them."""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lanista.agents.config import AgentConfig, TrainConfig
from lanista.data.collect import CollectRecipe
from lanista.envs.errors import InputError
from lanista.platform.cli.options import parse_worlds
from lanista.platform.config import Document, make, read_document, to_plain
from lanista.platform.provenance import sha256_of

GoalRule = Literal["recorded_minus_always", "action_dependent"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ONLY_IN_SEQUENCES = frozenset({"context", "layers", "heads", "goal_tokens", "timestep"})
"""Fields that change nothing in GC-BC; a grid over them leaves its trials alone."""


@dataclass(frozen=True)
class DataSource:
    """The episodes to learn from."""

    path: str
    """Folder of the episode store, absolute or relative to the root."""
    collect: CollectRecipe | None = None
    """How it is recorded first; ``None`` where it is there already."""
    goals: GoalRule = "recorded_minus_always"
    """Rule by which functions are goals."""

    def __post_init__(self) -> None:
        if self.collect is not None:
            self.collect.check()

    def folder(self, root: Path) -> Path:
        """Return the store's folder."""
        return root / Path(self.path).expanduser()


@dataclass(frozen=True)
class GoalSubset:
    """Some of the goals: evenly spaced over their order by how often the data calls them."""

    subset: int
    """How many."""

    def __post_init__(self) -> None:
        if self.subset < 1:
            raise InputError(f"subset is {self.subset}; at least 1 goal is needed.")


@dataclass(frozen=True)
class EvaluateConfig:
    """The goal protocol that every trained agent is judged by."""

    goals: Literal["all"] | tuple[str, ...] | GoalSubset = "all"
    """``all``, names, or ``{subset: n}``."""
    episodes: int = 10
    """Plays per goal."""
    worlds: str = "10000-"
    """Worlds; ``10000-`` takes as many from 10000 on as there are episodes."""
    step_cap: int | None = None
    """Steps after which a play is cut; the game's own cap by default."""
    seed: int = 0
    """What the players' draws are spawned from."""
    greedy: bool = False
    """Whether players take their likeliest action instead of drawing one."""
    hang_timeout_s: float = 900.0
    """Seconds that ten plays side by side may take before they count as hung."""

    def __post_init__(self) -> None:
        problems = []
        if self.episodes < 1:
            problems.append(f"episodes is {self.episodes}; at least 1 is needed.")
        if self.step_cap is not None and self.step_cap < 1:
            problems.append(f"step_cap is {self.step_cap}; at least 1 is needed.")
        if self.hang_timeout_s <= 0:
            problems.append(f"hang_timeout_s is {self.hang_timeout_s}; it must be above 0.")
        if not problems:
            try:
                if len(self.world_list) < self.episodes:
                    problems.append(
                        f"worlds are {len(self.world_list)} for {self.episodes} episodes; "
                        "each episode needs one."
                    )
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(*problems)

    @property
    def world_list(self) -> tuple[int, ...]:
        """The worlds as numbers."""
        text = self.worlds.strip()
        if text.endswith("-") and text[:-1].isdecimal():
            text += str(int(text[:-1]) + self.episodes - 1)
        return tuple(parse_worlds(text))


@dataclass(frozen=True)
class Scheduling:
    """How wide a sweep runs; changes no result, so it may differ when the sweep goes on."""

    workers: int | None = None
    """Ray actors that record and judge; as many as the cluster has CPUs by default."""
    concurrent: int | None = None
    """Trials that train at once; as many as there is room for by default."""
    cpus_per_trial: float = 1.0
    """CPUs of one training."""
    gpus_per_trial: float = 0.0
    """GPUs, or a share of one, of one training."""
    max_failures: int = 2
    """How often a trial whose process died is tried again, from its last checkpoint."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} is {value}; at least 1 is needed."
            for name, value in (("workers", self.workers), ("concurrent", self.concurrent))
            if value is not None and value < 1
        ]
        if self.cpus_per_trial <= 0 or self.gpus_per_trial < 0 or self.max_failures < 0:
            problems.append("cpus_per_trial is above 0; gpus_per_trial, max_failures at least 0.")
        if problems:
            raise InputError(*problems)


@dataclass(frozen=True)
class Trial:
    """One agent to train and judge.

    Attributes:
        name: Name of its folder and run, unique in the sweep.
        label: What its agent is called in tables; trials that differ in nothing but the seed
            share it.
        seed: Training seed.
        agent: Architecture.
        train: How it is trained.
        variation: The grid's part of the label, such as ``context=10``; empty without a grid.
    """

    name: str
    label: str
    seed: int
    agent: AgentConfig
    train: TrainConfig
    variation: str = ""


@dataclass(frozen=True)
class SweepFile:
    """A sweep: agents × grid × seeds, trained on the same data and judged alike."""

    name: str
    data: DataSource
    agents: dict[str, AgentConfig]
    seeds: tuple[int, ...] = (0,)
    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Fields of ``agents``' configurations and the values that each is to take."""
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    scheduling: Scheduling = field(default_factory=Scheduling)

    def __post_init__(self) -> None:
        problems = list(_name_problems(self.name))
        if not self.agents:
            problems.append("agents is empty; name at least one.")
        if not self.seeds or min(self.seeds) < 0 or len(set(self.seeds)) != len(self.seeds):
            problems.append("seeds must be distinct numbers of at least 0, at least one of them.")
        if self.train.seed:
            problems.append("train.seed is set by seeds in a sweep; leave it out.")
        known = {item.name for item in dataclasses.fields(AgentConfig)}
        problems += [
            f"grid.{key}: agents have no such field." for key in self.grid if key not in known
        ]
        problems += [f"grid.{key}: no value is given." for key, v in self.grid.items() if not v]
        if not problems:
            try:
                names = [trial.name for trial in self.trials()]
            except InputError as error:
                raise InputError(*(f"grid: {problem}" for problem in error.problems)) from error
            if twice := sorted({name for name in names if names.count(name) > 1}):
                problems.append(f"agents: two trials would be named {twice[0]}; rename one.")
        if problems:
            raise InputError(*problems)

    def trials(self) -> list[Trial]:
        """Return every trial, agents first, then grid, then seeds."""
        return list(self._trials())

    def _trials(self) -> Iterator[Trial]:
        for label, agent in self.agents.items():
            for point in self._points(agent):
                variant = make_variant(agent, point)
                variation = " ".join(f"{key}={value}" for key, value in point.items())
                shown = f"{label} {variation}".rstrip()
                for seed in self.seeds:
                    train = dataclasses.replace(self.train, seed=seed)
                    name = slug(f"{shown} seed {seed}")
                    yield Trial(name, shown, seed, variant, train, variation)

    def _points(self, agent: AgentConfig) -> Iterator[dict[str, Any]]:
        keys = [
            key
            for key in self.grid
            if not (agent.algorithm == "gcbc" and key in _ONLY_IN_SEQUENCES)
        ]
        for values in itertools.product(*(self.grid[key] for key in keys)):
            yield dict(zip(keys, values, strict=True))


@dataclass(frozen=True)
class TrainFile:
    """One agent to train."""

    name: str
    data: DataSource
    agent: AgentConfig
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        if problems := list(_name_problems(self.name)):
            raise InputError(*problems)


def read_sweep(
    path: Path,
    *,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    name: str | None = None,
) -> SweepFile:
    """Read a sweep's file.

    Raises:
        InputError: With a line for each thing that is wrong.
    """
    return make_sweep(read_document(path, overrides=overrides, profile=profile), name)


def make_sweep(document: Document, name: str | None = None) -> SweepFile:
    """Make a sweep of a document, under another name where one is given."""
    return make(SweepFile, _prepared(document, name))


def read_training(
    path: Path,
    *,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    name: str | None = None,
) -> TrainFile:
    """Read a training's file.

    Raises:
        InputError: With a line for each thing that is wrong.
    """
    return make(
        TrainFile, _prepared(read_document(path, overrides=overrides, profile=profile), name)
    )


def identity(file: SweepFile | TrainFile) -> str:
    """Return the hash of all that decides a run's results: everything but its name and width."""
    plain = to_plain(file)
    plain.pop("scheduling", None)
    plain.pop("name")
    return sha256_of(plain)


def slug(text: str) -> str:
    """Make a name for folders of a text: ``GC-DT + CA2 (MHSA)`` becomes ``gc-dt-ca2-mhsa``."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "agent"


def make_variant(agent: AgentConfig, point: Mapping[str, Any]) -> AgentConfig:
    """Return an agent with some fields changed, checked as a file's are.

    Raises:
        InputError: With a line for each value that does not fit.
    """
    return make(AgentConfig, Document({**to_plain(agent), **point}, "grid", {}))


def _prepared(document: Document, name: str | None) -> Document:
    value = dict(document.value)
    if name is not None:
        value["name"] = name
    if isinstance(value.get("data"), str):
        value["data"] = {"path": value["data"]}
    return dataclasses.replace(document, value=value)


def _name_problems(name: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"name {name!r} must be letters, digits, '.', '_' and '-', at most 100."
