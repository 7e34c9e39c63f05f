"""A game for one as a match: each player plays the same world alone, the better score wins."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.game import Game
from lanista.envs.match_game import ActionError, MatchEnv, MatchGame, Outcome, SeatView
from lanista.envs.tracing.trace import CallTrace

SEATS = ("first", "second")


class OneSeatMatch:
    """Two copies of one world, a player in each (follows ``MatchEnv``).

    The seats act at once as long as both plays go on, and are as independent as two plays can be.
    The score is the sum of a play's rewards; more wins, equal is a draw.
    """

    seats: tuple[str, ...] = SEATS

    def __init__(self, game: Game, step_cap: int) -> None:
        """Make the copies.

        Args:
            game: The game for one.
            step_cap: Steps after which a play is cut.
        """
        self._game = game
        self._step_cap = step_cap
        self._plays = tuple(_SoloPlay(game, step_cap) for _ in SEATS)

    def reset(self, world: int) -> None:
        """Begin both plays; see ``MatchEnv``."""
        for play in self._plays:
            play.reset(world)
        one, other = (play.fingerprint for play in self._plays)
        if one != other:
            raise RuntimeError(f"{self._game.id} drew world {world} in two ways: it cannot match")

    def to_act(self) -> tuple[int, ...]:
        """Return the seats whose plays go on."""
        return tuple(seat for seat, play in enumerate(self._plays) if not play.over)

    def view(self, seat: int) -> SeatView:
        """Return what a seat's own play shows."""
        return self._plays[seat].view()

    def step(self, actions: Mapping[int, Any]) -> None:
        """Take a step in each play that goes on."""
        fitted = {seat: self._fitted(seat, action) for seat, action in actions.items()}
        for seat, action in fitted.items():
            self._plays[seat].step(action)

    def outcome(self) -> Outcome:
        """Return whose score is the better."""
        first, second = (play.score for play in self._plays)
        points = (0.5, 0.5) if first == second else (1.0, 0.0) if first > second else (0.0, 1.0)
        return Outcome(
            points=points,
            score=(first, second),
            end="score",
            steps=sum(play.steps for play in self._plays),
            counts=tuple({**play.summary, "steps": play.steps} for play in self._plays),
        )

    def fingerprint(self) -> str:
        """Return the fingerprint of the world as the game tells it."""
        return self._plays[0].fingerprint

    def state_sha256(self) -> str:
        """Return a hash of what both plays have shown and given so far."""
        digest = hashlib.sha256()
        for play in self._plays:
            digest.update(play.digest())
        return digest.hexdigest()

    def save(self) -> Any:
        """Return the state of both plays.

        Raises:
            InputError: If the game cannot save its state.
        """
        if not self._game.save_restore:
            raise InputError(f"Game {self._game.id!r} cannot save its state, so no match of it.")
        return [play.save() for play in self._plays]

    def restore(self, state: Any) -> None:
        """Put back what ``save`` gave."""
        for play, saved in zip(self._plays, state, strict=True):
            play.restore(saved)

    def close(self) -> None:
        """Close both copies."""
        for play in self._plays:
            play.close()

    def _fitted(self, seat: int, action: Any) -> Any:
        game = self._game
        try:
            if game.actions:
                number = int(action)
                if number != action or not 0 <= number < len(game.actions):
                    raise ValueError(f"{action} is none of {len(game.actions)} actions")
                return number
            values = np.array(action, dtype=np.float32).reshape(game.action_shape)
            if not np.isfinite(values).all():
                raise ValueError(f"{values.tolist()} are not all numbers")
        except (TypeError, ValueError) as error:
            raise ActionError(seat, f"not an action of {game.id}: {error}") from error
        low, high = (
            np.array(bound, np.float32).reshape(game.action_shape)
            for bound in (game.action_low, game.action_high)
        )
        return np.clip(values, low, high)


class _SoloPlay:
    """One of the plays."""

    def __init__(self, game: Game, step_cap: int) -> None:
        self._env: Any = game.make()
        self._step_cap = step_cap
        self.fingerprint = ""
        self.steps, self.score, self.over = 0, 0.0, True
        self.summary: dict[str, int] = {}
        self._seen: NDArray[Any] = np.zeros(0)
        self._trace = CallTrace()
        self._mask: NDArray[np.bool_] | None = None

    def reset(self, world: int) -> None:
        observation, info = self._env.reset(options={"world": world})
        self.steps, self.score, self.over = 0, 0.0, False
        self.fingerprint = str(info.get("world_fingerprint", ""))
        self._look(observation, info)

    def step(self, action: Any) -> None:
        observation, reward, terminated, truncated, info = self._env.step(action)
        self.steps += 1
        self.score += float(reward)
        self.over = bool(terminated or truncated) or self.steps >= self._step_cap
        self._look(observation, info)

    def _look(self, observation: Any, info: Mapping[str, Any]) -> None:
        self._seen = np.array(observation)
        self._trace = info.get("call_trace", CallTrace())
        mask = info.get("legal_mask")
        self._mask = None if mask is None else np.asarray(mask, np.bool_)
        self.summary = {str(name): int(count) for name, count in info.get("summary", {}).items()}

    def view(self) -> SeatView:
        return SeatView(self._seen.copy(), self._mask, self._trace)

    def digest(self) -> bytes:
        told = f"{self.fingerprint}/{self.steps}/{self.score!r}/{self.over}".encode()
        return told + self._seen.tobytes()

    def save(self) -> Any:
        shown = (self.fingerprint, self.steps, self.score, self.over, dict(self.summary))
        return self._env.save(), shown, self._seen.copy(), self._trace, self._mask

    def restore(self, saved: Any) -> None:
        state, shown, self._seen, self._trace, self._mask = saved
        self._env.restore(state)
        self.fingerprint, self.steps, self.score, self.over, self.summary = shown

    def close(self) -> None:
        self._env.close()


def one_seat_match_game(game: Game) -> MatchGame:
    """Return a game for one as a game to match two players in."""
    return MatchGame(
        id=game.id,
        title=game.title,
        seats=SEATS,
        turns="simultaneous",
        make=partial(_make, game),
        resolve=partial(_resolve, game),
        engine=game.engine,
        actions=f"{len(game.actions)} by number" if game.actions else f"{game.action_shape}",
        observations=f"{game.observation_dtype} {game.observation_shape}",
        step_cap=2 * game.step_cap,
        shared=False,
        catalogue=partial(game.catalogue, "class"),
    )


def _make(game: Game, options: Mapping[str, Any]) -> MatchEnv:
    return OneSeatMatch(game, int(options["step_cap"]))


def _resolve(game: Game, options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in options if name != "step_cap"]
    if unknown:
        raise InputError(
            *(f"Game {game.id!r} has no option {name!r}; it has step_cap." for name in unknown)
        )
    cap = options.get("step_cap", game.step_cap)
    if not isinstance(cap, int) or isinstance(cap, bool) or not 1 <= cap <= 10**7:
        raise InputError(f"Game {game.id!r}: step_cap is {cap!r}; give a number of steps.")
    return {"step_cap": cap}
