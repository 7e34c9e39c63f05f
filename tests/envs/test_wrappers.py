"""Goals and traces as observations, on a small game and on Crafter."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lanista.envs.crafter.game import CRAFTER
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace
from lanista.envs.wrappers import GoalReward, TraceObservation, catalogue_of

NAMES = ("toy:Toy.left", "toy:Toy.right", "toy:Toy.start", "toy:Toy.tick")
LEFT, RIGHT, START, TICK = range(4)


class Toy(gymnasium.Env[np.ndarray, int]):  # type: ignore[misc]
    """Calls ``tick`` and then ``left`` or ``right``; reset calls ``start`` and ``left``."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    catalogue = Catalogue.of([Function(name, "toy.py", 1) for name in NAMES], "class")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.options = 0, options
        return np.zeros(1, np.float32), {"call_trace": CallTrace([START, LEFT])}

    def step(self, action: int) -> Any:
        self.steps += 1
        trace = CallTrace([TICK, LEFT if action == 0 else RIGHT, TICK])
        observation = np.full(1, self.steps, np.float32)
        return observation, 7.0, False, self.steps >= 50, {"call_trace": trace}


def test_the_goal_is_rewarded_when_called() -> None:
    env = GoalReward(Toy())
    _, info = env.reset(options={"goal": "Toy.left", "world": 3})
    assert (info["goal"], info["goal_reached"]) == (LEFT, False), "reset's calls do not count"
    assert env.unwrapped.options == {"world": 3}
    seen = []
    for action in (1, 0, 1):
        _, reward, terminated, truncated, info = env.step(action)
        seen.append((reward, info["goal_reached"]))
        assert info["game_reward"] == 7.0
        assert not terminated
        assert not truncated
    assert seen == [(-1.0, False), (0.0, True), (-1.0, True)]
    _, info = env.reset(options={"goal": RIGHT})
    assert (info["goal"], info["goal_reached"]) == (RIGHT, False)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
def test_a_goal_for_every_play() -> None:
    env = GoalReward(Toy(), goal="right")
    assert env.reset()[1]["goal"] == RIGHT
    assert env.reset(options={"goal": "tick"})[1]["goal"] == TICK
    assert env.reset()[1]["goal"] == RIGHT
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("goal", ["nothing", -1, 4, True])
def test_unknown_goals_are_refused(goal: object) -> None:
    with pytest.raises(InputError, match=r"No recorded function|no id from 0 to 3"):
        GoalReward(Toy()).reset(options={"goal": goal})


def test_a_goal_is_needed_and_a_catalogue() -> None:
    with pytest.raises(InputError, match="No goal was given"):
        GoalReward(Toy()).reset()
    with pytest.raises(InputError, match="TracedEnv"):
        catalogue_of(gymnasium.make("CartPole-v1"))


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
def test_padded_and_counted_traces() -> None:
    padded = TraceObservation(Toy(), "padded", longest=3)
    assert padded.reset()[0]["call_trace"].tolist() == [START, LEFT, 4]
    assert padded.step(1)[0]["call_trace"].tolist() == [TICK, RIGHT, TICK]
    short = TraceObservation(Toy(), "padded", longest=2)
    short.reset()
    observation, _, _, _, info = short.step(1)
    assert observation["call_trace"].tolist() == [TICK, RIGHT]
    assert len(info["call_trace"]) == 3
    counted = TraceObservation(Toy())
    assert counted.reset()[0]["call_trace"].tolist() == [1, 0, 1, 0]
    assert counted.step(0)[0]["call_trace"].tolist() == [1, 0, 0, 2]
    for env in (padded, short, counted):
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize(
    ("form", "longest", "message"), [("bag", 600, "padded or counted"), ("padded", 0, "at least 1")]
)
def test_forms_without_sense_are_refused(form: Any, longest: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TraceObservation(Toy(), form, longest)


def test_time_limit_cuts_a_goal_play() -> None:
    env = gymnasium.wrappers.TimeLimit(GoalReward(Toy()), 2)
    env.reset(options={"goal": "right"})
    assert env.step(0)[3] is False
    assert env.step(0)[3] is True


def test_an_action_and_its_trace_change_no_input_before_the_next_step() -> None:
    """The trace that is seen at t is of the action at t - 1; reset's is seen at 0."""
    env = TraceObservation(GoalReward(CRAFTER.make("class", None), goal="Player._do_material"))
    try:
        first = [0, 1, 5, 5, 3, 5, 2]
        changed_at = 4

        def inputs(actions: list[int]) -> list[dict[str, np.ndarray]]:
            observation, info = env.reset(options={"world": 3})
            assert np.array_equal(
                observation["call_trace"],
                np.bincount(info["call_trace"].ids, minlength=len(catalogue_of(env))),
            )
            seen = [observation]
            for action in actions:
                observation, _, _, _, info = env.step(action)
                counts = np.bincount(info["call_trace"].ids, minlength=len(catalogue_of(env)))
                assert np.array_equal(observation["call_trace"], counts)
                seen.append(observation)
            return seen

        before = inputs(first)
        differs = 0
        for action in range(17):
            after = inputs([*first[:changed_at], action, *first[changed_at + 1 :]])
            for t in range(changed_at + 1):
                assert np.array_equal(before[t]["obs"], after[t]["obs"])
                assert np.array_equal(before[t]["call_trace"], after[t]["call_trace"])
            differs += not np.array_equal(
                before[changed_at + 1]["call_trace"], after[changed_at + 1]["call_trace"]
            )
        assert differs >= 10, "most actions call something else, seen one step later"
    finally:
        env.close()


def test_traced_goal_games_vectorise() -> None:
    def make() -> gymnasium.Env[Any, Any]:
        return TraceObservation(GoalReward(CRAFTER.make("class", None), goal="Player.update"))

    for vector in (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv):
        envs = vector([make, make])
        try:
            observations, info = envs.reset(seed=[1, 2])
            assert observations["obs"].shape == (2, 64, 64, 3)
            observations, rewards, *_, info = envs.step(np.array([0, 5]))
            assert rewards.tolist() == [0.0, 0.0]
            assert info["goal_reached"].tolist() == [True, True]
            assert observations["call_trace"].sum(axis=1).tolist() == [
                len(trace) for trace in info["call_trace"]
            ]
        finally:
            envs.close()
