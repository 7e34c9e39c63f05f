"""What judging a player gives: its plays in a table, and the metrics read off it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.evaluation.findings import Finding
from lanista.evaluation.paths import RecordedPath
from lanista.evaluation.statistics import Interval, t_interval, wilson_interval, world_interval


@dataclass(frozen=True)
class GoalProtocol:
    """The paper's evaluation protocol (section 6.1) with everything that decides its result.

    Attributes:
        game: Game id.
        goals: Functions to reach, each by its full name.
        episodes: Plays per goal.
        worlds: Episode i of every goal and every player is played in world i of these; those
            beyond ``episodes`` are not played.
        step_cap: Steps after which a play is cut.
        seed: What every player's random draws are spawned from.
        scheme: How calls are told apart.
        goal_base: All goals of the data, the base of the goals covered; ``goals`` if empty.
    """

    game: str
    goals: tuple[str, ...]
    episodes: int
    worlds: tuple[int, ...]
    step_cap: int
    seed: int
    scheme: str = "class"
    goal_base: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "GoalProtocol":
        """Make a protocol of its fields as plain JSON values."""
        return cls(
            game=str(value["game"]),
            goals=tuple(map(str, value["goals"])),
            episodes=int(value["episodes"]),
            worlds=tuple(map(int, value["worlds"])),
            step_cap=int(value["step_cap"]),
            seed=int(value["seed"]),
            scheme=str(value["scheme"]),
            goal_base=tuple(map(str, value["goal_base"])),
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The plays of one player under one protocol.

    Axes: G goals in the protocol's order, N episodes (episode i is world i), F functions of the
    catalogue.

    Attributes:
        protocol: What was played.
        player: Content hash of the player.
        engine: The engine's name, version and source hash.
        catalogue: What the function ids mean.
        played: ``bool[G, N]``: whether the play left a record. One whose worker hung or died
            left none; it is a finding, and takes no part in the means.
        reached_at: ``int64[G, N]``: number of steps after which the goal had been called first,
            0 where it never was. Calls made by reset don't count.
        returns: ``float64[G, N]``: sum of the game's own rewards; NaN where not played.
        steps: ``int64[G, N]``: steps played.
        called: ``bool[G, N, F]``: functions called by the steps of each play.
        findings: What broke the game, each once.
        paths: Shortest recorded path to each function reached.
        restarted: Workers that had to be started anew.
    """

    protocol: GoalProtocol
    player: str
    engine: Mapping[str, str]
    catalogue: Catalogue
    played: NDArray[np.bool_]
    reached_at: NDArray[np.int64]
    returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    called: NDArray[np.bool_]
    findings: tuple[Finding, ...] = ()
    paths: tuple[RecordedPath, ...] = ()
    restarted: int = 0

    @cached_property
    def success(self) -> NDArray[np.float64]:
        """``float64[G, N]``: 1 where the goal was called by some step, NaN where not played."""
        return np.where(self.played, (self.reached_at > 0).astype(np.float64), np.nan)

    @property
    def success_rate(self) -> Interval:
        """Share of plays that reached their goal, with its interval over worlds."""
        return world_interval(self.success, rate=True)

    @property
    def episode_return(self) -> Interval:
        """Mean sum of the game's own rewards in a play, with its interval over worlds."""
        return world_interval(self.returns)

    @cached_property
    def covered(self) -> NDArray[np.bool_]:
        """``bool[F]``: functions called in any play (reset's calls don't count)."""
        return np.asarray(self.called.any(axis=(0, 1)), dtype=np.bool_)

    @property
    def coverage(self) -> int:
        """Function coverage: the number of functions called over all plays."""
        return int(self.covered.sum())

    @property
    def goal_base(self) -> tuple[str, ...]:
        """The goals that the goals covered are counted against."""
        return self.protocol.goal_base or self.protocol.goals

    @property
    def goals_covered(self) -> int:
        """How many functions of the goal base were called, whatever the goal of the play."""
        return sum(bool(self.covered[self.catalogue.resolve(name)]) for name in self.goal_base)

    @property
    def world_coverage(self) -> Interval:
        """Functions called in one world, mean over worlds with its interval.

        Coverage itself is a union that grows with the number of worlds, so the worlds of one
        evaluation give it no interval; this is the quantity that they do give one to.
        """
        counts = self.called.any(axis=0).sum(axis=1).astype(np.float64)
        counts[~self.played.any(axis=0)] = np.nan
        return t_interval(counts, "worlds, of the functions called in one world")

    def goal_success(self, goal: int) -> Interval:
        """Success rate of one goal (by position), with Wilson's interval over its plays."""
        known = self.played[goal]
        return wilson_interval(int((self.reached_at[goal][known] > 0).sum()), int(known.sum()))

    def summary(self) -> dict[str, Any]:
        """Return the metrics as a JSON value: totals, goals and findings."""
        functions, goals = len(self.catalogue), len(self.goal_base)
        per_world = self.world_coverage.to_json()
        return {
            "success_rate": self.success_rate.to_json(),
            "episode_return": self.episode_return.to_json(),
            "function_coverage": {
                "value": self.coverage,
                "low": per_world["low"],
                "high": per_world["high"],
                "interval_of": "mean functions called in one world, over worlds",
                "mean_per_world": per_world["value"],
                "functions": functions,
                "percent_of_functions": 100 * self.coverage / functions if functions else None,
                "goals_covered": self.goals_covered,
                "goals": goals,
                "percent_of_goals": 100 * self.goals_covered / goals if goals else None,
            },
            "goals": [
                {
                    "name": name,
                    "success_rate": found.value if found.samples else None,
                    "low": found.low if found.samples else None,
                    "high": found.high if found.samples else None,
                    "episodes": found.samples,
                }
                for name, found in (
                    (name, self.goal_success(index))
                    for index, name in enumerate(self.protocol.goals)
                )
            ],
            "unreached": [
                item.name
                for item, covered in zip(self.catalogue.functions, self.covered, strict=True)
                if not covered
            ],
            "plays": int(self.played.sum()),
            "plays_lost": int((~self.played).sum()),
            "restarted": self.restarted,
        }

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value from which :meth:`from_json` makes an equal evaluation.

        ``called`` is packed, one hexadecimal string a play. The metrics stand beside the data
        under ``summary`` for readers that want nothing else.
        """
        packed = np.packbits(self.called, axis=2)
        return {
            "format": "lanista-evaluation",
            "version": 1,
            "summary": self.summary(),
            "protocol": asdict(self.protocol),
            "player": self.player,
            "engine": dict(self.engine),
            "catalogue": self.catalogue.to_json(),
            "played": self.played.astype(int).tolist(),
            "reached_at": self.reached_at.tolist(),
            "returns": [
                [None if np.isnan(value) else float(value) for value in row] for row in self.returns
            ],
            "steps": self.steps.tolist(),
            "called": [[play.tobytes().hex() for play in goal] for goal in packed],
            "findings": [finding.to_json() for finding in self.findings],
            "paths": [path.to_json() for path in self.paths],
            "restarted": self.restarted,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Evaluation":
        """Make an evaluation of what :meth:`to_json` returned.

        Raises:
            InputError: If the value does not have that form.
        """
        try:
            protocol = GoalProtocol.from_json(value["protocol"])
            catalogue = Catalogue.from_json(value["catalogue"])
            shape = len(protocol.goals), protocol.episodes
            packed = np.array(
                [[list(bytes.fromhex(play)) for play in goal] for goal in value["called"]],
                dtype=np.uint8,
            ).reshape(*shape, -1)
            return cls(
                protocol=protocol,
                player=str(value["player"]),
                engine=dict(value["engine"]),
                catalogue=catalogue,
                played=np.array(value["played"], dtype=np.bool_).reshape(shape),
                reached_at=np.array(value["reached_at"], dtype=np.int64).reshape(shape),
                returns=np.array(value["returns"], dtype=np.float64).reshape(shape),
                steps=np.array(value["steps"], dtype=np.int64).reshape(shape),
                called=np.unpackbits(packed, axis=2, count=len(catalogue)).astype(np.bool_),
                findings=tuple(Finding.from_json(item) for item in value["findings"]),
                paths=tuple(RecordedPath.from_json(item) for item in value["paths"]),
                restarted=int(value["restarted"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not an evaluation: {error!r}.") from error
