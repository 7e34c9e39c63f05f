"""Players: they act as the network says, lane by lane, whatever ids the game uses."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from lanista.agents.agent import make_agent
from lanista.agents.batches import ResidentDataset
from lanista.agents.checkpoint import load_checkpoint
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.player import CheckpointPolicy, draw_actions, load_player
from lanista.agents.policies import RandomPolicy
from lanista.agents.training import train
from lanista.data.dataset import GoalDataset
from lanista.data.sampler import Windows
from lanista.envs.errors import InputError
from lanista.envs.policy import Observation
from lanista.envs.tracing.catalogue import Catalogue, Function
from lanista.envs.tracing.trace import CallTrace

SMALL = {"dimension": 16, "vector_hidden": 16, "state_dimension": 16, "mlp_hidden": (16,)}
VARIANTS = [
    AgentConfig(algorithm="gcbc", **SMALL),
    AgentConfig(algorithm="gcbc", call_stack="mhsa", **SMALL),
    AgentConfig(algorithm="gcdt", context=4, **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="emb", context=4, goal_tokens="every_step", **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="mhsa", context=4, timestep="episode", **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="linear", context=1, **SMALL),
]


def trained(toys: SimpleNamespace, out: Path, agent: AgentConfig, steps: int = 30) -> Path:
    config = TrainConfig(steps=steps, batch_size=16, learning_rate=1e-2, device="cpu")
    return train(agent, config, toys.random_dataset(), out).checkpoint


def trace_of(dataset: GoalDataset, row: int) -> CallTrace:
    ids, counts = dataset.bag(int(dataset.frame_of_row[row]))
    return CallTrace(np.repeat(ids, counts))


def play(
    policy: CheckpointPolicy, dataset: GoalDataset, lanes: list[int], steps: int, seed: int = 0
) -> list[list[int]]:
    """Let the policy act beside recorded episodes; lane i sees episode lanes[i]."""
    starts = [int(dataset.episode_offsets[lane]) for lane in lanes]
    rng = [np.random.default_rng([seed, lane]) for lane in lanes]
    memory: list[Any] = [None] * len(lanes)
    chosen = []
    for step in range(steps):
        rows = [start + step for start in starts]
        actions, memory = policy.act(
            Observation(
                dataset.observations[dataset.frame_of_row[rows]],
                [trace_of(dataset, row) for row in rows],
                dataset.goals[[lane % 4 for lane in lanes]],
            ),
            memory,
            rng,
        )
        chosen.append(actions.tolist())
    return [list(lane) for lane in zip(*chosen, strict=True)]


def long_lanes(dataset: GoalDataset, steps: int) -> list[int]:
    return np.flatnonzero(np.diff(dataset.episode_offsets) >= steps).tolist()


@pytest.mark.parametrize("config", VARIANTS, ids=lambda config: f"{config.name} {config.context}")
def test_a_player_acts_as_the_network_trained_on_windows_says(
    toys: SimpleNamespace, tmp_path: Path, config: AgentConfig
) -> None:
    dataset = toys.random_dataset()
    checkpoint = trained(toys, tmp_path, config)
    policy = load_player(checkpoint, dataset.catalogue, greedy=True)
    lanes = long_lanes(dataset, 9)
    assert len(lanes) > 1
    acted = play(policy, dataset, lanes, 9)
    loaded = load_checkpoint(checkpoint)
    agent = make_agent(loaded.agent, loaded.spaces)
    agent.load_state_dict(dict(loaded.weights))
    agent.eval()
    resident = ResidentDataset(dataset, torch.device("cpu"), traces=bool(config.call_stack))
    for lane, actions in zip(lanes, acted, strict=True):
        for step in range(9):
            first = max(0, step - config.window + 1)
            rows = dataset.episode_offsets[lane] + np.arange(first, step + 1)[None]
            windows = Windows(rows, np.ones_like(rows, dtype=np.bool_), np.array([lane % 4]))
            batch = resident.gather(windows)
            # What the player did before, not what was recorded.
            batch.actions[0, :-1] = torch.tensor(actions[first:step])
            assert actions[step] == agent(batch)[0, -1].argmax().item()


@pytest.mark.parametrize("config", VARIANTS[1:5:3], ids=lambda config: config.name)
def test_lanes_do_not_depend_on_their_neighbours(
    toys: SimpleNamespace, tmp_path: Path, config: AgentConfig
) -> None:
    dataset = toys.random_dataset()
    policy = load_player(trained(toys, tmp_path, config), dataset.catalogue)
    lanes = long_lanes(dataset, 9)
    together = play(policy, dataset, lanes, 9)
    assert together == [play(policy, dataset, [lane], 9)[0] for lane in lanes]
    assert together != play(policy, dataset, lanes, 9, seed=1)


def test_lanes_of_different_age_share_a_batch(toys: SimpleNamespace, tmp_path: Path) -> None:
    dataset = toys.random_dataset()
    policy = load_player(trained(toys, tmp_path, VARIANTS[4]), dataset.catalogue, greedy=True)
    old, new = long_lanes(dataset, 9)[:2]
    rng = [np.random.default_rng(0)] * 2

    def look(lane: int, step: int) -> tuple[Any, CallTrace, int]:
        row = int(dataset.episode_offsets[lane]) + step
        seen = dataset.observations[dataset.frame_of_row[row]]
        return seen, trace_of(dataset, row), int(dataset.goals[0])

    def act(looks: list[tuple[Any, CallTrace, int]], memory: list[Any]) -> tuple[Any, list[Any]]:
        seen, traces, goals = zip(*looks, strict=True)
        observation = Observation(np.stack(seen), traces, np.array(goals))
        return policy.act(observation, memory, rng[: len(looks)])

    alone: list[list[int]] = []
    for lane in (old, new):
        memory: list[Any] = [None]
        alone.append([])
        for step in range(8):
            actions, memory = act([look(lane, step)], memory)
            alone[-1].append(int(actions[0]))
    memory = [None]
    for step in range(3):
        _, memory = act([look(old, step)], memory)
    memory.append(None)
    for step in range(5):
        actions, memory = act([look(old, step + 3), look(new, step)], memory)
        assert actions.tolist() == [alone[0][step + 3], alone[1][step]]


def test_a_game_with_other_ids_is_played_by_name(toys: SimpleNamespace, tmp_path: Path) -> None:
    dataset = toys.random_dataset()
    checkpoint = trained(toys, tmp_path, VARIANTS[1])
    extra = (Function(f"toy:Earlier.g{place}", "toy.py", 1, "Earlier") for place in range(3))
    wider = Catalogue.of((*dataset.catalogue.functions, *extra), "class")
    shift = wider.resolve(dataset.catalogue.name(0))
    assert shift == 3
    here, there = (
        load_player(checkpoint, catalogue, greedy=True) for catalogue in (dataset.catalogue, wider)
    )
    seen = dataset.observations[:6]
    traces = [trace_of(dataset, row) for row in range(6)]
    goals = dataset.goals[[0, 1, 2, 3, 0, 1]]
    rng = [np.random.default_rng(0)] * 6
    expected, _ = here.act(Observation(seen, traces, goals), [None] * 6, rng)
    moved = [CallTrace([0, 1, *(trace.ids.astype(np.int64) + shift), 2]) for trace in traces]
    found, _ = there.act(Observation(seen, moved, goals + shift), [None] * 6, rng)
    assert np.array_equal(found, expected)
    assert (here.dropped_calls, there.dropped_calls) == (0, 18)
    assert here.goals == dataset.goal_names


def test_games_that_cannot_be_mapped_are_refused_by_name(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    aware = trained(toys, tmp_path / "aware", VARIANTS[1], steps=1)
    simple = trained(toys, tmp_path / "simple", VARIANTS[0], steps=1)
    functions = toys.catalogue(12).functions
    few = Catalogue((*functions[1:2], *functions[3:4], *functions[5:6], *functions[7:8]), "class")
    with pytest.raises(
        InputError, match=r"8 of the 12 functions in its traces .* toy:Game\.f0000,"
    ):
        load_player(aware, few)
    load_player(simple, few)  # it reads no traces
    without = Catalogue(functions[4:], "class")
    with pytest.raises(InputError, match=r"2 of its 4 goals .*: toy:Game\.f0001, toy:Game\.f0003;"):
        load_player(simple, without)
    with pytest.raises(InputError, match="identity scheme 'class'"):
        load_player(simple, toys.catalogue(12, scheme="definition"))


def test_goals_it_was_not_trained_for_are_refused(toys: SimpleNamespace, tmp_path: Path) -> None:
    catalogue = toys.catalogue(12)
    policy = load_player(trained(toys, tmp_path, VARIANTS[0], steps=1), catalogue)
    seen, traces, rng = np.zeros((1, 5), np.float32), [CallTrace()], [np.random.default_rng(0)]
    with pytest.raises(InputError, match=r"not trained to reach toy:Game\.f0002"):
        policy.act(Observation(seen, traces, np.array([2])), [None], rng)
    with pytest.raises(InputError, match="needs a goal"):
        policy.act(Observation(seen, traces), [None], rng)


def test_content_hash_tells_players_apart(toys: SimpleNamespace, tmp_path: Path) -> None:
    catalogue = toys.catalogue(12)
    first = trained(toys, tmp_path / "a", VARIANTS[0], steps=2)
    same = trained(toys, tmp_path / "b", VARIANTS[0], steps=2)
    other = trained(toys, tmp_path / "c", VARIANTS[0], steps=3)
    hashes = [load_player(path, catalogue).content_hash for path in (first, same, other)]
    hashes.append(load_player(first, catalogue, greedy=True).content_hash)
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_draws_follow_the_softmax_and_never_take_an_illegal_action(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    scores = np.array([0.5, -np.inf, 2.0, -1.0])
    draws = 20_000
    rng = np.random.default_rng(0)
    drawn = draw_actions(np.tile(scores, (draws, 1)), [rng] * draws)
    counts = np.bincount(drawn, minlength=4)
    weights = np.exp(scores)[[0, 2, 3]]
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], draws * weights / weights.sum()).pvalue > 1e-4
    for greedy in (False, True):
        policy = load_player(
            trained(toys, tmp_path, VARIANTS[0]), toys.catalogue(12), greedy=greedy
        )
        seen = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
        legal = np.tile([False, True, False, True], (50, 1))
        observation = Observation(seen, [CallTrace()] * 50, np.full(50, 3), legal)
        actions, _ = policy.act(observation, [None] * 50, [rng] * 50)
        assert set(actions.tolist()) <= {1, 3}


def test_the_random_policy_is_even_over_legal_actions() -> None:
    policy = RandomPolicy(4)
    legal = np.tile([True, False, True, True], (6000, 1))
    rng = [np.random.default_rng(0)] * 6000
    observation = Observation(np.zeros((6000, 1)), [CallTrace()] * 6000, None, legal)
    actions, memory = policy.act(observation, [None] * 6000, rng)
    counts = np.bincount(actions, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]]).pvalue > 1e-4
    assert memory == [None] * 6000
    assert policy.content_hash != RandomPolicy(5).content_hash


def test_images_are_played_too(toys: SimpleNamespace, tmp_path: Path) -> None:
    dataset = toys.random_dataset(images=True)
    config = TrainConfig(steps=2, batch_size=4, device="cpu")
    agent = AgentConfig(call_stack="mhsa", context=3, **SMALL)
    path = train(agent, config, dataset, tmp_path).checkpoint
    policy = load_player(path, dataset.catalogue)
    lanes = long_lanes(dataset, 5)[:2]
    acted = play(policy, dataset, lanes, 5)
    assert all(0 <= action < 4 for lane in acted for action in lane)
