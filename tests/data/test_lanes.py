"""Lanes: a game that dies is begun again, and only a death that repeats is a finding."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from lanista.data.episode import EpisodeKey
from lanista.data.lanes import MOST_TRIES, Lanes
from lanista.data.rollout import ActionTape, Play
from lanista.envs.policy import Memory, Observation
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

CATALOGUE = Catalogue.of([Function("toy:Game.tick", "toy.py", 1, "Game")], "class")


class Died(Exception):
    """Stands in for an engine that is gone."""

    fault_kind = "crash"
    fault_place = "engine"
    last_output = "signal 9"


class Counter(gymnasium.Env[Any, Any]):
    """Counts its steps; dies where the test says so."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    catalogue = CATALOGUE

    def __init__(self, dies: Callable[[int, int], bool], opened: list["Counter"]) -> None:
        self.dies, self.closed = dies, False
        self.steps = self.world = 0
        opened.append(self)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.steps, self.world = 0, int(options["world"])
        if self.dies(self.world, 0):
            raise Died("at the reset")
        return self.see(), {"call_trace": CallTrace(), "world_fingerprint": "w"}

    def step(self, action: int) -> Any:
        self.steps += 1
        if self.dies(self.world, self.steps):
            raise Died(f"in world {self.world}")
        return self.see(), float(action), False, False, {"call_trace": CallTrace([0])}

    def see(self) -> Any:
        return np.array([self.world + self.steps / 10], np.float32)

    def close(self) -> None:
        self.closed = True


def play(world: int) -> Play:
    key = EpisodeKey("toy", "1", "0" * 64, CATALOGUE.sha256, world, 0, "p", None, 6)
    return Play(key, None, (world,))


def tape(_: int) -> ActionTape:
    return ActionTape(np.array([0, 1, 2, 0, 1, 2]))


class Policy:
    """Plays what it sees, and notes how many lanes it was asked for."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def act(
        self, observation: Observation, memory: list[Memory], rng: list[np.random.Generator]
    ) -> tuple[Any, list[Memory]]:
        self.batches.append(len(rng))
        return np.array([int(lane.integers(3)) for lane in rng]), list(memory)


@pytest.mark.parametrize("by_policy", [False, True])
def test_a_game_that_is_killed_from_outside_leaves_no_mark(by_policy: bool) -> None:
    kills = {(1, 4): 2, (2, 1): 1}

    def dies(world: int, step: int) -> bool:
        left = kills.get((world, step), 0)
        # The second kill of world 1 comes at another step than the first.
        if world == 1 and left:
            kills[1, 4] = 0
            kills[1, 2] = left - 1
        elif left:
            kills[world, step] = left - 1
        return left > 0

    def played(dies: Callable[[int, int], bool]) -> tuple[list[Any], list[Counter]]:
        opened: list[Counter] = []
        lanes = Lanes(lambda: Counter(dies, opened))
        plays = [play(world) for world in range(4)]
        given: dict[str, Any] = {"policy": Policy()} if by_policy else {"make_tester": tape}
        episodes = lanes.play(plays, **given)
        lanes.close()
        return episodes, opened

    whole, opened = played(lambda world, step: False)
    assert len(opened) == 4
    found, opened = played(dies)
    assert not any(kills.values())
    for one, other in zip(found, whole, strict=True):
        assert (one.key, one.fault, one.steps) == (other.key, None, 6)
        for name in ("actions", "rewards", "trace_ids", "observations"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert len(opened) == 4 + 3
    assert all(env.closed for env in opened)


def test_a_death_that_repeats_is_a_finding() -> None:
    opened: list[Counter] = []
    lanes = Lanes(lambda: Counter(lambda world, step: (world, step) == (1, 3), opened))
    episodes = lanes.play([play(0), play(1)], make_tester=tape)
    assert [episode.steps for episode in episodes] == [6, 3]
    fault = episodes[1].fault
    assert fault is not None
    assert (fault.kind, fault.exception, fault.where) == ("crash", "Died", "engine")
    assert fault.message == "in world 1"
    assert "signal 9" in fault.traceback
    # Once, once more to be sure, and no third time.
    assert len(opened) == 3


def test_engines_killed_at_the_reset_twice_are_not_yet_a_finding() -> None:
    left = [2]

    def dies(_: int, step: int) -> bool:
        left[0] -= step == 0 and left[0] > 0
        return step == 0 and left[0] > 0

    left[0] = 3  # two deaths
    (episode,) = Lanes(lambda: Counter(dies, [])).play([play(0)], make_tester=tape)
    assert (episode.fault, episode.steps) == (None, 6)
    left[0] = 99
    (episode,) = Lanes(lambda: Counter(dies, [])).play([play(0)], make_tester=tape)
    assert episode.fault is not None
    assert (episode.fault.message, episode.steps) == ("at the reset", 0)
    assert left[0] == 96


def test_deaths_that_never_repeat_are_told_as_such() -> None:
    opened: list[Counter] = []
    count = iter(range(1, 99))

    def dies(_: int, step: int) -> bool:
        return step == 1 + len(opened) % 6 and next(count) > 0

    episodes = Lanes(lambda: Counter(dies, opened)).play([play(0)], make_tester=tape)
    assert len(opened) == MOST_TRIES
    assert episodes[0].fault is not None
    assert episodes[0].fault.message.endswith(f"in another way in each of {MOST_TRIES} tries)")


def test_a_policys_batch_is_played_again_as_a_whole() -> None:
    kills = [True]
    policy = Policy()
    lanes = Lanes(
        lambda: Counter(lambda w, s: (w, s) == (2, 5) and bool(kills and kills.pop()), [])
    )
    lanes.play([play(world) for world in range(3)], policy=policy)
    assert policy.batches == [3, 3, 3, 3, 3, 2, 3, 3, 3, 3, 3, 3]


def test_a_game_that_is_killed_while_it_opens_is_opened_again(tmp_path: Path) -> None:
    left = [2]

    def make() -> Counter:
        if left[0]:
            left[0] -= 1
            raise Died("while it came up")
        return Counter(lambda world, step: False, [])

    assert Lanes(make).play([play(0)], make_tester=tape)[0].fault is None
    left[0] = 99
    with pytest.raises(Died):
        Lanes(make).play([play(0)], make_tester=tape)
    assert left == [99 - MOST_TRIES]


def test_games_stay_open_between_plays() -> None:
    opened: list[Counter] = []
    lanes = Lanes(lambda: Counter(lambda world, step: False, opened))
    for world in range(5):
        lanes.play([replace(play(world), stop_after=2)], make_tester=tape)
    assert len(opened) == 1
