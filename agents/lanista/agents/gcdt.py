"""GC-DT: a decision transformer told which function to reach (CA2 section 4.2, Algorithm 1).

Two things differ from the printed Algorithm 1. It reads the prediction of a_t off a_t's own token,
which would show the network the answer; equation 11 conditions on ``a_<t``, so the prediction is
read off s_t's token. And the layer norm of each modality comes before the time embedding is added:
a call-stack embedding is a sum over hundreds of calls and would drown it.
"""

import torch
from torch import Tensor, nn

from lanista.agents.agent import Agent
from lanista.agents.batches import Batch
from lanista.agents.config import AgentConfig, Spaces
from lanista.agents.networks.action import make_action_head, make_action_reader
from lanista.agents.networks.call_stack import TraceBags, make_call_stack_encoder
from lanista.agents.networks.observation import make_observation_encoder
from lanista.agents.networks.transformer import CausalTransformer


class GoalDecisionTransformer(Agent):
    """Tokens (g, cs_1, s_1, a_1, …, cs_K, s_K, a_K) under a causal transformer.

    A *Simple* agent has no cs tokens. A window shorter than K has its padding at the end, where
    the causal mask hides it from every real token.
    """

    def __init__(self, config: AgentConfig, spaces: Spaces) -> None:
        super().__init__(config, spaces)
        width = config.dimension
        self.goal = nn.Embedding(spaces.goals, width)
        self.state = make_observation_encoder(config, spaces, width)
        self.action = make_action_reader(spaces, width)
        self.call_stack = make_call_stack_encoder(config, spaces.functions)
        times = config.context if config.timestep == "context" else config.max_timestep
        self.time = nn.Embedding(times, width)
        self.goal_norm = nn.LayerNorm(width)
        self.state_norm = nn.LayerNorm(width)
        self.action_norm = nn.LayerNorm(width)
        if self.call_stack is not None:
            self.call_stack_norm = nn.LayerNorm(width)
        self.transformer = CausalTransformer(width, config.layers, config.heads, config.dropout)
        self.head = make_action_head(spaces, width)

    def forward(self, batch: Batch) -> Tensor:
        """Return logits, or the action, at every row; see :meth:`Agent.forward`."""
        return self.predict(
            goals=batch.goals,
            states=self.encode_states(batch.observations),
            calls=self.encode_calls(batch.bags),
            actions=batch.actions,
            steps=batch.steps,
        )

    def encode_states(self, observations: Tensor) -> Tensor:
        """Return state tokens without time, ``[..., dimension]``."""
        tokens: Tensor = self.state_norm(self.state(observations))
        return tokens

    def encode_calls(self, bags: TraceBags | None) -> Tensor | None:
        """Return call-stack tokens without time, ``[..., dimension]``; ``None`` if *Simple*."""
        if self.call_stack is None:
            return None
        assert bags is not None, "a code-aware agent needs the call traces"
        tokens: Tensor = self.call_stack_norm(self.call_stack(bags))
        return tokens

    def predict(
        self, *, goals: Tensor, states: Tensor, calls: Tensor | None, actions: Tensor, steps: Tensor
    ) -> Tensor:
        """Return logits, or actions, at every row; those at t depend on no action from t on.

        Args:
            goals: ``int64[batch]``.
            states: State tokens, ``[batch, context, dimension]``.
            calls: Call-stack tokens alike, or ``None``.
            actions: ``int64[batch, context]``, or ``float32[batch, context, dims]``.
            steps: Steps within the episode, ``int64[batch, context]``.
        """
        time = self._times(steps)
        goal = self.goal_norm(self.goal(goals))[:, None]
        step_tokens = [] if calls is None else [calls]
        step_tokens += [states, self.action_norm(self.action(actions))]
        in_front = self.config.goal_tokens == "front"
        if not in_front:
            step_tokens.insert(0, goal.expand_as(states))
        per_step = len(step_tokens)
        tokens = (torch.stack(step_tokens, dim=2) + time[:, :, None]).flatten(1, 2)
        if in_front:
            tokens = torch.cat([goal + time[:, :1], tokens], dim=1)
        hidden = self.transformer(tokens)
        by_step = hidden[:, int(in_front) :].unflatten(1, (-1, per_step))
        outputs: Tensor = self.head(by_step[:, :, -2])
        return outputs

    def _times(self, steps: Tensor) -> Tensor:
        if self.config.timestep == "context":
            places = torch.arange(steps.shape[1], device=steps.device).expand_as(steps)
        else:
            places = steps.clamp_max(self.config.max_timestep - 1)
        times: Tensor = self.time(places)
        return times
