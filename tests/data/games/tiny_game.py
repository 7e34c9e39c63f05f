"""A small deterministic game: walk along a corridor, meet a monster, sometimes crash.

Its calls are recorded by hand, so that the tests of the store need no instrumentation.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from lanista.envs.game import Game
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

NAMES = ("crash", "eat", "fight", "rest", "start", "tick", "walk")


def catalogue(scheme: str = "class") -> Catalogue:
    functions = [
        Function(f"tiny_game:Corridor.{name}", "tiny_game.py", line, "Corridor")
        for line, name in enumerate(NAMES, 1)
    ]
    return Catalogue.of(functions, scheme)  # type: ignore[arg-type]


IDS = {name: catalogue().resolve(name) for name in NAMES}


class Recorder:
    """Stands in for a tracer."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def drain(self) -> CallTrace:
        calls, self.calls = self.calls, []
        return CallTrace(calls)


@dataclass
class Corridor:
    """The game itself."""

    world: int
    recorder: Recorder
    crash_at: int | None = None
    place: int = 0
    energy: int = 20
    time: int = 0
    eaten: int = 0
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def call(self, name: str) -> None:
        self.recorder.calls.append(IDS[name])

    def start(self) -> None:
        self.call("start")
        self.rng = np.random.default_rng(self.world)
        self.place = int(self.rng.integers(0, 4))

    def tick(self, action: int) -> None:
        self.call("tick")
        self.time += 1
        self.energy -= 1
        if action == 0:
            self.rest()
        elif action == 3:
            self.eat()
        else:
            self.walk(1 if action == 1 else -1)
        if self.crash_at is not None and self.time >= self.crash_at:
            self.crash()

    def rest(self) -> None:
        self.call("rest")
        self.energy += 2

    def eat(self) -> None:
        self.call("eat")
        self.eaten += 1

    def walk(self, by: int) -> None:
        for _ in range(1 + self.place % 3):
            self.call("walk")
        self.place = (self.place + by) % 8
        if self.rng.random() < 0.2:
            self.fight()

    def fight(self) -> None:
        self.call("fight")
        self.energy -= 3

    def crash(self) -> None:
        self.call("crash")
        raise RuntimeError(f"the corridor {object()!r} broke in world {self.world}")

    def picture(self) -> np.ndarray[Any, Any]:
        picture = np.zeros((8, 8, 3), dtype=np.uint8)
        picture[self.place] = self.energy % 256
        picture[:, self.place] = self.time % 251
        return picture


class CorridorEnv(gymnasium.Env[Any, Any]):
    """The game as a traced Gymnasium environment."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)
    crash_every = 0

    def __init__(self, scheme: str = "class", patterns: Any = None) -> None:
        self.catalogue = catalogue(scheme)
        self.tracer = Recorder()
        self.last_trace = CallTrace()
        self.corridor = Corridor(0, self.tracer)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        world = int((options or {}).get("world", 0))
        crash = self.crash_every and world % self.crash_every == self.crash_every - 1
        self.tracer.drain()
        self.corridor = Corridor(world, self.tracer, crash_at=5 if crash else None)
        self.corridor.start()
        self.last_trace = self.tracer.drain()
        return self.corridor.picture(), self.info() | {"world_fingerprint": f"corridor {world}"}

    def step(self, action: int) -> Any:
        assert type(action) is int
        try:
            self.corridor.tick(action)
        finally:
            self.last_trace = self.tracer.drain()
        ended = self.corridor.energy <= 0
        return self.corridor.picture(), float(self.corridor.place == 0), ended, False, self.info()

    def info(self) -> dict[str, Any]:
        return {
            "call_trace": self.last_trace,
            "step_info": {"energy": self.corridor.energy, "home": self.corridor.place == 0},
            "summary": {"eaten": self.corridor.eaten},
        }

    def save(self) -> Corridor:
        recorder, self.corridor.recorder = self.corridor.recorder, None  # type: ignore[assignment]
        state = copy.deepcopy(self.corridor)
        self.corridor.recorder = recorder
        return state

    def restore(self, state: Corridor) -> None:
        self.corridor = copy.deepcopy(state)
        self.corridor.recorder = self.tracer


class CrashingEnv(CorridorEnv):
    """Breaks at step 5 in every third world."""

    crash_every = 3


def engine() -> dict[str, str]:
    return {"name": "corridor", "version": "1.0", "sha256": "c0" * 32}


def _game(name: str, make: Any) -> Game:
    return Game(
        id=f"tiny_game:{name}",
        title="A corridor",
        seats=("walker",),
        actions=("rest", "right", "left", "eat"),
        observation_shape=(8, 8, 3),
        observation_dtype="uint8",
        step_cap=50,
        make=make,
        catalogue=catalogue,  # type: ignore[arg-type]
        engine=engine,
        save_restore=True,
    )


GAME = _game("GAME", CorridorEnv)
CRASHING = _game("CRASHING", CrashingEnv)


class RandomTester:
    """Draws its actions."""

    def __init__(self, actions: int = 4) -> None:
        self.actions = actions

    def act(self, env: Any, rng: np.random.Generator) -> Any:
        return rng.integers(self.actions)


def make_tester(game_id: str, name: str, parameters: Any, rng: np.random.Generator) -> Any:
    return RandomTester(int(parameters.get("actions", 4)))


def tester_hash(game_id: str, name: str, parameters: Any) -> str:
    return f"{name}-{dict(sorted(parameters.items()))}"
