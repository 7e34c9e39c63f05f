"""Findings: what broke the game, saved so that it can be played again."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from lanista.data.episode import Episode, Fault
from lanista.data.files import write_atomically
from lanista.envs.errors import InputError
from lanista.envs.game import Game
from lanista.envs.tracing.catalogue import Catalogue, Scheme

_SHOWN_STEPS = 3


@dataclass(frozen=True)
class Tape:
    """A play from its beginning: enough to play it again and to see where it went another way.

    Attributes:
        game: Game id.
        engine: The engine's name, version and source hash.
        scheme: Identity scheme of the functions recorded.
        catalogue_sha256: Hash of the functions recorded.
        world: World number.
        world_fingerprint: Hash of the initial conditions drawn, empty where unknown.
        player: Content hash of the player.
        goal: Full name of the function the player was told to reach, or ``None``.
        actions: What was done, one entry a step: an integer, or numbers for continuous actions.
        digests: One short hash a step, of its trace and reward; empty where no record was left.
    """

    game: str
    engine: Mapping[str, str]
    scheme: Scheme
    catalogue_sha256: str
    world: int
    world_fingerprint: str
    player: str
    goal: str | None
    actions: tuple[int | tuple[float, ...], ...]
    digests: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, episode: Episode, engine: Mapping[str, str], scheme: Scheme, steps: int | None = None
    ) -> "Tape":
        """Make the tape of an episode's first steps (all by default)."""
        count = episode.steps if steps is None else steps
        return cls(
            game=episode.key.game,
            engine=dict(engine),
            scheme=scheme,
            catalogue_sha256=episode.key.catalogue_sha256,
            world=episode.key.world,
            world_fingerprint=episode.world_fingerprint,
            player=episode.key.player,
            goal=episode.key.goal,
            actions=tuple(plain_action(action) for action in episode.actions[:count]),
            digests=step_digests(episode, count),
        )


@dataclass(frozen=True)
class Finding:
    """A crash or hang of the game.

    Attributes:
        fault: What broke.
        tape: How to get there; its last action is the one that broke it. Without actions the game
            broke at its reset, or what was done is lost.
        last_calls: Names of the functions called in the last steps, in order, per step; the last
            entry holds the calls of the broken step up to the break.
        occurrences: How many plays broke in the same way.
    """

    fault: Fault
    tape: Tape
    last_calls: tuple[tuple[str, ...], ...] = ()
    occurrences: int = 1

    @classmethod
    def of(
        cls, episode: Episode, catalogue: Catalogue, engine: Mapping[str, str]
    ) -> "Finding | None":
        """Return what an episode found, ``None`` where the game did not break."""
        if episode.fault is None or episode.fault.kind == "player":
            return None
        first = max(0, episode.steps - _SHOWN_STEPS)
        calls = tuple(
            tuple(catalogue.name(int(item)) for item in episode.trace(step).ids)
            for step in range(first, episode.steps)
        )
        return cls(episode.fault, Tape.of(episode, engine, catalogue.scheme), calls)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two findings the same: kind, exception and place."""
        return self.fault.kind, self.fault.exception, self.fault.where

    @property
    def at_reset(self) -> bool:
        """Whether the game broke before any action; without actions they may be lost instead."""
        return not self.tape.actions and bool(self.fault.exception)

    @property
    def file_name(self) -> str:
        """Name of the finding's file, the same for the same finding."""
        digest = blake2b("\n".join(self.identity).encode(), digest_size=5).hexdigest()
        # Both can come from a file, and must not lead out of a folder.
        shown = plain_name(f"{self.fault.kind}-{self.fault.exception or 'unknown'}")
        return f"{shown}-{digest}.json"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value from which :meth:`from_json` makes an equal finding."""
        return {"format": "lanista-finding", "version": 1, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Finding":
        """Make a finding of what :meth:`to_json` returned.

        Raises:
            InputError: If the value does not have that form.
        """
        try:
            return cls(
                Fault(**value["fault"]),
                tape_from_json(value["tape"]),
                tuple(tuple(map(str, step)) for step in value["last_calls"]),
                int(value["occurrences"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is not a finding: {error!r}.") from error


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep one finding of each kind, exception and place: the one with the fewest actions.

    The result does not depend on the order in which findings come in.
    """
    best: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        other = best.get(finding.identity)
        if other is None:
            best[finding.identity] = finding
            continue
        chosen = min(finding, other, key=_preference)
        best[finding.identity] = replace(
            chosen, occurrences=finding.occurrences + other.occurrences
        )
    return tuple(best[identity] for identity in sorted(best))


def save_findings(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """Write one file a finding, and return their paths."""
    paths = [folder / finding.file_name for finding in findings]
    for finding, path in zip(findings, paths, strict=True):
        write_json(path, finding.to_json())
    return paths


def plain_name(text: str) -> str:
    """Return a text as a part of a file's name: all but letters, digits and ``._-`` become -."""
    return "".join(part if part.isalnum() or part in "._-" else "-" for part in text)


def step_digests(episode: Episode, steps: int | None = None) -> tuple[str, ...]:
    """Return a short hash per step, of its ordered trace and its reward."""
    count = episode.steps if steps is None else steps
    found = []
    for step in range(count):
        content = episode.trace(step).ids.astype("<u4").tobytes()
        content += np.float32(episode.rewards[step]).astype("<f4").tobytes()
        found.append(blake2b(content, digest_size=5).hexdigest())
    return tuple(found)


def plain_action(action: Any) -> int | tuple[float, ...]:
    """Turn an action into plain numbers: an integer, or a tuple for continuous ones."""
    array = np.asarray(action)
    if array.ndim == 0:
        return int(array)
    return tuple(float(item) for item in array.ravel())


def tape_from_json(value: Mapping[str, Any]) -> Tape:
    """Make a tape of its JSON value.

    Raises:
        KeyError, TypeError, ValueError: If the value does not have that form.
    """
    actions = tuple(
        tuple(float(part) for part in item) if isinstance(item, list | tuple) else int(item)
        for item in value["actions"]
    )
    scheme, engine = value["scheme"], value["engine"]
    if not isinstance(engine, dict):
        raise TypeError(f"engine is {engine!r}")
    if scheme not in {"definition", "class", "edge"}:
        raise ValueError(f"scheme {scheme!r} is unknown")
    digests = tuple(map(str, value["digests"]))
    if digests and len(digests) != len(actions):
        raise ValueError(f"{len(actions)} actions have {len(digests)} digests")
    return Tape(
        game=str(value["game"]),
        engine={str(name): str(item) for name, item in engine.items()},
        scheme=scheme,
        catalogue_sha256=str(value["catalogue_sha256"]),
        world=int(value["world"]),
        world_fingerprint=str(value["world_fingerprint"]),
        player=str(value["player"]),
        goal=None if value["goal"] is None else str(value["goal"]),
        actions=actions,
        digests=digests,
    )


def engine_of(game: Game) -> dict[str, str]:
    """Return the engine's name, version and source hash as plain strings."""
    return {name: str(item) for name, item in game.engine().items()}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file in one step, so that a reader sees all of it or nothing."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_atomically(path, (text + "\n").encode())


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InputError: If the file is missing or holds no JSON object; ``what`` says what it is.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The {what} {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"The {what} {path} is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"The {what} {path} holds no JSON object.")
    return value


def _preference(finding: Finding) -> tuple[float, int, str, tuple[Any, ...]]:
    tape = finding.tape
    # A finding whose actions were lost can't be replayed, so any other is better.
    length = len(tape.actions) if tape.actions or finding.at_reset else math.inf
    return length, tape.world, tape.goal or "", tape.actions
