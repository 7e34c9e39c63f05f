"""A tiny game with planted bugs: a dial that opens a vault after the turns 1, 2, 3.

With the vault open, action 0 breaks the game: by an exception, for ever, or with the process,
by the variant. Calls are recorded by hand.
"""

import os
import time
from typing import Any

import gymnasium
import numpy as np

from lanista.envs.game import Game
from lanista.envs.policy import Observation
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

NAMES = ("close", "creak", "grab", "never", "open", "rust", "setup", "turn", "wait")
SECRET = (1, 2, 3)


def catalogue(scheme: str = "class") -> Catalogue:
    functions = [
        Function(f"vault_game:Vault.{name}", "vault_game.py", 10 * line, "Vault")
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


class VaultEnv(gymnasium.Env[Any, Any]):
    """The game as a traced Gymnasium environment; ends after ``length`` steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(5)
    bug = "exception"
    length = 12

    def __init__(self, scheme: str = "class", patterns: Any = None) -> None:
        self.catalogue = catalogue(scheme)
        self.tracer = Recorder()

    def call(self, name: str) -> None:
        self.tracer.calls.append(IDS[name])

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.world = int((options or {}).get("world", 0))
        self.rng = np.random.default_rng(self.world)
        self.turns: list[int] = []
        self.opened, self.time = False, 0
        self.call("setup")
        # Reset creaks too: a call that must not count as reached.
        self.call("rust")
        return self.picture(), {**self.info(), "world_fingerprint": f"vault {self.world}"}

    def step(self, action: int) -> Any:
        self.time += 1
        self.call("turn")
        reward = 0.0
        if self.rng.random() < 0.3:
            self.call("creak")
        if self.opened:
            reward = self.handle_open(action)
        elif action == 0:
            self.call("wait")
        else:
            self.turns = [*self.turns, action][-len(SECRET) :]
            if tuple(self.turns) == SECRET:
                self.call("open")
                self.opened, reward = True, 1.0
        return self.picture(), reward, self.time >= self.length, False, self.info()

    def handle_open(self, action: int) -> float:
        if action == 0:
            self.slam()
        if action == 4:
            self.call("grab")
            return 2.0
        self.call("close")
        self.opened, self.turns = False, []
        return 0.0

    def slam(self) -> None:
        if self.bug == "exception":
            raise ZeroDivisionError(f"slammed in world {self.world}")
        while self.bug == "hang":
            time.sleep(0.05)
        if self.bug == "exit":
            os._exit(7)

    def picture(self) -> Any:
        picture = np.full((8, 8, 3), 30, dtype=np.uint8)
        picture[: self.time % 8, :, 0] = 200
        picture[:, : len(self.turns) + 1, 1] = 160
        picture[:, :, 2] = 255 if self.opened else 0
        return picture

    def info(self) -> dict[str, Any]:
        return {
            "call_trace": self.tracer.drain(),
            "step_info": {"open": self.opened},
            "summary": {"turns": len(self.turns)},
        }


class HangingEnv(VaultEnv):
    bug = "hang"


class ExitingEnv(VaultEnv):
    bug = "exit"


class JammedEnv(VaultEnv):
    """Breaks at the reset of every world."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        raise ArithmeticError("the door is jammed")


def _game(name: str, make: Any) -> Game:
    return Game(
        id=f"vault_game:{name}",
        title="A vault",
        seats=("player",),
        actions=("wait", "one", "two", "three", "grab"),
        observation_shape=(8, 8, 3),
        observation_dtype="uint8",
        step_cap=50,
        make=make,
        catalogue=catalogue,  # type: ignore[arg-type]
        engine=lambda: {"name": "vault", "version": "1.0", "sha256": "va" * 32},
    )


GAME = _game("GAME", VaultEnv)
HANGING = _game("HANGING", HangingEnv)
EXITING = _game("EXITING", ExitingEnv)
JAMMED = _game("JAMMED", JammedEnv)


class Robber:
    """Plays by its goal: opens and grabs, opens and slams, waits, or turns at random.

    Goal ``grab``: 1 2 3 4 …; ``wait``: waits; ``close``: breaks the game by slamming, though in
    even worlds only; any other goal: random turns that never wait.
    """

    def act(self, observation: Observation, memory: Any, rng: Any) -> Any:
        actions, kept = [], []
        assert observation.goal is not None
        for lane, goal in enumerate(observation.goal):
            step = memory[lane] or 0
            name = NAMES[int(goal)]
            if name == "wait":
                action = 0
            elif name in {"grab", "close"}:
                action = (*SECRET, 4 if name == "grab" else self.slam(lane, rng))[min(step, 3)]
            else:
                action = int(rng[lane].integers(1, 5))
            actions.append(action)
            kept.append(step + 1)
        return np.array(actions), kept

    def slam(self, lane: int, rng: Any) -> int:
        return 0


def make_robber(found: Catalogue) -> Robber:
    assert found == catalogue(found.scheme)
    return Robber()
