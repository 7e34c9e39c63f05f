"""The family of robot testers: one expert, played well, badly, slowly, astray and without care."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanista.agents.experts.robot.expert import Expert
from lanista.agents.experts.robot.routes import LENGTHS
from lanista.agents.experts.robot.situation import Situation
from lanista.agents.experts.robot.steering import TOP_SPEED, Target, steer
from lanista.envs.policy import Tester

_PATIENCE = 30  # steps after which a wanderer gives a place up
_MARGIN = 1.0  # metres from the floor's rim within which it draws no place


def draw_wish(rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw an action evenly out of all directions and lengths, ``float32`` of shape ``[2]``."""
    angle, length = rng.uniform(0, 2 * math.pi), rng.uniform(0, 1)
    return np.array([length * math.cos(angle), length * math.sin(angle)], np.float32)


class NoisyTester:
    """Another tester with an unsteady hand, which at times does something else altogether."""

    def __init__(self, tester: Tester, epsilon: float, spread: float) -> None:
        self._tester = tester
        self._epsilon = epsilon
        self._spread = spread

    def act(self, env: Any, rng: np.random.Generator) -> NDArray[np.float32]:
        """Choose the next action; the other tester is asked in any case, to keep its memory."""
        action = np.asarray(self._tester.act(env, rng), np.float32)
        if rng.random() < self._epsilon:
            return draw_wish(rng)
        if self._spread:
            action = action + rng.normal(0.0, self._spread, 2)
        return np.clip(action, -1.0, 1.0).astype(np.float32)


class Wanderer:
    """Goes to places drawn on the floor of its level, ``count`` of them, and then plays on."""

    def __init__(self, count: int | None) -> None:
        self._left = math.inf if count is None else count
        self._target: Target | None = None
        self._steps = 0
        self._level = 0
        self._expert = Expert()

    def act(self, env: Any, rng: np.random.Generator) -> NDArray[np.float32]:
        """Choose the next action."""
        now = Situation.of(env)
        self._steps += 1
        if self._target is not None and (
            now.level != self._level
            or self._steps > _PATIENCE
            or math.hypot(self._target.x - now.x, self._target.z - now.z) < 1.0
        ):
            self._target = None
            self._left -= 1
        if self._target is None:
            if self._left <= 0:
                return self._expert.act(env, rng)
            x = rng.uniform(_MARGIN - 10.0, 10.0 - _MARGIN)
            z = -rng.uniform(_MARGIN, LENGTHS[now.level] - _MARGIN)
            self._target, self._steps, self._level = Target(x, z, stop=True), 0, now.level
        return np.array(steer(now, self._target), np.float32)


class Hasty:
    """Runs straight at the goal, over gaps, into walls and enemies, past coins."""

    def act(self, env: Any, rng: np.random.Generator) -> NDArray[np.float32]:
        """Choose the next action."""
        del rng
        now = Situation.of(env)
        return np.array(steer(now, Target(now.goal_x, now.goal_z)), np.float32)


class Idler:
    """Stands about, and nudges the robot a little now and then."""

    def __init__(self, share: float) -> None:
        self._share = share

    def act(self, env: Any, rng: np.random.Generator) -> NDArray[np.float32]:
        """Choose the next action."""
        now = Situation.of(env)
        if rng.random() < self._share:
            return 0.75 * draw_wish(rng)
        # Whatever it nudged comes to rest where it is.
        return np.array(steer(now, Target(now.x, now.z, stop=True)), np.float32)


def _with_noise(tester: Tester, parameters: Mapping[str, Any]) -> Tester:
    epsilon, spread = parameters["epsilon"], parameters["spread"]
    return NoisyTester(tester, epsilon, spread) if epsilon or spread else tester


def make_expert(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make the expert."""
    del parameters, rng  # it has nothing to choose and no plan to draw
    return Expert()


def make_noisy(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make an expert with noise: ``spread`` on each action, another one with ``epsilon``."""
    del rng
    return _with_noise(Expert(), parameters)


def make_slow(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make an expert that keeps to a share of the robot's top speed, ``pace``."""
    del rng
    return _with_noise(Expert(TOP_SPEED * parameters["pace"]), parameters)


def make_wanderer(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a tester that goes to ``count`` drawn places first, or to drawn places only."""
    del rng  # its places are drawn as it goes
    return _with_noise(Wanderer(parameters["count"]), parameters)


def make_hasty(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a tester that runs straight at the goal."""
    del rng
    return _with_noise(Hasty(), parameters)


def make_idle(parameters: Mapping[str, Any], rng: np.random.Generator) -> Tester:
    """Make a tester that stands about, moving in a ``share`` of its steps."""
    del rng
    return Idler(parameters["share"])
