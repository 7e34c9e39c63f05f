"""Games by id: what a game is, and how one is found."""

import importlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanista.envs.actions import Bounds
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Scheme

if TYPE_CHECKING:
    import gymnasium


@dataclass(frozen=True)
class Game:
    """A game that Lanista can instrument, play and judge.

    Attributes:
        id: What a person types (``crafter``, or ``module:attribute`` for one's own).
        title: One line about it.
        seats: Names of its seats.
        actions: Names of its discrete actions, empty where an action is made of numbers.
        observation_shape: Shape of one observation.
        observation_dtype: NumPy dtype name of one observation.
        step_cap: Steps after which a play is cut (part of the key and of every report).
        make: ``make(scheme, patterns)`` returns an instrumented Gymnasium environment. Its
            ``reset(options={"world": int})`` and ``step`` put ``call_trace`` (a ``CallTrace``),
            ``step_info`` (numbers of this step, by name) and ``summary`` (counts of this play so
            far, by name) into ``info``; ``reset`` also puts ``world_fingerprint``. The
            environment's ``catalogue`` is what its ids mean.
            ``patterns`` limits what is recorded to the functions that match; ``None`` for all.
        catalogue: ``catalogue(scheme)`` returns the whole catalogue without playing.
        engine: ``engine()`` returns ``{"name", "version", "sha256"}``: the engine's version and
            a hash of its source files.
        save_restore: Whether the environment has ``save()``, which returns its whole state, and
            ``restore(state)``.
        action_shape: Shape of an action made of numbers (``float32``), empty where there are
            discrete ones.
        action_low: Lowest value of each of its numbers, in C order; ``-inf`` where there is none.
        action_high: Highest value of each, alike.

    Raises:
        InputError: If a game has neither discrete actions nor a shape, or both, or its bounds do
            not fit the shape.
    """

    id: str
    title: str
    seats: tuple[str, ...]
    actions: tuple[str, ...]
    observation_shape: tuple[int, ...]
    observation_dtype: str
    step_cap: int
    make: Callable[..., "gymnasium.Env[Any, Any]"]
    catalogue: Callable[[Scheme], Catalogue]
    engine: Callable[[], dict[str, str]]
    save_restore: bool = False
    action_shape: tuple[int, ...] = ()
    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = math.prod(self.action_shape) if self.action_shape else 0
        if bool(self.actions) == bool(numbers):
            raise InputError(
                f"Game {self.id!r} needs either names of discrete actions or the shape of an "
                "action made of numbers."
            )
        if not len(self.action_low) == len(self.action_high) == numbers:
            raise InputError(
                f"Game {self.id!r} has actions of {numbers} numbers, but {len(self.action_low)} "
                f"lowest and {len(self.action_high)} highest values."
            )
        # Written so that a bound that is no number is refused too.
        if not all(low < high for low, high in zip(self.action_low, self.action_high, strict=True)):
            raise InputError(f"Game {self.id!r}: a lowest action value is not below its highest.")

    @property
    def action_bounds(self) -> Bounds | None:
        """Lowest and highest values of an action's numbers; ``None`` for discrete actions."""
        return (self.action_low, self.action_high) if self.action_shape else None


_BUILT_IN = {
    "crafter": "lanista.envs.crafter.game:CRAFTER",
    "robot": "lanista.envs.godot.robot:ROBOT",
}


def game_ids() -> list[str]:
    """Return the ids of the games that come with Lanista, installed or not."""
    return sorted(_BUILT_IN)


def canonical_game_id(game_id: str) -> str:
    """Return a game's id as it is kept: the folder of a Godot project by its absolute path."""
    target = _BUILT_IN.get(game_id, game_id)
    return str(Path(target).resolve()) if is_folder(target) else game_id


def is_folder(target: str) -> bool:
    """Whether a game's name is that of a folder rather than an id."""
    return Path(target).is_dir() or (":" not in target and (os.sep in target))


def load_game(game_id: str) -> Game:
    """Find a game by its id, as ``module:attribute``, or by the folder of a Godot project.

    Raises:
        InputError: If there is no such game, its module cannot be imported, or what it needs is
            not installed.
        RunError: If a Godot project does not come up.
    """
    target = _BUILT_IN.get(game_id, game_id)
    if is_folder(target):
        from lanista.envs.godot.game import folder_game

        return folder_game(str(Path(target).resolve()))
    if ":" not in target:
        known = ", ".join(game_ids())
        raise InputError(
            f"No game is named {game_id!r}; there are {known}, module:attribute, or the folder of "
            "a Godot project."
        )
    game = import_game(game_id, target)
    if not isinstance(game, Game):
        raise InputError(f"Game {game_id!r} is a {type(game).__name__}, not a lanista Game.")
    return game


def import_game(game_id: str, target: str) -> Any:
    """Return what ``module:attribute`` names, whatever it is.

    Raises:
        InputError: If it cannot be imported, for whatever reason; the line names ``game_id``.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise InputError(f"Game {game_id!r} is not of the form module:attribute.")
    try:
        module = importlib.import_module(module_name)
    except InputError:
        raise
    except ImportError as error:
        hint = (
            f" Run this in the folder that holds {module_name.partition('.')[0]}, or name that "
            "folder in PYTHONPATH."
            if isinstance(error, ModuleNotFoundError)
            else ""
        )
        raise InputError(f"Game {game_id!r} cannot be imported: {error}.{hint}") from error
    except (Exception, SystemExit) as error:
        # The module is somebody else's: whatever it does at import, it is no game to us.
        raise InputError(
            f"Game {game_id!r} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise InputError(f"Game {game_id!r}: module {module_name} has no {attribute}.") from error
