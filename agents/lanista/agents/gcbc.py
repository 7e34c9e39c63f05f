"""GC-BC: goal-conditioned behavioural cloning, ``pi(a | s, s_code, g)`` (losses 1 and 2)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from lanista.agents.agent import Agent
from lanista.agents.batches import Batch
from lanista.agents.config import AgentConfig, Spaces
from lanista.agents.networks.action import make_action_head
from lanista.agents.networks.call_stack import TraceBags, make_call_stack_encoder
from lanista.agents.networks.observation import make_observation_encoder


class GoalBehaviouralCloning(Agent):
    """Goal embedding, call-stack embedding and state representation, concatenated, then an MLP.

    The call-stack embedding passes a layer norm first: it is a sum over hundreds of calls, and
    over tens of thousands at reset.
    """

    def __init__(self, config: AgentConfig, spaces: Spaces) -> None:
        super().__init__(config, spaces)
        self.goal = nn.Embedding(spaces.goals, config.dimension)
        self.state = make_observation_encoder(config, spaces, config.state_dimension)
        self.call_stack = make_call_stack_encoder(config, spaces.functions)
        width = config.dimension + config.state_dimension
        if self.call_stack is not None:
            self.call_stack_norm = nn.LayerNorm(config.dimension)
            width += config.dimension
        layers: list[nn.Module] = []
        for before, after in pairwise((width, *config.mlp_hidden)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.head = make_action_head(spaces, (width, *config.mlp_hidden)[-1])

    def forward(self, batch: Batch) -> Tensor:
        """Return logits, or the action, at every row; see :meth:`Agent.forward`."""
        goals = batch.goals[:, None].expand(batch.valid.shape)
        return self.outputs(batch.observations, batch.bags, goals)

    def outputs(self, observations: Tensor, bags: TraceBags | None, goals: Tensor) -> Tensor:
        """Return logits, or the action, ``[..., outputs]`` for states of any leading shape."""
        parts = [torch.relu(self.state(observations)), self.goal(goals)]
        if self.call_stack is not None:
            assert bags is not None, "a code-aware agent needs the call traces"
            parts.append(self.call_stack_norm(self.call_stack(bags)))
        outputs: Tensor = self.head(self.hidden(torch.cat(parts, dim=-1)))
        return outputs
