"""How agents read and give actions: one of several, or numbers on a scale from -1 to 1."""

import math

import torch
from torch import Tensor, nn

from lanista.agents.config import Spaces


class ActionScale(nn.Module):
    """Puts an action's numbers on a scale from -1 to 1 between their bounds, and back.

    A number that lacks a bound is left as it is.
    """

    bounded: Tensor
    middle: Tensor
    reach: Tensor

    def __init__(self, spaces: Spaces) -> None:
        super().__init__()
        pairs = list(zip(spaces.action_low, spaces.action_high, strict=True))
        bounded = [math.isfinite(low) and math.isfinite(high) for low, high in pairs]
        ends = [pair if both else (-1.0, 1.0) for pair, both in zip(pairs, bounded, strict=True)]
        # They follow from the bounds, so a checkpoint's weights need not hold them.
        for name, values in (
            ("bounded", bounded),
            ("middle", [(low + high) / 2 for low, high in ends]),
            ("reach", [(high - low) / 2 for low, high in ends]),
        ):
            self.register_buffer(name, torch.tensor(values), persistent=False)

    def to_unit(self, actions: Tensor) -> Tensor:
        """Return actions ``[..., dims]`` on the scale."""
        return (actions - self.middle) / self.reach

    def from_unit(self, actions: Tensor) -> Tensor:
        """Return actions ``[..., dims]`` in the game's own units."""
        return actions * self.reach + self.middle


class ActionReader(nn.Module):
    """Embeds an action made of numbers, ``float32[..., dims]`` to ``[..., width]``."""

    def __init__(self, spaces: Spaces, width: int) -> None:
        super().__init__()
        self.scale = ActionScale(spaces)
        self.layer = nn.Linear(len(spaces.action_low), width)

    def forward(self, actions: Tensor) -> Tensor:
        """Embed actions in the game's own units."""
        embedded: Tensor = self.layer(self.scale.to_unit(actions))
        return embedded


class ActionGiver(nn.Module):
    """Gives the numbers of an action on the scale, ``[..., width]`` to ``[..., dims]``.

    Numbers that have both bounds pass a tanh, so that they never leave them.
    """

    def __init__(self, spaces: Spaces, width: int) -> None:
        super().__init__()
        self.scale = ActionScale(spaces)
        self.layer = nn.Linear(width, len(spaces.action_low))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the action, on the scale."""
        given: Tensor = self.layer(hidden)
        return torch.where(self.scale.bounded, torch.tanh(given), given)


def make_action_reader(spaces: Spaces, width: int) -> nn.Module:
    """Make what embeds the actions of a game."""
    return ActionReader(spaces, width) if spaces.continuous else nn.Embedding(spaces.actions, width)


def make_action_head(spaces: Spaces, width: int) -> nn.Module:
    """Make what gives logits of discrete actions, or an action's numbers on the scale."""
    return ActionGiver(spaces, width) if spaces.continuous else nn.Linear(width, spaces.actions)
