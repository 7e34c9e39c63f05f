"""Call-stack encoders on bags: equations 7, 8 and 9 of the CA2 paper without the repetition.

All three sum over the calls of a step and give calls no positions, so their result depends only on
how often each function was called. A step of F calls therefore collapses exactly into its distinct
functions with counts: what a call contributes is computed once per function and multiplied by its
count. Under attention a key that occurs c times has weight ``c * exp(score)``, which is the key
once with ``log(c)`` added to its score.

No dropout goes inside: dropped separately for each call it would make equal calls unequal, and
there would be no bag. GC-DT drops parts of the finished token instead, as of every other token.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lanista.agents.config import AgentConfig

DENSE_LIMIT = 1024
"""Up to this many functions a bag is a row of counts and every sum a matrix product."""

LARGEST_SCORE_GAP = 300.0
"""Scores further below a query's highest are raised to it: ``exp(-300)`` times squared counts still
fits a float64, in the gradient too."""


class TraceBags(NamedTuple):
    """The calls of a batch of steps, each step's padded to the same number of distinct functions.

    Attributes:
        ids: ``int64[..., distinct]``; distinct within a step, 0 in the padding.
        counts: ``float32[..., distinct]``; 0 in the padding.
    """

    ids: Tensor
    counts: Tensor

    def dense(self, functions: int, dtype: torch.dtype) -> Tensor:
        """Return the counts of every function, ``[..., functions]``."""
        counts = torch.zeros((*self.ids.shape[:-1], functions), dtype=dtype, device=self.ids.device)
        return counts.scatter_add_(-1, self.ids, self.counts.to(dtype))


class EmbeddingSum(nn.Module):
    """Equation 7: the sum of the calls' embeddings, ``[..., dimension]``."""

    def __init__(self, functions: int, dimension: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(functions, dimension)

    def forward(self, bags: TraceBags) -> Tensor:
        """Encode each step's calls; no calls give 0."""
        with torch.autocast(bags.ids.device.type, enabled=False):
            return weighted_sum(self.embedding.weight, bags)


class ProjectedSum(nn.Module):
    """Equation 8: the sum of the calls' projected embeddings, ``[..., dimension]``.

    The projection is linear without bias, so it is applied once, to the sum.
    """

    def __init__(self, functions: int, dimension: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(functions, dimension)
        self.projection = nn.Linear(dimension, dimension, bias=False)

    def forward(self, bags: TraceBags) -> Tensor:
        """Encode each step's calls; no calls give 0."""
        with torch.autocast(bags.ids.device.type, enabled=False):
            encoded: Tensor = self.projection(weighted_sum(self.embedding.weight, bags))
            return encoded


class AttentionSum(nn.Module):
    """Equation 9: the sum of the outputs of multi-head self-attention over the calls.

    Query, key and value of a call depend on its function alone, so they are computed once per
    function of the catalogue rather than once per call; the output projection is linear and is
    applied to the sum (its bias once per call).
    """

    def __init__(self, functions: int, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(functions, dimension)
        self.query = nn.Linear(dimension, dimension)
        self.key = nn.Linear(dimension, dimension)
        self.value = nn.Linear(dimension, dimension)
        self.output = nn.Linear(dimension, dimension)

    def forward(self, bags: TraceBags) -> Tensor:
        """Encode each step's calls, ``[..., dimension]``; no calls give 0."""
        with torch.autocast(bags.ids.device.type, enabled=False):
            if self.embedding.num_embeddings <= DENSE_LIMIT:
                pooled = self.pool_dense(bags)
            else:
                pooled = self.pool_padded(bags)
            calls = bags.counts.sum(-1, keepdim=True).to(pooled.dtype)
            return functional.linear(pooled, self.output.weight) + calls * self.output.bias

    def pool_dense(self, bags: TraceBags) -> Tensor:
        """Sum the attention outputs by matrix products over the whole catalogue.

        With ``W[f, g] = exp(score of query f and key g)`` and counts c, function f's softmax has
        the sum ``Z[f] = sum_g W[f, g] c[g]``, and value g gets the total weight
        ``c[g] sum_f (c[f] / Z[f]) W[f, g]``: three products with tables that all steps share.
        They are taken in float64, since the scores are reduced by their maximum over the
        catalogue, not over the step's own functions.
        """
        query, key, value = (part.double() for part in self._tables())
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        gaps = scores - scores.detach().amax(-1, keepdim=True)
        weights = gaps.clamp_min(-LARGEST_SCORE_GAP).exp()
        counts = bags.dense(self.embedding.num_embeddings, torch.float64).flatten(0, -2)
        empty = (counts.sum(-1, keepdim=True) == 0).double()
        share = counts / (counts @ weights.mT + empty)
        pooled = (counts * (share @ weights)) @ value
        flat = pooled.transpose(0, 1).flatten(1)
        return flat.to(self.embedding.weight.dtype).reshape(*bags.ids.shape[:-1], -1)

    def pool_padded(self, bags: TraceBags) -> Tensor:
        """Sum the attention outputs over each step's distinct functions; for large catalogues."""
        ids, counts = bags.ids.flatten(0, -2), bags.counts.flatten(0, -2)
        query, key, value = (part[:, ids].transpose(0, 1) for part in self._tables())
        counts = counts.to(query.dtype)
        # A step without calls attends to its padding evenly; its counts of 0 drop the result.
        nothing = (counts == 0) & (counts.sum(-1, keepdim=True) > 0)
        bias = counts.clamp_min(1).log().masked_fill(nothing, -math.inf)[:, None, None]
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        pooled = (attended * counts[:, None, :, None]).sum(-2)
        return pooled.reshape(*bags.ids.shape[:-1], -1)

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of every function, each ``[heads, functions, head size]``."""
        embedding = self.embedding.weight
        query, key, value = (
            layer(embedding).view(len(embedding), self.heads, -1).transpose(0, 1)
            for layer in (self.query, self.key, self.value)
        )
        return query, key, value


def weighted_sum(table: Tensor, bags: TraceBags) -> Tensor:
    """Return each step's sum of ``count * table[function]``, ``[..., dimension]``."""
    if len(table) <= DENSE_LIMIT:
        return bags.dense(len(table), table.dtype) @ table
    summed = functional.embedding_bag(
        bags.ids.flatten(0, -2),
        table,
        per_sample_weights=bags.counts.flatten(0, -2).to(table.dtype),
        mode="sum",
    )
    return summed.reshape(*bags.ids.shape[:-1], -1)


def make_call_stack_encoder(config: AgentConfig, functions: int) -> nn.Module | None:
    """Make the encoder that ``config.call_stack`` names, ``None`` for a *Simple* agent."""
    if config.call_stack is None:
        return None
    if config.call_stack == "emb":
        return EmbeddingSum(functions, config.dimension)
    if config.call_stack == "linear":
        return ProjectedSum(functions, config.dimension)
    return AttentionSum(functions, config.dimension, config.call_stack_heads)
