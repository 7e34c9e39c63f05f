"""Bags against the equations taken literally: one token per call, repetition and all."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lanista.agents.config import AgentConfig
from lanista.agents.networks import call_stack
from lanista.agents.networks.call_stack import (
    AttentionSum,
    EmbeddingSum,
    ProjectedSum,
    TraceBags,
    make_call_stack_encoder,
)
from lanista.envs.tracing.trace import CallTrace

FUNCTIONS, DIMENSION, HEADS = 9, 8, 2
TRACES = st.lists(st.lists(st.integers(0, FUNCTIONS - 1), max_size=40), min_size=1, max_size=5)


def bags_of(traces: list[list[int]], padding: int = 0) -> TraceBags:
    bags = [CallTrace(trace).bag() for trace in traces]
    width = max(1, *(len(ids) for ids, _ in bags)) + padding
    ids, counts = np.zeros((len(bags), width), np.int64), np.zeros((len(bags), width), np.float32)
    for row, (distinct, times) in enumerate(bags):
        ids[row, : len(distinct)], counts[row, : len(distinct)] = distinct, times
    return TraceBags(torch.from_numpy(ids), torch.from_numpy(counts))


def emb_oracle(encoder: nn.Module, trace: list[int]) -> Tensor:
    """Equation 7."""
    return sum((encoder.embedding.weight[call] for call in trace), torch.zeros(DIMENSION).double())


def linear_oracle(encoder: nn.Module, trace: list[int]) -> Tensor:
    """Equation 8."""
    weight = encoder.projection.weight
    return sum(
        (weight @ encoder.embedding.weight[call] for call in trace), torch.zeros(DIMENSION).double()
    )


def mhsa_oracle(encoder: nn.Module, trace: list[int]) -> Tensor:
    """Equation 9, by PyTorch's own attention over all calls."""
    if not trace:
        return torch.zeros(DIMENSION).double()
    tokens = encoder.embedding.weight[torch.tensor(trace)][:, None]
    projections = (encoder.query, encoder.key, encoder.value)
    attended, _ = nn.functional.multi_head_attention_forward(
        tokens,
        tokens,
        tokens,
        DIMENSION,
        HEADS,
        torch.cat([layer.weight for layer in projections]),
        torch.cat([layer.bias for layer in projections]),
        None,
        None,
        False,
        0.0,
        encoder.output.weight,
        encoder.output.bias,
    )
    return attended.sum((0, 1))


ENCODERS: list[tuple[Callable[[], nn.Module], Callable[[nn.Module, list[int]], Tensor]]] = [
    (lambda: EmbeddingSum(FUNCTIONS, DIMENSION), emb_oracle),
    (lambda: ProjectedSum(FUNCTIONS, DIMENSION), linear_oracle),
    (lambda: AttentionSum(FUNCTIONS, DIMENSION, HEADS), mhsa_oracle),
]


@pytest.mark.parametrize("limit", [call_stack.DENSE_LIMIT, 0], ids=["dense", "padded"])
@pytest.mark.parametrize(("make", "oracle"), ENCODERS, ids=["emb", "linear", "mhsa"])
@settings(deadline=None, max_examples=40)
@given(traces=TRACES, seed=st.integers(0, 1000), padding=st.integers(0, 3))
def test_bags_equal_one_token_per_call(
    make: Callable[[], nn.Module],
    oracle: Callable[[nn.Module, list[int]], Tensor],
    limit: int,
    traces: list[list[int]],
    seed: int,
    padding: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_stack, "DENSE_LIMIT", limit)
        torch.manual_seed(seed)
        encoder = make().double()
        mixing = torch.randn(len(traces), DIMENSION, dtype=torch.float64)
        gradients = []
        outputs = []
        for encode in (
            lambda: encoder(bags_of(traces, padding)),
            lambda: torch.stack([oracle(encoder, trace) for trace in traces]),
        ):
            encoder.zero_grad()
            output = encode()
            nothing = sum(0 * parameter.sum() for parameter in encoder.parameters())
            ((output * mixing).sum() + nothing).backward()
            outputs.append(output.detach())
            gradients.append([parameter.grad for parameter in encoder.parameters()])
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-9, atol=1e-10)
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-9)


def test_the_two_ways_agree_in_float32_on_traces_as_long_as_crafters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    traces = [rng.zipf(1.3, 600).clip(max=100).tolist() for _ in range(6)] + [[], [3]]
    torch.manual_seed(0)
    encoder = AttentionSum(128, 128, 2)
    exact = AttentionSum(128, 128, 2).double()
    exact.load_state_dict({name: value.double() for name, value in encoder.state_dict().items()})
    bags = bags_of(traces)
    for limit in (call_stack.DENSE_LIMIT, 0):
        monkeypatch.setattr(call_stack, "DENSE_LIMIT", limit)
        found = encoder(bags)
        assert torch.equal(found[-2], torch.zeros(128))
        error = (found.double() - exact(bags)).norm() / exact(bags).norm()
        assert error < 1e-5


def test_far_apart_scores_stay_finite() -> None:
    torch.manual_seed(0)
    encoder = AttentionSum(FUNCTIONS, DIMENSION, HEADS)
    with torch.no_grad():
        encoder.embedding.weight.mul_(300)
    output = encoder(bags_of([[0, 1, 1], [2], [], [5] * 30_000]))
    output.sum().backward()
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())


def test_leading_shape_is_kept() -> None:
    bags = bags_of([[1, 1], [2], [], [3, 4]])
    folded = TraceBags(bags.ids.view(2, 2, -1), bags.counts.view(2, 2, -1))
    for name in ("emb", "linear", "mhsa"):
        config = AgentConfig(call_stack=name, dimension=8)
        encoder = make_call_stack_encoder(config, FUNCTIONS)
        assert encoder is not None
        torch.testing.assert_close(encoder(folded).flatten(0, 1), encoder(bags))
