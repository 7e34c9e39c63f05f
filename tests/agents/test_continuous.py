"""Agents whose actions are made of numbers: loss (2), what they learn, and how they play."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lanista.agents.agent import make_agent
from lanista.agents.batches import ResidentDataset
from lanista.agents.checkpoint import load_checkpoint
from lanista.agents.config import AgentConfig, Spaces, TrainConfig
from lanista.agents.learner import Learner
from lanista.agents.networks.action import ActionScale
from lanista.agents.player import load_player
from lanista.agents.policies import RandomPolicy
from lanista.agents.training import train
from lanista.data.dataset import GoalDataset
from lanista.data.episode import Episode
from lanista.data.sampler import HindsightSampler, Windows
from lanista.envs.errors import RunError
from lanista.envs.policy import Observation
from lanista.envs.tracing.trace import CallTrace

SMALL = {"dimension": 32, "vector_hidden": 32, "state_dimension": 32, "mlp_hidden": (32,)}
QUICK = {"batch_size": 32, "learning_rate": 3e-3, "threads": 1, "device": "cpu"}
GOALS = (0, 1, 2, 3)
BOUNDS = ((-2.0, -1.0), (2.0, 1.0))
AGENTS = [
    AgentConfig(algorithm="gcbc", **SMALL),
    AgentConfig(algorithm="gcbc", call_stack="emb", **SMALL),
    AgentConfig(algorithm="gcdt", context=4, **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="mhsa", context=4, **SMALL),
]


def towards(goal: int, seen: np.ndarray) -> np.ndarray:
    """What the teacher does: along the goal's own direction, by as much as it sees."""
    angle = goal * np.pi / 2
    away = np.tanh(np.abs(seen[:1]))
    return np.concatenate([2 * away * np.cos(angle), away * np.sin(angle)]).astype(np.float32)


def goal_episode(toys: SimpleNamespace, rng: np.random.Generator, world: int) -> Episode:
    """One goal an episode, called at its end; what is seen and the goal decide the action."""
    steps, goal = 6, int(rng.integers(4))
    seen = rng.normal(size=(steps + 1, 3)).astype(np.float32)
    traces = [[9]] * (steps - 1) + [[goal]]
    made: Episode = toys.episode(toys.catalogue(10), seen, [0] * steps, traces, world=world)
    return replace(made, actions=np.stack([towards(goal, row) for row in seen[:-1]]))


def trace_episode(toys: SimpleNamespace, rng: np.random.Generator, world: int) -> Episode:
    """The action is told by which of functions 4 to 7 the step before called."""
    steps = 8
    told = rng.integers(4, size=steps)
    calls = [[4 + int(a)] * 3 + [9] * int(rng.integers(3)) for a in told]
    seen = rng.normal(size=(steps + 1, 3)).astype(np.float32)
    traces = [*calls[1:], list(GOALS)]
    made: Episode = toys.episode(
        toys.catalogue(10), seen, [0] * steps, traces, reset=calls[0], world=world
    )
    return replace(made, actions=np.stack([towards(int(a), np.full(3, 0.6)) for a in told]))


def dataset_of(
    toys: SimpleNamespace, make: Callable[..., Episode], episodes: int, seed: int = 5
) -> GoalDataset:
    rng = np.random.default_rng(seed)
    made = [make(toys, rng, world) for world in range(episodes)]
    return GoalDataset.from_episodes(made, GOALS, toys.catalogue(10), action_bounds=BOUNDS)


def held_out_loss(
    toys: SimpleNamespace, make: Callable[..., Episode], out: Path, agent: AgentConfig
) -> float:
    held_out = dataset_of(toys, make, 40, seed=99)
    config = TrainConfig(steps=250, **QUICK)
    done = train(agent, config, dataset_of(toys, make, 240), out, validation=held_out)
    assert not [name for name in done.metrics if name.endswith("accuracy")]
    return done.metrics["validation/loss"]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_goal_that_decides_the_action_is_learned(
    toys: SimpleNamespace, tmp_path: Path, agent: AgentConfig
) -> None:
    # The middle of the bounds, which is the best guess without the goal, is off by 0.24.
    assert held_out_loss(toys, goal_episode, tmp_path, agent) < 0.03


