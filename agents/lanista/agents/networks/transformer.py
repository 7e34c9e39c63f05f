"""A causal transformer in the manner of GPT: pre-norm blocks, GELU, dropout."""

from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each on a residual branch."""

    def __init__(self, dimension: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(dimension)
        self.attention_in = nn.Linear(dimension, 3 * dimension)
        self.attention_out = nn.Linear(dimension, dimension)
        self.feed_norm = nn.LayerNorm(dimension)
        self.feed_in = nn.Linear(dimension, 4 * dimension)
        self.feed_out = nn.Linear(4 * dimension, dimension)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map ``[batch, tokens, dimension]`` to the same shape; token i sees tokens 0 to i."""
        tokens = tokens + self._drop(self._attend(self.attention_norm(tokens)))
        hidden = functional.gelu(self.feed_in(self.feed_norm(tokens)))
        return tokens + self._drop(self.feed_out(hidden))

    def _attend(self, tokens: Tensor) -> Tensor:
        parts = self.attention_in(tokens).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        result: Tensor = self.attention_out(attended.transpose(1, 2).flatten(-2))
        return result

    def _drop(self, branch: Tensor) -> Tensor:
        return functional.dropout(branch, self.dropout, self.training)


class CausalTransformer(nn.Module):
    """Dropout on the tokens, then blocks, then a last layer norm."""

    def __init__(self, dimension: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dimension, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dimension)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map ``[batch, tokens, dimension]`` to the same shape; token i sees tokens 0 to i."""
        hidden = self.drop(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        normed: Tensor = self.norm(hidden)
        return normed
