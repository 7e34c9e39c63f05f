"""What is kept of one match, and what makes it that match and no other."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["reactive", "replayed", "assisted"]
"""Whether a player answers, is a recording, or a recording that is helped along."""

Ending = Literal["normal", "forfeit", "invalid"]
"""Whether the rules decided, a player failed, or the game or the machine did."""


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, 64 hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class MatchKey:
    """Everything that decides how a match goes; the ledger holds each key once.

    Attributes:
        engine_sha256: Hash of the engine's source.
        config_sha256: Hash of the game's id and all its resolved options.
        world: Number of the world.
        players: Content hash of the player in each seat, in the order of the seats.
        repeat: Which time these play each other so; the players' own draws differ with it.
    """

    engine_sha256: str
    config_sha256: str
    world: int
    players: tuple[str, ...]
    repeat: int = 0

    @property
    def episode_id(self) -> str:
        """Name of the match: 32 hex digits of the hash of all the key's fields."""
        return content_hash(asdict(self))[:32]


@dataclass(frozen=True)
class MatchRecord:
    """One match as it came out; a row of the ledger.

    Attributes:
        key: Which match it is.
        game: The game's id.
        names: What people call the player in each seat.
        kinds: Of the player in each seat; only where all are reactive did programs meet.
        ending: ``normal`` where the rules decided. Only such matches are ever counted.
        points: Of each seat (1, ½, 0), by the rules; empty unless ``normal``.
        score: Of each seat, in the game's own unit; empty unless ``normal``.
        statuses: Of each seat: ``ok``, or the kind of what its player did wrong.
        reason: Why it is no normal match, one line; empty if it is.
        fingerprint: Of what the world really drew.
        end: How it ended, in the game's own words.
        steps: Decisions taken.
        seconds: How long it took on the clock.
        worker: Where it was played.
        details: Counts of each seat and whatever else a game or player tells; plain JSON.
    """

    key: MatchKey
    game: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    ending: Ending
    points: tuple[float, ...]
    score: tuple[float, ...]
    statuses: tuple[str, ...]
    reason: str
    fingerprint: str
    end: str
    steps: int
    seconds: float
    worker: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Whether it may enter a rating or a comparison of programs."""
        return self.ending == "normal" and all(kind == "reactive" for kind in self.kinds)


FRAME_COLUMNS = (
    "episode_id", "game", "engine_sha256", "config_sha256", "world", "repeat",
    "player0", "player1", "name0", "name1", "kind0", "kind1",
    "ending", "points0", "points1", "score0", "score1", "status0", "status1", "reason",
    "fingerprint", "end", "steps", "seconds", "worker", "recorded",
)  # fmt: skip
"""Columns of a table of two-seat matches, as the ledger, ratings and comparisons share it.

``player0`` and ``player1`` are content hashes in the order of the seats, ``points`` and ``score``
are NaN unless ``ending`` is ``normal``, ``recorded`` is the order in which the ledger took them.
"""
