"""Games for several seats: what a match plays, in turns or all seats at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.game import Game, game_ids, import_game, is_folder, load_game
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace


@dataclass(frozen=True)
class SeatView:
    """What one seat sees when it is to act.

    Attributes:
        obs: The game's observation for this seat alone: an array, or a mapping of arrays, numbers
            and texts. It shares no memory with the game, so a player may write into it.
        legal_mask: Which actions are legal, ``bool`` in a shape that the game documents; ``None``
            where the game has no such thing.
        call_trace: The calls caused by this seat's action before; empty where none are recorded.
    """

    obs: Any
    legal_mask: NDArray[np.bool_] | None = None
    call_trace: CallTrace = field(default_factory=CallTrace)


@dataclass(frozen=True)
class Forfeit:
    """Returned by a policy in place of an action: the player can play on no more.

    Attributes:
        kind: ``crash``, ``timeout``, ``memory``, ``protocol`` (no action at all) or ``refused``.
        detail: What happened, one line.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """How a match ended by the rules of its game.

    Attributes:
        points: Of each seat: 1 for a win, ½ for a draw, 0 for a loss; they add up to 1.
        score: Of each seat, in the game's own unit (coins, rule score).
        end: How it ended, in the game's own words: ``city``, ``score``, ``money``.
        steps: Decisions taken, of all seats together.
        counts: Of each seat, by name: ``illegal``, ``conflict``, ``pass`` and whatever else the
            game counts.
    """

    points: tuple[float, ...]
    score: tuple[float, ...]
    end: str
    steps: int
    counts: tuple[Mapping[str, int], ...]


class MatchEnv(Protocol):
    """One game for several seats, played again and again.

    A match goes: ``reset``; while ``to_act()`` names seats, ``view`` each of them and hand all
    their actions to ``step``; then ``outcome``. It is deterministic: the same world, options and
    actions give the same states, in every process.
    """

    seats: tuple[str, ...]

    def reset(self, world: int) -> None:
        """Begin a match in a world (0 to 2³¹ − 1)."""
        ...

    def to_act(self) -> tuple[int, ...]:
        """Return the seats that act next: one, or all at once; none when the match is over."""
        ...

    def view(self, seat: int) -> SeatView:
        """Return what a seat of ``to_act()`` sees."""
        ...

    def step(self, actions: Mapping[int, Any]) -> None:
        """Take the actions of exactly the seats of ``to_act()``.

        What is illegal by the game's rules is played and counted as the game has it; an action of
        a form that the game does not know raises :class:`ActionError` and changes nothing.
        """
        ...

    def outcome(self) -> Outcome:
        """Return how the match ended; only when ``to_act()`` is empty."""
        ...

    def fingerprint(self) -> str:
        """Return 64 hex digits of what the world really drew so far, whatever the players did.

        Two matches of one world with the same fingerprint had the same luck.
        """
        ...

    def state_sha256(self) -> str:
        """Return 64 hex digits of the whole state, for tests, forks and the check of a replay."""
        ...

    def save(self) -> Any:
        """Return the whole state, random streams included; it pickles and shares no memory."""
        ...

    def restore(self, state: Any) -> None:
        """Put back what :meth:`save` gave, any number of times."""
        ...

    def close(self) -> None:
        """Let go of what the game holds."""
        ...


class ActionError(Exception):
    """An action of a form that the game does not know: the seat forfeits.

    Attributes:
        seat: Whose action it is.
    """

    def __init__(self, seat: int, message: str) -> None:
        super().__init__(message)
        self.seat = seat


@dataclass(frozen=True)
class MatchGame:
    """A game for several seats that players are matched in.

    Attributes:
        id: What a person types.
        title: One line about it.
        seats: Names of its seats, in order.
        turns: ``alternating`` or ``simultaneous``.
        make: ``make(options)`` returns an environment; options as ``resolve`` returns them.
        resolve: ``resolve(options)`` checks the options that a person gave and returns all of
            them by name, defaults filled in: plain JSON, whose hash is part of a match's key.
            Raises :class:`InputError` that names the option.
        engine: ``engine()`` returns ``{"name", "version", "sha256"}``: the engine's version and a
            hash of its source files.
        actions: What an action is, one line for people.
        observations: What a seat sees, one line for people.
        step_cap: Decisions after which a match is over at the latest, by the game's own rules.
        official_draw: ``official_draw(options)`` tells whether worlds are drawn as the game's own
            makers draw them; ``None`` where they always are.
        render: ``render(env)`` returns a picture ``uint8[height, width, 3]``; ``None`` without one.
        text: ``text(env)`` returns the state in lines of text; ``None`` where there is no such.
        shared: Whether the seats play one game. Where each plays its own copy of the world, the
            seats are alike, and one match a world says all.
        catalogue: ``catalogue()`` returns what the ids in call traces mean; ``None`` where there
            are no traces.
    """

    id: str
    title: str
    seats: tuple[str, ...]
    turns: str
    make: Callable[[Mapping[str, Any]], MatchEnv]
    resolve: Callable[[Mapping[str, Any]], dict[str, Any]]
    engine: Callable[[], dict[str, str]]
    actions: str
    observations: str
    step_cap: int
    official_draw: Callable[[Mapping[str, Any]], bool] | None = None
    render: Callable[[MatchEnv], NDArray[np.uint8]] | None = None
    text: Callable[[MatchEnv], str] | None = None
    shared: bool = True
    catalogue: Callable[[], Catalogue] | None = None

    def __post_init__(self) -> None:
        if self.turns not in {"alternating", "simultaneous"}:
            raise InputError(f"Game {self.id!r} has turns {self.turns!r}: say how seats move.")
        if len(self.seats) < 2:
            raise InputError(f"Game {self.id!r} is for matches and has {len(self.seats)} seat.")


_BUILT_IN = {
    "civmini": "lanista.envs.civmini.game:CIVMINI",
    "kaggriculture": "lanista.envs.kaggriculture.game:KAGGRICULTURE",
}


def match_game_ids() -> list[str]:
    """Return the ids of the games that come with Lanista and can be matched in, installed or not.

    Games for one seat are among them: two players each play the same world, see ``one_seat``.
    """
    return sorted({*_BUILT_IN, *game_ids()})


def load_match_game(game_id: str) -> MatchGame:
    """Find a game to match players in: by its id, as ``module:attribute``, or a Godot folder.

    Raises:
        InputError: If there is no such game, or what it needs is not installed.
    """
    from lanista.envs.one_seat import one_seat_match_game

    target = _BUILT_IN.get(game_id)
    if target is None and (":" not in game_id or game_id in game_ids()):
        if game_id not in game_ids() and not is_folder(game_id):
            known = ", ".join(match_game_ids())
            raise InputError(
                f"No game is named {game_id!r}; there are {known}, module:attribute, or the "
                "folder of a Godot project."
            )
        return one_seat_match_game(load_game(game_id))
    game = import_game(game_id, target or game_id)
    if isinstance(game, Game):
        return one_seat_match_game(game)
    if not isinstance(game, MatchGame):
        raise InputError(f"Game {game_id!r} is a {type(game).__name__}, not a lanista game.")
    return game
