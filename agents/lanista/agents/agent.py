"""What every learning agent offers, and how one is made from its configuration."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from lanista.agents.batches import Batch
from lanista.agents.config import AgentConfig, Spaces


class Agent(nn.Module, ABC):
    """A goal-conditioned policy network.

    Attributes:
        config: Its architecture.
        spaces: What goes in and comes out.
    """

    def __init__(self, config: AgentConfig, spaces: Spaces) -> None:
        super().__init__()
        self.config = config
        self.spaces = spaces

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return what the agent would do at every row.

        Returns:
            Logits, ``[batch, context, actions]``, or where an action is made of numbers the
            action itself on the scale of :class:`lanista.agents.networks.action.ActionScale`,
            ``[batch, context, dims]``.
        """

    def initialise(self) -> None:
        """Draw the weights from PyTorch's generator.

        Convolutions and linear layers keep PyTorch's own rule; embeddings are drawn with a
        standard deviation of ``1 / sqrt(dimension)``, so that a sum over hundreds of calls starts
        at the size of a few tokens rather than of hundreds.
        """
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.embedding_dim))


def make_agent(config: AgentConfig, spaces: Spaces, seed: int = 0) -> Agent:
    """Make an agent with weights drawn from ``seed``; PyTorch's global generator is left alone.

    Raises:
        InputError: If the agent cannot read such observations.
    """
    from lanista.agents.gcbc import GoalBehaviouralCloning
    from lanista.agents.gcdt import GoalDecisionTransformer

    kinds = {"gcbc": GoalBehaviouralCloning, "gcdt": GoalDecisionTransformer}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        agent = kinds[config.algorithm](config, spaces)
        agent.initialise()
    return agent
