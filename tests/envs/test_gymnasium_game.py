"""A game of one's own, made of a Gymnasium environment: traces, worlds and counterfactuals."""

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from lanista.envs.errors import InputError
from lanista.envs.game import Game
from lanista.envs.gymnasium_game import gymnasium_game
from lanista.envs.tracing.counterfactual import action_dependent_functions
from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer

MAZE = """
import gymnasium, numpy as np


class Maze(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.int64)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(3))
        return self.see(), {}

    def step(self, action):
        if action == 0:
            self.left()
        elif action == 1:
            self.right()
        if self.at == 9:
            raise ArithmeticError("planted")
        return self.see(), 0.0, False, False, {"at": self.at}

    def see(self):
        return np.array([self.at])

    def left(self):
        self.at = max(0, self.at - 1)

    def right(self):
        self.at += 1

    def save(self):
        return self.at

    def restore(self, state):
        self.at = state
"""


@pytest.fixture
def maze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Game]:
    (tmp_path / "own_maze.py").write_text(MAZE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    module: Any = importlib.import_module("own_maze")
    yield gymnasium_game("own_maze:MAZE", module.Maze, Scope(("own_maze",)))
    del sys.modules["own_maze"]


def test_each_step_tells_its_calls_and_none_made_between(maze: Game) -> None:
    env: Any = maze.make("class")
    named = [item.name.split(".")[-1] for item in env.catalogue.functions]
    _, info = env.reset(options={"world": 3})
    assert [named[call] for call in info["call_trace"].ids] == ["reset", "see"]
    env.unwrapped.see()
    info = env.step(1)[4]
    assert [named[call] for call in info["call_trace"].ids] == ["step", "right", "see"]
    assert info["step_info"]["at"] == env.unwrapped.at
    env.unwrapped.at = 8
    with pytest.raises(ArithmeticError):
        env.step(1)
    assert [named[call] for call in env.last_trace.ids] == ["step", "right"]
    again = env.reset(options={"world": 3})[1]["world_fingerprint"]
    assert again == env.reset(options={"world": 3})[1]["world_fingerprint"]
    env.close()
    assert maze.engine()["sha256"]
    assert maze.save_restore


def test_functions_that_depend_on_the_action(maze: Game) -> None:
    env: Any = maze.make("class")
    found = action_dependent_functions(env, [(0, [1, 2, 0])])
    assert {env.catalogue.name(item) for item in found} == {
        "own_maze:Maze.left",
        "own_maze:Maze.right",
    }
    env.close()


def test_games_that_cannot_be_asked_what_if_are_refused(maze: Game) -> None:
    import gymnasium

    scope = Scope(("gymnasium.envs.classic_control",))
    for name, reason in (("Pendulum-v1", "discrete"), ("CartPole-v1", "save")):
        env: Any = TracedEnv(gymnasium.make(name, disable_env_checker=True), Tracer(scope))
        with pytest.raises(InputError, match=reason):
            action_dependent_functions(env, [(0, [0])])
        env.close()


def test_a_registered_environment_is_a_game(maze: Game) -> None:
    scope = Scope(("gymnasium.envs.classic_control.cartpole:CartPoleEnv*",))
    game = gymnasium_game("cartpole", "CartPole-v1", scope)
    assert game.actions == ("0", "1")
    env = game.make()
    env.reset(options={"world": 1})
    assert len(env.step(0)[4]["call_trace"]) >= 1
    env.close()
    with pytest.raises(InputError, match="No Gymnasium environment"):
        gymnasium_game("x", "NoSuchGame-v0", scope)


def test_a_game_whose_actions_are_numbers_says_so() -> None:
    scope = Scope(("gymnasium.envs.classic_control.pendulum:PendulumEnv*",))
    game = gymnasium_game("pendulum", "Pendulum-v1", scope)
    assert game.actions == ()
    assert (game.action_shape, game.action_bounds) == ((1,), ((-2.0,), (2.0,)))
    with pytest.raises(InputError, match="0 discrete actions and 2 names"):
        gymnasium_game("pendulum", "Pendulum-v1", scope, actions=("left", "right"))


def test_a_game_with_other_actions_is_refused(maze: Game) -> None:
    class Chords(type(maze.make().unwrapped)):  # type: ignore[misc]
        action_space = gymnasium.spaces.MultiBinary(3)

    with pytest.raises(InputError, match=r"takes actions of MultiBinary\(3\)"):
        gymnasium_game("chords", Chords, Scope(("maze",)))

    class Shifted(type(maze.make().unwrapped)):  # type: ignore[misc]
        action_space = gymnasium.spaces.Discrete(4, start=1)

    with pytest.raises(InputError, match="counts its actions from 1"):
        gymnasium_game("shifted", Shifted, Scope(("maze",)))


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"actions": ()}, "either names of discrete actions or the shape"),
        ({"action_shape": (2,)}, "either names of discrete actions or the shape"),
        ({"actions": (), "action_shape": (2,)}, "actions of 2 numbers, but 0 lowest"),
        (
            {"actions": (), "action_shape": (1,), "action_low": (1.0,), "action_high": (1.0,)},
            "a lowest action value is not below its highest",
        ),
    ],
)
def test_actions_that_make_no_sense_are_refused(
    maze: Game, facts: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        dataclasses.replace(maze, **facts)