def test_what_only_the_trace_tells_is_learned_by_code_aware_agents_alone(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    losses = {
        agent.name: held_out_loss(toys, trace_episode, tmp_path / str(place), agent)
        for place, agent in enumerate(AGENTS)
    }
    for name, loss in losses.items():
        assert loss < 0.02 if "CA2" in name else loss > 0.2, losses


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_loss_is_the_squared_distance_between_bounds_of_minus_one_and_one(
    toys: SimpleNamespace, agent: AgentConfig
) -> None:
    dataset = dataset_of(toys, goal_episode, 12)
    learner = Learner(agent, TrainConfig(steps=1, **QUICK), dataset, dataset)
    seen = learner.validate()
    assert seen is not None
    # The same batches once more, and loss (2) a row at a time in NumPy.
    sampler = HindsightSampler(dataset, agent.window)
    rng = np.random.default_rng(np.random.SeedSequence([0, 2, 0]))
    resident = ResidentDataset(dataset, torch.device("cpu"), traces=True)
    total, rows = 0.0, 0
    with torch.no_grad():
        for _ in range(learner.config.validation_batches):
            windows = sampler.sample(rng, learner.config.batch_size)
            given = learner.agent(resident.gather(windows)).numpy()
            for place, row in zip(*np.nonzero(windows.valid), strict=True):
                wanted = dataset.actions[windows.rows[place, row]] / np.array([2.0, 1.0])
                total += float(np.sum((given[place, row] - wanted) ** 2))
                rows += 1
    assert seen.loss == pytest.approx(total / rows, rel=1e-5)
    assert seen.accuracy is None


@pytest.mark.parametrize("agent", AGENTS[2:], ids=lambda agent: agent.name)
def test_an_action_changes_nothing_at_or_before_its_step(
    toys: SimpleNamespace, agent: AgentConfig
) -> None:
    dataset = dataset_of(toys, goal_episode, 4)
    network = make_agent(agent, Spaces.of(dataset)).eval()
    rows = np.arange(4)[None]
    windows = Windows(rows, np.ones((1, 4), bool), np.zeros(1, np.int64))
    batch = ResidentDataset(dataset, torch.device("cpu"), traces=True).gather(windows)
    before = network(batch)
    for step in range(4):
        changed = batch.actions.clone()
        changed[:, step] += 0.5
        after = network(replace(batch, actions=changed))
        assert torch.equal(after[:, : step + 1], before[:, : step + 1])
        assert step == 3 or not torch.allclose(after[:, step + 1 :], before[:, step + 1 :])


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_player_gives_what_the_network_gives_in_the_games_units(
    toys: SimpleNamespace, tmp_path: Path, agent: AgentConfig
) -> None:
    dataset = dataset_of(toys, goal_episode, 12)
    checkpoint = train(agent, TrainConfig(steps=20, **QUICK), dataset, tmp_path).checkpoint
    player = load_player(checkpoint, dataset.catalogue)
    rows = np.arange(int(dataset.episode_offsets[1]))
    memory, given = [None], []
    for row in rows:
        ids, counts = dataset.bag(int(row))
        seen = Observation(
            dataset.observations[row : row + 1], [CallTrace(np.repeat(ids, counts))], np.array([2])
        )
        action, memory = player.act(seen, memory, [np.random.default_rng(0)])
        assert action.dtype == np.float32
        given.append(action[0])
        # What it remembers is what it did, so the recorded action is what it must have done.
        if memory[0] is not None:
            kept = memory[0]
            assert np.array_equal(kept.actions[-1], action[0])
            memory = [replace(kept, actions=(*kept.actions[:-1], dataset.actions[row]))]
    network = make_agent(player.agent.config, player.agent.spaces).eval()
    network.load_state_dict(load_checkpoint(checkpoint).weights)
    resident = ResidentDataset(dataset, torch.device("cpu"), traces=True)
    for row in rows:
        window = rows[max(0, row + 1 - agent.window) : row + 1]
        windows = Windows(window[None], np.ones((1, len(window)), bool), np.array([2]))
        with torch.no_grad():
            expected = network(resident.gather(windows))[0, -1].numpy() * np.array([2.0, 1.0])
        assert given[row] == pytest.approx(expected, abs=1e-5)


def test_training_resumes_exactly(toys: SimpleNamespace, tmp_path: Path) -> None:
    dataset = dataset_of(toys, goal_episode, 12)
    config = TrainConfig(steps=14, checkpoint_every=5, **QUICK)
    whole = train(AGENTS[3], config, dataset, tmp_path / "whole")
    asked = iter([False] * 6 + [True])
    parts = tmp_path / "parts"
    train(AGENTS[3], config, dataset, parts, should_stop=lambda: next(asked))
    done = train(AGENTS[3], config, dataset, parts)
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (done.checkpoint / name).read_bytes() == (whole.checkpoint / name).read_bytes()


def test_numbers_without_bounds_are_left_as_they_are_and_survive_a_checkpoint(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    bounds = ((-np.inf, -4.0), (3.0, 4.0))
    episodes = [goal_episode(toys, np.random.default_rng(0), world) for world in range(4)]
    dataset = GoalDataset.from_episodes(episodes, GOALS, toys.catalogue(10), action_bounds=bounds)
    checkpoint = train(AGENTS[0], TrainConfig(steps=2, **QUICK), dataset, tmp_path).checkpoint
    text = (checkpoint / "checkpoint.json").read_text()
    assert "Infinity" not in text
    assert json.loads(text)["spaces"]["action_low"] == [None, -4.0]
    spaces = load_checkpoint(checkpoint).spaces
    assert (spaces.action_low, spaces.action_high) == bounds
    scale = ActionScale(spaces)
    actions = torch.tensor([[7.0, 2.0]])
    assert scale.to_unit(actions).tolist() == [[7.0, 0.5]]
    assert scale.from_unit(scale.to_unit(actions)).tolist() == actions.tolist()


def test_an_observation_that_overflows_stops_with_its_row_named(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    dataset = dataset_of(toys, goal_episode, 4)
    dataset.observations[3] = 3e38
    with pytest.raises(RunError, match="the loss is"):
        train(AGENTS[0], TrainConfig(steps=30, **QUICK), dataset, tmp_path)


def test_the_random_policy_is_even_within_the_bounds() -> None:
    policy = RandomPolicy(BOUNDS, (1, 2))
    rng = [np.random.default_rng(lane) for lane in range(2000)]
    seen = Observation(np.zeros((2000, 1)), [CallTrace()] * 2000)
    actions, _ = policy.act(seen, [None] * 2000, rng)
    assert (actions.shape, actions.dtype) == ((2000, 1, 2), np.float32)
    assert np.abs(actions.mean(axis=0) / [2.0, 1.0]).max() < 0.05
    assert actions.min(axis=0) == pytest.approx(np.array([[-2.0, -1.0]]), abs=0.02)
    assert actions.max(axis=0) == pytest.approx(np.array([[2.0, 1.0]]), abs=0.02)
    assert policy.content_hash != RandomPolicy(4).content_hash
