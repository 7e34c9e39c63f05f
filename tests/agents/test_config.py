"""Configurations: Table 5's values by default, and every problem named at once."""

import math

import pytest

from lanista.agents.agent import make_agent
from lanista.agents.config import AgentConfig, Spaces, TrainConfig
from lanista.envs.errors import InputError


def test_defaults_are_those_of_table_5() -> None:
    agent, train = AgentConfig(), TrainConfig()
    assert (agent.dimension, agent.layers, agent.heads, agent.dropout) == (128, 2, 2, 0.1)
    assert (agent.context, agent.call_stack_heads, agent.vector_hidden) == (10, 2, 1024)
    assert agent.image_channels == (32, 64, 64)
    assert (train.batch_size, train.steps, train.learning_rate) == (128, 10_000, 3e-4)
    assert (train.betas, train.weight_decay, train.gradient_clip) == ((0.9, 0.95), 0.1, 1.0)


def test_learning_rate_rises_then_falls_as_a_cosine() -> None:
    train = TrainConfig(steps=1000, warmup_share=0.1, learning_rate=1.0)
    assert train.learning_rate_at(0) == pytest.approx(0.01)
    assert train.learning_rate_at(99) == pytest.approx(1.0)
    assert train.learning_rate_at(100) == pytest.approx(1.0)
    assert train.learning_rate_at(550) == pytest.approx(0.5)
    assert train.learning_rate_at(775) == pytest.approx((1 - math.sqrt(0.5)) / 2)
    assert 0 < train.learning_rate_at(999) < 1e-4


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InputError) as refused:
        AgentConfig(
            algorithm="dqn", call_stack="lstm", heads=3, dropout=1.0, context=0, image_kernels=(8,)
        )
    assert len(refused.value.problems) == 6
    assert "agent.heads must divide dimension 128; 3 does not." in refused.value.problems
    with pytest.raises(InputError) as refused:
        TrainConfig(steps=0, learning_rate=math.nan, betas=(0.9, 1.0), threads=0, warmup_share=2)
    assert len(refused.value.problems) == 5


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        ((20, 64, 3), "uint8", "20x64 pixels are too small"),
        ((64, 64, 3), "float32", "cannot be encoded"),
        ((4,), "int64", "cannot be encoded"),
    ],
)
def test_observations_that_no_encoder_fits_are_refused(
    shape: tuple[int, ...], dtype: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        make_agent(AgentConfig(), Spaces(shape, dtype, 4, 5, 2))


def test_names_are_the_papers() -> None:
    assert AgentConfig(algorithm="gcbc").name == "GC-BC Simple"
    assert AgentConfig(algorithm="gcdt", call_stack="mhsa").name == "GC-DT + CA2 (MHSA)"
