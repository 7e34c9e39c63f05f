"""Training: it learns what can be learned, resumes exactly, and stops when numbers go bad."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from lanista.agents.agent import make_agent
from lanista.agents.checkpoint import load_checkpoint
from lanista.agents.config import AgentConfig, Spaces, TrainConfig
from lanista.agents.learner import BadUpdate, Learner, make_optimiser
from lanista.agents.training import train
from lanista.data.dataset import GoalDataset
from lanista.data.episode import Episode
from lanista.envs.errors import InputError, RunError

SMALL = {"dimension": 32, "vector_hidden": 32, "state_dimension": 32, "mlp_hidden": (32,)}
QUICK = {"batch_size": 32, "learning_rate": 3e-3, "threads": 1, "device": "cpu"}
GOALS = (0, 1, 2, 3)


def dataset_of(toys: SimpleNamespace, make: Callable[..., Episode], episodes: int) -> GoalDataset:
    rng = np.random.default_rng(5)
    catalogue = toys.catalogue(10)
    made = [make(toys, rng, catalogue, world) for world in range(episodes)]
    return GoalDataset.from_episodes(made, GOALS, catalogue, action_count=4)


def goal_decides(toys: SimpleNamespace, rng: np.random.Generator, *rest: object) -> Episode:
    """One goal an episode: function g is called at the end, and g is the action all along."""
    catalogue, world = rest
    steps, goal = 5, int(rng.integers(4))
    traces = [[9]] * (steps - 1) + [[goal]]
    seen = rng.normal(size=(steps + 1, 3)).astype(np.float32)
    return toys.episode(catalogue, seen, [goal] * steps, traces, world=world)


def trace_decides(toys: SimpleNamespace, rng: np.random.Generator, *rest: object) -> Episode:
    """The action is told by which of functions 4 to 7 is called oftener than function 8."""
    catalogue, world = rest
    steps = 8
    told = rng.integers(4, size=steps)
    calls = [[4 + int(a)] * 3 + [8] + [9] * int(rng.integers(3)) for a in told]
    seen = rng.normal(size=(steps + 1, 3)).astype(np.float32)
    traces = [*calls[1:], [0, 1, 2, 3]]
    return toys.episode(catalogue, seen, told.tolist(), traces, reset=calls[0], world=world)


def past_trace_decides(toys: SimpleNamespace, rng: np.random.Generator, *rest: object) -> Episode:
    """The action from step 2 on is told by the trace of two steps before: memory is needed."""
    catalogue, world = rest
    steps = 6
    told = rng.integers(4, size=steps)
    calls = [[4 + int(a)] * 2 for a in told]
    actions = [0, 0, *told[:-2].tolist()]
    seen = rng.normal(size=(steps + 1, 3)).astype(np.float32)
    traces = [*calls[1:], [0, 1, 2, 3]]
    return toys.episode(catalogue, seen, actions, traces, reset=calls[0], world=world)


def accuracy(
    toys: SimpleNamespace,
    make: Callable[..., Episode],
    out: Path,
    agent: AgentConfig,
    steps: int,
) -> float:
    dataset = dataset_of(toys, make, 240)
    held_out = GoalDataset.from_episodes(
        [make(toys, np.random.default_rng(99 + w), dataset.catalogue, w) for w in range(40)],
        GOALS,
        dataset.catalogue,
        action_count=4,
    )
    config = TrainConfig(steps=steps, **QUICK)
    return train(agent, config, dataset, out, validation=held_out).metrics["validation/accuracy"]


@pytest.mark.parametrize("algorithm", ["gcbc", "gcdt"])
def test_a_goal_that_decides_the_action_is_learned(
    toys: SimpleNamespace, tmp_path: Path, algorithm: str
) -> None:
    agent = AgentConfig(algorithm=algorithm, context=4, **SMALL)
    assert accuracy(toys, goal_decides, tmp_path, agent, 150) > 0.95


@pytest.mark.parametrize("call_stack", ["emb", "linear", "mhsa"])
def test_a_trace_that_decides_the_action_is_learned_by_every_encoder(
    toys: SimpleNamespace, tmp_path: Path, call_stack: str
) -> None:
    agent = AgentConfig(algorithm="gcbc", call_stack=call_stack, **SMALL)
    assert accuracy(toys, trace_decides, tmp_path, agent, 150) > 0.95


def test_a_simple_agent_cannot_learn_what_only_the_trace_tells(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    agent = AgentConfig(algorithm="gcbc", **SMALL)
    assert accuracy(toys, trace_decides, tmp_path, agent, 150) < 0.4


def test_only_a_code_aware_agent_with_memory_learns_what_a_past_trace_tells(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    found = {}
    for name, algorithm, call_stack in (
        ("dt ca2", "gcdt", "mhsa"),
        ("dt simple", "gcdt", None),
        ("bc ca2", "gcbc", "mhsa"),
    ):
        agent = AgentConfig(
            algorithm=algorithm, call_stack=call_stack, context=6, dropout=0.0, **SMALL
        )
        steps = 300 if name == "dt ca2" else 100
        found[name] = accuracy(toys, past_trace_decides, tmp_path / name, agent, steps)
    # A third of the rows, the first two of six steps, always take action 0.
    assert found["dt ca2"] > 0.95
    assert found["dt simple"] < 0.75
    assert found["bc ca2"] < 0.75


RESUMED = [
    AgentConfig(algorithm="gcbc", call_stack="emb", **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="mhsa", context=5, **SMALL),
    AgentConfig(algorithm="gcdt", context=5, timestep="episode", **SMALL),
]


@pytest.mark.parametrize("agent", RESUMED, ids=lambda agent: agent.name)
def test_a_resumed_run_ends_with_the_very_same_files(
    toys: SimpleNamespace, tmp_path: Path, agent: AgentConfig
) -> None:
    dataset, held_out = toys.random_dataset(), toys.random_dataset(seed=1)
    config = TrainConfig(steps=14, checkpoint_every=5, validate_every=4, metrics_every=7, **QUICK)
    whole = train(agent, config, dataset, tmp_path / "whole", validation=held_out)
    asked = iter([False] * 6 + [True])
    parts = tmp_path / "parts"
    first = train(
        agent, config, dataset, parts, validation=held_out, should_stop=lambda: next(asked)
    )
    assert (first.updates, first.finished) == (7, False)
    torch.rand(100)  # what the process drew in between does not matter
    second = train(agent, config, dataset, parts, validation=held_out)
    assert (second.updates, second.finished) == (14, True)
    expected, found = map(toys.checkpoint_bytes, (whole.checkpoint, second.checkpoint))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert found[name] == expected[name]
    descriptions = [json.loads(files["checkpoint.json"]) for files in (expected, found)]
    for description in descriptions:
        del description["metrics"]["train/samples_per_second"]
    assert descriptions[0] == descriptions[1]
    again = train(agent, config, dataset, parts, validation=held_out)
    assert (again.checkpoint, again.loss, again.updates) == (second.checkpoint, second.loss, 14)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "checkpoint.json"])
def test_a_corrupt_checkpoint_is_set_aside_and_the_one_before_goes_on(
    toys: SimpleNamespace, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    dataset = toys.random_dataset()
    agent = RESUMED[0]
    config = TrainConfig(steps=14, checkpoint_every=5, metrics_every=7, **QUICK)
    whole = train(agent, config, dataset, tmp_path / "whole")
    asked = iter([False] * 6 + [True])
    parts = tmp_path / "parts"
    train(agent, config, dataset, parts, should_stop=lambda: next(asked))
    newest = parts / "checkpoint-000000007"
    (newest / name).write_bytes((newest / name).read_bytes()[:-9])
    done = train(agent, config, dataset, parts)
    assert (done.updates, done.finished) == (14, True)
    for kind in ("model.safetensors", "optimizer.safetensors"):
        assert (done.checkpoint / kind).read_bytes() == (whole.checkpoint / kind).read_bytes()
    assert (parts / "corrupt-checkpoint-000000007" / name).exists()
    assert f"{newest / name} is corrupt" in caplog.text


def test_the_callers_generator_and_threads_are_put_back(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    config = TrainConfig(steps=2, **QUICK | {"threads": threads + 1})
    seen = []
    train(
        AgentConfig(**SMALL),
        config,
        toys.random_dataset(),
        tmp_path,
        on_metrics=lambda update, metrics: seen.append(torch.get_num_threads()),
    )
    assert seen == [threads + 1]
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_reports_and_checkpoints_come_when_they_are_due(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    reports: dict[int, dict[str, float]] = {}
    saved: list[tuple[str, int]] = []
    train(
        AgentConfig(**SMALL),
        TrainConfig(
            steps=10,
            metrics_every=4,
            validate_every=5,
            checkpoint_every=3,
            keep_checkpoints=2,
            **QUICK,
        ),
        toys.random_dataset(),
        tmp_path,
        validation=toys.random_dataset(seed=1),
        on_metrics=reports.__setitem__,
        on_checkpoint=lambda path, update: saved.append((path.name, update)),
    )
    training = {"loss", "accuracy", "gradient_norm", "learning_rate", "samples_per_second"}
    assert {update: len(metrics) for update, metrics in reports.items()} == {
        4: 5,
        5: 2,
        8: 5,
        10: 7,
    }
    assert set(reports[10]) == {
        *(f"train/{name}" for name in training),
        "validation/loss",
        "validation/accuracy",
    }
    assert saved == [(f"checkpoint-{update:09d}", update) for update in (3, 6, 9, 10)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name for name, _ in saved[-2:]]


def poisoned(dataset: GoalDataset, rows: Sequence[int]) -> GoalDataset:
    seen = dataset.observations.copy()
    seen[dataset.frame_of_row[list(rows)]] = np.nan
    return replace(dataset, observations=seen)


def test_a_loss_that_is_not_a_number_stops_with_its_rows_named(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    dataset = poisoned(toys.random_dataset(), [2])
    config = TrainConfig(steps=500, checkpoint_every=500, **QUICK)
    with pytest.raises(RunError) as stopped:
        train(AgentConfig(algorithm="gcbc", **SMALL), config, dataset, tmp_path)
    assert "the loss is nan" in str(stopped.value)
    assert f"episode {dataset.episode_ids[0]} step 2." in str(stopped.value)


def test_a_gradient_that_is_infinite_stops_before_it_touches_the_weights(
    toys: SimpleNamespace,
) -> None:
    learner = Learner(AgentConfig(**SMALL), TrainConfig(**QUICK), toys.random_dataset())
    before = [parameter.clone() for parameter in learner.agent.parameters()]
    handle = learner.agent.head.weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(BadUpdate, match="gradient"):
        learner.step()
    handle.remove()
    assert all(map(torch.equal, before, learner.agent.parameters()))


def test_many_bad_rows_are_listed_in_a_file(toys: SimpleNamespace, tmp_path: Path) -> None:
    dataset = toys.random_dataset()
    dataset = poisoned(dataset, range(len(dataset)))
    with pytest.raises(RunError, match=r"^Update 1 stopped: .* more rows, all listed in "):
        train(AgentConfig(**SMALL), TrainConfig(steps=5, **QUICK), dataset, tmp_path)
    listed = json.loads((tmp_path / "failed-update-1.json").read_text())
    assert listed["update"] == 1
    assert {row["episode"] for row in listed["rows"]} <= set(dataset.episode_ids)
    assert len(listed["rows"]) > 5


def test_going_on_with_other_settings_or_data_is_refused(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    agent, config = AgentConfig(**SMALL), TrainConfig(steps=3, **QUICK)
    dataset = toys.random_dataset()
    train(agent, config, dataset, tmp_path)
    with pytest.raises(InputError) as refused:
        train(replace(agent, context=5), replace(config, seed=4), dataset, tmp_path)
    assert [problem.split(" with ")[1].split(",")[0] for problem in refused.value.problems] == [
        "agent.context 10",
        "train.seed 0",
    ]
    with pytest.raises(InputError, match=r"data\.manifest_sha256"):
        train(agent, config, dataset, tmp_path, data_manifest_sha256="new")
    with pytest.raises(InputError, match=r"goals \["):
        train(agent, config, toys.random_dataset(goals=(1, 2)), tmp_path)
    with pytest.raises(InputError, match="already holds checkpoint-000000003"):
        train(agent, config, dataset, tmp_path, resume=False)
    train(agent, replace(config, metrics_every=1, keep_checkpoints=9), dataset, tmp_path)


def test_held_out_episodes_of_another_kind_are_refused(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="held-out episodes"):
        train(
            AgentConfig(**SMALL),
            TrainConfig(steps=1, **QUICK),
            toys.random_dataset(),
            tmp_path,
            validation=toys.random_dataset(goals=(1, 2)),
        )


def test_a_device_that_is_not_here_is_refused(toys: SimpleNamespace, tmp_path: Path) -> None:
    for device in ("cuda:77", "mps", "abacus"):
        config = TrainConfig(steps=1, **QUICK | {"device": device})
        with pytest.raises(InputError, match=f"Device '{device}'"):
            train(AgentConfig(**SMALL), config, toys.random_dataset(), tmp_path)


def test_bfloat16_trains_too(toys: SimpleNamespace, tmp_path: Path) -> None:
    agent = AgentConfig(call_stack="mhsa", **SMALL)
    config = TrainConfig(steps=20, precision="bfloat16", **QUICK)
    result = train(agent, config, toys.random_dataset(), tmp_path)
    weights = load_checkpoint(result.checkpoint).weights
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    assert result.loss < 1.5


def test_only_matrices_and_kernels_decay(toys: SimpleNamespace) -> None:
    spaces = Spaces.of(toys.random_dataset(images=True))
    agent = make_agent(AgentConfig(call_stack="mhsa"), spaces)
    decayed, spared = make_optimiser(agent, TrainConfig()).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    matrices = {
        id(module.weight) for module in agent.modules() if isinstance(module, nn.Linear | nn.Conv2d)
    }
    assert {id(parameter) for parameter in decayed["params"]} == matrices
    together = [*decayed["params"], *spared["params"]]
    assert {id(p) for p in together} == {id(p) for p in agent.parameters()}
    assert len(together) == len(list(agent.parameters()))


def test_held_out_episodes_that_reach_no_goal_do_not_stop_training(
    toys: SimpleNamespace, tmp_path: Path
) -> None:
    dataset = toys.random_dataset()
    unlucky = toys.episode(
        dataset.catalogue, np.zeros((3, 5), np.float32), [0, 1], [[0], [2]], reset=[1, 3]
    )
    held_out = GoalDataset.from_episodes(
        [unlucky], dataset.goals.tolist(), dataset.catalogue, action_count=4
    )
    config = TrainConfig(steps=2, validate_every=1, **QUICK)
    found = train(AgentConfig(**SMALL), config, dataset, tmp_path, validation=held_out)
    assert found.updates == 2
    assert "train/loss" in found.metrics
    assert "validation/loss" not in found.metrics
