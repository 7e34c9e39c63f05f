"""One loop plays everything: lanes are independent, faults are kept."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_game

from lanista.data.episode import EpisodeKey
from lanista.data.rollout import ActionTape, Play, rollout
from lanista.envs.errors import InputError, RunError
from lanista.envs.tracing.trace import CallTrace


def key(world, game=tiny_game.GAME, cap=50):
    return EpisodeKey(game.id, "1.0", "c0" * 32, "f" * 64, world, 0, "p", None, cap)


def plays(worlds, **changes):
    return [Play(key(world), None, (0, 1, world), **changes) for world in worlds]


class Wanderer:
    """A policy that remembers how often it has acted and what it was shown."""

    def __init__(self):
        self.seen = []

    def act(self, observation, memory, rng):
        self.seen.append(observation)
        steps = [0 if item is None else item for item in memory]
        drawn = [int(generator.integers(4)) for generator in rng]
        return np.array(drawn), [step + 1 for step in steps]


def test_a_lane_does_not_depend_on_its_neighbours(same_episode):
    def play(worlds):
        envs = [tiny_game.CorridorEnv() for _ in worlds]
        return rollout(envs, plays(worlds), policy=Wanderer())

    together = play([3, 4, 5, 6])
    for world, episode in zip([3, 4, 5, 6], together, strict=True):
        same_episode(play([world])[0], episode)
    assert len({episode.steps for episode in together}) > 1


def test_a_policy_and_a_tester_that_draw_alike_record_alike(same_episode):
    by_policy = rollout([tiny_game.CorridorEnv()], plays([7]), policy=Wanderer())[0]
    by_tester = rollout([tiny_game.CorridorEnv()], plays([7]), testers=[tiny_game.RandomTester()])[
        0
    ]
    same_episode(by_policy, by_tester)


def test_rows_hold_what_was_seen_chosen_and_caused():
    env = tiny_game.CorridorEnv()
    actions = np.array([3, 0, 1, 3])
    tape = ActionTape(actions)
    episode = rollout([env], plays([0], stop_after=4), testers=[tape])[0]
    reference = tiny_game.CorridorEnv()
    observation, info = reference.reset(options={"world": 0})
    np.testing.assert_array_equal(episode.observations[0], observation)
    assert episode.reset_trace == info["call_trace"] == CallTrace([tiny_game.IDS["start"]])
    for step, action in enumerate(actions):
        observation, reward, _, _, info = reference.step(int(action))
        assert episode.trace(step) == info["call_trace"]
        assert episode.input_trace(step + 1) == info["call_trace"]
        assert episode.rewards[step] == reward
        assert episode.step_info["energy"][step] == info["step_info"]["energy"]
        np.testing.assert_array_equal(episode.observations[step + 1], observation)
    np.testing.assert_array_equal(episode.actions, actions)
    assert episode.actions.dtype == np.int64
    assert episode.step_info["home"].dtype == np.bool_
    assert (episode.terminated, episode.truncated) == (False, True)
    assert episode.summary == {"eaten": 2}
    assert episode.world_fingerprint == "corridor 0"


def test_the_policy_sees_the_trace_that_the_action_before_caused():
    policy = Wanderer()
    goals = [Play(key(world), 4, (0, world), stop_after=6) for world in (1, 2)]
    episodes = rollout([tiny_game.CorridorEnv() for _ in goals], goals, policy=policy)
    assert len(policy.seen) == 6
    for step, shown in enumerate(policy.seen):
        assert shown.goal.tolist() == [4, 4]
        assert shown.legal_mask is None
        assert list(shown.call_trace) == [episode.input_trace(step) for episode in episodes]
        np.testing.assert_array_equal(shown.obs, [item.observations[step] for item in episodes])


def test_the_cap_truncates_and_the_game_terminates():
    capped = rollout(
        [tiny_game.CorridorEnv()], [Play(key(0, cap=3), None, (1,))], policy=Wanderer()
    )
    assert (capped[0].steps, capped[0].terminated, capped[0].truncated) == (3, False, True)
    idle = ActionTape(np.full(50, 3))
    starved = rollout([tiny_game.CorridorEnv()], plays([0]), testers=[idle])[0]
    assert (starved.steps, starved.terminated, starved.truncated) == (20, True, False)
    none = rollout([tiny_game.CorridorEnv()], plays([0], stop_after=0), policy=Wanderer())[0]
    assert (none.steps, none.truncated, len(none.observations)) == (0, True, 1)


def test_a_crash_is_kept_and_loses_no_other_lane(same_episode):
    worlds = [0, 1, 2, 3]
    made = [Play(key(w, tiny_game.CRASHING), None, (0, 1, w)) for w in worlds]
    episodes = rollout([tiny_game.CrashingEnv() for _ in made], made, policy=Wanderer())
    broken = episodes[2]
    assert [item.fault is None for item in episodes] == [True, True, False, True]
    assert broken.fault.kind == "exception"
    assert broken.fault.exception == "RuntimeError"
    assert broken.fault.message == "the corridor <object object at 0x…> broke in world 2"
    file, line, function = broken.fault.where.split(":")
    assert (file, function) == ("tiny_game.py", "Corridor.crash")
    assert int(line) > 0
    assert "in crash" in broken.fault.traceback
    assert "/" not in broken.fault.traceback.split('File "')[1].split('"')[0]
    assert broken.steps == 5
    assert (broken.terminated, broken.truncated) == (False, True)
    assert tiny_game.IDS["crash"] in broken.trace(4)
    np.testing.assert_array_equal(broken.observations[5], broken.observations[4])
    alone = rollout([tiny_game.CrashingEnv()], made[3:], policy=Wanderer())[0]
    same_episode(alone, episodes[3])


@pytest.mark.parametrize("choice", [4, -1, 2.5, float("nan"), "left"])
def test_an_action_that_the_game_lacks_is_the_players_fault(choice):
    env = tiny_game.CorridorEnv()
    episode = rollout([env], plays([0]), testers=[ActionTape([1, choice])])[0]
    assert (episode.fault.kind, episode.steps) == ("player", 1)
    whole = rollout([env], plays([0], stop_after=2), testers=[ActionTape([1, np.float64(2)])])[0]
    assert (whole.fault, whole.actions.tolist()) == (None, [1, 2])


@pytest.mark.parametrize(
    "damage",
    [
        {"reset": lambda **_: 1 / 0},
        {"reset": lambda **_: None},
        {"step": lambda action: ("only", "two")},
        {"step": lambda action: (np.zeros((8, 8, 3), np.uint8), "no number", False, False, {})},
        {"step": lambda action: (np.zeros((2, 2), np.uint8), 0.0, False, False, {})},
        {"step": lambda action: (object(), 0.0, False, False, {})},
        {"step": lambda action: (np.zeros((8, 8, 3), np.uint8), 0.0, False, False, None)},
        {"step": lambda action: ({}, 0.0, False, False, {"call_trace": [1, 2]})},
        {"step": lambda action: exit(3)},
    ],
)
def test_a_malformed_game_breaks_its_own_lane_alone(damage):
    bad, good = tiny_game.CorridorEnv(), tiny_game.CorridorEnv()
    for name, function in damage.items():
        setattr(bad, name, function)
    broken, whole = rollout([bad, good], plays([0, 1]), policy=Wanderer())
    assert broken.fault is not None
    assert broken.fault.kind == "exception"
    assert broken.observations.shape == (broken.steps + 1, 8, 8, 3)
    assert whole.fault is None
    assert whole.steps > 5


def test_a_tester_that_fails_is_not_the_games_fault():
    class Failing:
        def act(self, env, rng):
            raise KeyError("plan")

    class Nonsense:
        def act(self, env, rng):
            return "left"

    testers = [Failing(), Nonsense(), tiny_game.RandomTester()]
    episodes = rollout(
        [tiny_game.CorridorEnv() for _ in testers], plays([0, 1, 2]), testers=testers
    )
    assert [item.fault and item.fault.kind for item in episodes] == ["player", "player", None]
    assert episodes[0].fault.exception == "KeyError"
    assert episodes[0].steps == 0


def test_a_legal_mask_reaches_the_policy():
    class Masked(tiny_game.CorridorEnv):
        def info(self):
            return super().info() | {"legal_mask": [True, False, True, True]}

    policy = Wanderer()
    rollout([Masked(), tiny_game.CorridorEnv()], plays([0, 1], stop_after=2), policy=policy)
    np.testing.assert_array_equal(
        policy.seen[0].legal_mask, [[True, False, True, True], [True] * 4]
    )


def test_misuse_is_refused():
    env = tiny_game.CorridorEnv()
    with pytest.raises(InputError, match="either a policy or testers"):
        rollout([env], plays([0]))
    with pytest.raises(InputError, match="as many"):
        rollout([env], plays([0, 1]), policy=Wanderer())
    mixed = [plays([0])[0], replace(plays([1])[0], goal=3)]
    with pytest.raises(InputError, match="goal"):
        rollout([env, tiny_game.CorridorEnv()], mixed, policy=Wanderer())


def test_a_policy_that_fails_says_where():
    class Failing:
        def act(self, observation, memory, rng):
            raise ZeroDivisionError("nothing left")

    with pytest.raises(RunError, match="step 0: ZeroDivisionError: nothing left"):
        rollout([tiny_game.CorridorEnv()], plays([0]), policy=Failing())


def test_continuous_actions_are_kept_as_float32():
    import gymnasium

    class Slide(tiny_game.CorridorEnv):
        action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def step(self, action):
            assert action.dtype == np.float32
            assert action.shape == (2,)
            return super().step(int(action[0] > 0))

    class Slider:
        def act(self, env, rng):
            return rng.uniform(-1, 1, 2)

    episode = rollout([Slide()], plays([0], stop_after=5), testers=[Slider()])[0]
    assert episode.actions.shape == (5, 2)
    assert episode.actions.dtype == np.float32
