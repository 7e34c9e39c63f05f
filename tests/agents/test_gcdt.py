"""GC-DT: what each prediction may depend on, token order, padding."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lanista.agents.agent import Agent, make_agent
from lanista.agents.batches import Batch, ResidentDataset
from lanista.agents.config import AgentConfig, Spaces
from lanista.agents.gcdt import GoalDecisionTransformer
from lanista.agents.networks.call_stack import TraceBags
from lanista.data.sampler import HindsightSampler, Windows

OPTIONS = [
    (call_stack, goal_tokens, timestep)
    for call_stack in (None, "mhsa")
    for goal_tokens in ("front", "every_step")
    for timestep in ("context", "episode")
]


def make(toys: SimpleNamespace, images: bool = False, **options: object) -> tuple[Agent, Batch]:
    dataset = toys.random_dataset(images=images, episodes=4)
    config = AgentConfig(algorithm="gcdt", context=6, dimension=32, **options)
    agent = make_agent(config, Spaces.of(dataset), seed=1).eval()
    sampler = HindsightSampler(dataset, config.window)
    windows = sampler.sample(np.random.default_rng(0), 12)
    resident = ResidentDataset(dataset, torch.device("cpu"), traces=config.call_stack is not None)
    return agent, resident.gather(windows)


@pytest.mark.parametrize(("call_stack", "goal_tokens", "timestep"), OPTIONS)
def test_an_action_changes_no_logit_at_or_before_its_step(
    toys: SimpleNamespace, call_stack: str | None, goal_tokens: str, timestep: str
) -> None:
    agent, batch = make(toys, call_stack=call_stack, goal_tokens=goal_tokens, timestep=timestep)
    before = agent(batch)
    for step in range(6):
        actions = batch.actions.clone()
        actions[:, step] = (actions[:, step] + 1) % 4
        after = agent(replace(batch, actions=actions))
        assert torch.equal(after[:, : step + 1], before[:, : step + 1])
        if step < 5:
            assert not torch.allclose(after[:, step + 1 :], before[:, step + 1 :])


@pytest.mark.parametrize("goal_tokens", ["front", "every_step"])
def test_goal_calls_and_states_up_to_the_step_matter_and_later_ones_do_not(
    toys: SimpleNamespace, goal_tokens: str
) -> None:
    agent, batch = make(toys, call_stack="linear", goal_tokens=goal_tokens)
    before = agent(batch)
    assert not torch.allclose(agent(replace(batch, goals=(batch.goals + 1) % 4)), before)
    for step in range(6):
        seen = batch.observations.clone()
        seen[:, step] += 1
        assert batch.bags is not None
        counts = batch.bags.counts.clone()
        counts[:, step] += 1
        for changed in (
            replace(batch, observations=seen),
            replace(batch, bags=TraceBags(batch.bags.ids, counts)),
        ):
            after = agent(changed)
            assert torch.equal(after[:, :step], before[:, :step])
            assert not torch.allclose(after[:, step], before[:, step])


def test_a_short_window_is_not_touched_by_its_padding(toys: SimpleNamespace) -> None:
    agent, _ = make(toys, call_stack="mhsa")
    dataset = toys.random_dataset(episodes=4)
    resident = ResidentDataset(dataset, torch.device("cpu"), traces=True)
    rows = np.array([[0, 1, 2, 2, 2, 2]])
    padded = resident.gather(Windows(rows, rows == np.arange(6), np.array([1])))
    alone = resident.gather(Windows(rows[:, :3], np.ones((1, 3), dtype=np.bool_), np.array([1])))
    torch.testing.assert_close(agent(padded)[:, :3], agent(alone))


def test_tokens_stand_in_the_order_of_equation_10(
    toys: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for goal_tokens, call_stack, expected in (
        ("front", None, 1 + 2 * 6),
        ("front", "emb", 1 + 3 * 6),
        ("every_step", None, 3 * 6),
        ("every_step", "emb", 4 * 6),
    ):
        agent, batch = make(toys, goal_tokens=goal_tokens, call_stack=call_stack)
        assert isinstance(agent, GoalDecisionTransformer)
        seen: list[torch.Tensor] = []
        monkeypatch.setattr(
            agent.transformer, "forward", lambda tokens, seen=seen: seen.append(tokens) or tokens
        )
        agent(batch)
        (tokens,) = seen
        assert tokens.shape[1] == expected
        time = agent.time(torch.arange(6))
        goal = agent.goal_norm(agent.goal(batch.goals))
        torch.testing.assert_close(tokens[:, 0], goal + time[0])
        torch.testing.assert_close(
            tokens[:, -1], agent.action_norm(agent.action(batch.actions[:, -1])) + time[5]
        )
        torch.testing.assert_close(
            tokens[:, -2], agent.encode_states(batch.observations)[:, -1] + time[5]
        )
        if call_stack:
            calls = agent.encode_calls(batch.bags)
            assert calls is not None
            torch.testing.assert_close(tokens[:, -3], calls[:, -1] + time[5])


def test_steps_past_the_last_time_embedding_share_it(toys: SimpleNamespace) -> None:
    agent, batch = make(toys, timestep="episode", max_timestep=8)
    far, further = (agent(replace(batch, steps=batch.steps + by)) for by in (50, 5000))
    assert torch.equal(far, further)
    assert not torch.allclose(far, agent(batch))


def test_images_are_encoded_with_the_kernels_of_table_5(toys: SimpleNamespace) -> None:
    dataset = toys.random_dataset(images=True)
    agent = make_agent(AgentConfig(algorithm="gcdt"), Spaces.of(dataset))
    shapes = [tuple(p.shape) for name, p in agent.named_parameters() if "convolutions" in name]
    assert shapes[::2] == [(32, 3, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]
