"""The game: a point in a square, pushed by two numbers a step.

Four pads lie in its corners. The gate leads to a second level with pads of its own. On the first
level a wind hums high or low at every step, which tells on which side the treasure is buried: it
cannot be seen, so only who knows the calls finds it at once.
"""

from typing import Any

import gymnasium
import numpy as np

CAP = 24
STEP = 0.18
NEAR = 0.25
PADS = ("bell", "lamp", "gate", "crown")


class Meadow:
    """One play of the game."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.level = 0
        self.score = 0.0
        self.treasure = 1.0 if self.rng.random() < 0.5 else -1.0
        self.place_pads()

    def place_pads(self) -> None:
        """Put one into each corner; the second level is the first one's mirror image."""
        side = 1 if self.level == 0 else -1
        corners = np.array([[side, 1], [side, -1], [-side, 1], [-side, -1]])
        self.pads = 0.6 * corners + self.rng.uniform(-0.1, 0.1, size=(4, 2))
        self.at = self.rng.uniform(-0.1, 0.1, size=2)
        self.inside: int | None = None

    def advance(self, push: np.ndarray) -> None:
        """Called in every step, so no goal."""
        self.move(push)
        if self.level == 0:
            if self.treasure > 0:
                self.hum_high()
            else:
                self.hum_low()
            self.dig()
        near = np.linalg.norm(self.pads - self.at, axis=1)
        inside = int(near.argmin()) if near.min() < NEAR else None
        if inside is not None and inside != self.inside:
            self.score += 1.0
            getattr(self, f"touch_{PADS[inside]}")()
        if self.inside is None or inside is not None:
            self.inside = inside

    def move(self, push: np.ndarray) -> None:
        moved = self.at + STEP * push
        self.at = np.clip(moved, -1.0, 1.0)
        if not np.array_equal(moved, self.at):
            self.bump()

    def bump(self) -> None:
        self.score -= 0.01

    def hum_high(self) -> None:
        pass

    def hum_low(self) -> None:
        pass

    def dig(self) -> None:
        """Buried far out to one side or the other: whoever walks the wrong way is too late."""
        if self.at[0] * self.treasure > 0.9:
            self.find_treasure()

    def find_treasure(self) -> None:
        self.score += 1.0

    def touch_bell(self) -> None:
        self.ring()

    def ring(self) -> None:
        pass

    def touch_lamp(self) -> None:
        pass

    def touch_gate(self) -> None:
        if self.level == 0:
            self.enter_second_level()

    def enter_second_level(self) -> None:
        self.level = 1
        self.place_pads()

    def touch_crown(self) -> None:
        if self.level == 1:
            self.win()

    def win(self) -> None:
        self.level = 2


class MeadowEnv(gymnasium.Env[Any, Any]):
    """The game as a Gymnasium environment; what it shows are eleven numbers."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (11,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.meadow = Meadow(0 if seed is None else seed)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        assert action.shape == (2,)
        assert action.dtype == np.float32
        before = self.meadow.score
        self.meadow.advance(action.astype(np.float64))
        info = {"level": self.meadow.level}
        return self._seen(), self.meadow.score - before, self.meadow.level == 2, False, info

    def _seen(self) -> np.ndarray:
        meadow = self.meadow
        parts = [meadow.at, (meadow.pads - meadow.at).ravel(), [meadow.level]]
        return np.concatenate(parts).astype(np.float32)
