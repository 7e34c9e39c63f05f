"""A checkpoint as a player: it sees observations, traces and a goal, and chooses actions."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lanista.agents.agent import Agent, make_agent
from lanista.agents.checkpoint import MODEL, Checkpoint, load_checkpoint
from lanista.agents.gcbc import GoalBehaviouralCloning
from lanista.agents.gcdt import GoalDecisionTransformer
from lanista.agents.learner import choose_device
from lanista.agents.networks.action import ActionGiver
from lanista.agents.networks.call_stack import TraceBags
from lanista.envs.errors import InputError
from lanista.envs.policy import Memory, Observation
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace

LEAST_OVERLAP = 0.5
"""Share of a code-aware agent's functions that the game must have."""

NAMES_SHOWN = 8


@dataclass(frozen=True)
class Recent:
    """What GC-DT remembers of one lane: its last steps, already encoded.

    Attributes:
        states: State tokens without time, ``float32[steps, dimension]``.
        calls: Call-stack tokens alike; ``None`` for *Simple* agents.
        actions: Actions taken, one per step: ``int64[]``, or ``float32[dims]``.
        first: Step within the episode of the first one.
    """

    states: Tensor
    calls: Tensor | None
    actions: tuple[NDArray[Any], ...]
    first: int


class CheckpointPolicy:
    """The policy of a trained agent (follows ``lanista.envs.policy.Policy``).

    Each lane's action is drawn from the agent's distribution by that lane's own generator (one
    draw a step), or is its likeliest one under ``greedy`` (no draw). An action made of numbers is
    the one that the agent gives (loss 2 has no distribution to draw from). Outputs may differ in
    their last bits with the number of lanes, so equal results need equal lanes.

    Attributes:
        agent: The network.
        goals: Full names of the functions it was trained to reach.
        content_hash: Hash of kind, weights and parameters.
        greedy: Whether it takes the likeliest action.
        dropped_calls: Calls seen so far of functions that the agent does not know.
    """

    def __init__(
        self,
        agent: Agent,
        goals: tuple[str, ...],
        content_hash: str,
        *,
        functions: NDArray[np.int64],
        goal_places: NDArray[np.int64],
        game_catalogue: Catalogue,
        greedy: bool,
    ) -> None:
        """Wrap an agent.

        Args:
            agent: The network, on the device that it is to run on.
            goals: Full names of its goals.
            content_hash: What identifies the player.
            functions: For each function id of the game the agent's id, -1 if it has none.
            goal_places: For each function id of the game the place among the agent's goals, or -1.
            game_catalogue: The game's functions, for messages.
            greedy: Whether to take the likeliest action.
        """
        self.agent = agent.eval()
        self.goals = goals
        self.content_hash = content_hash
        self.greedy = greedy
        self.dropped_calls = 0
        self._functions = functions
        self._goal_places = goal_places
        self._catalogue = game_catalogue
        self._device = next(agent.parameters()).device

    @torch.inference_mode()
    def act(
        self,
        observation: Observation,
        memory: Sequence[Memory],
        rng: Sequence[np.random.Generator],
    ) -> tuple[NDArray[Any], list[Memory]]:
        """Choose an action for each lane; see :meth:`lanista.envs.policy.Policy.act`.

        Raises:
            InputError: If a lane has no goal, or one that the agent was not trained to reach.
        """
        goals = self._goals(observation)
        seen = torch.from_numpy(np.ascontiguousarray(observation.obs)).to(self._device)
        bags = None
        if self.agent.config.call_stack is not None:
            bags = self._bags(observation.call_trace)
        if isinstance(self.agent, GoalDecisionTransformer):
            lanes = self._remember(self.agent, seen, bags, memory)
            outputs = self._latest_outputs(self.agent, lanes, goals)
            actions = self._choose(outputs, observation.legal_mask, rng)
            return actions, [_taken(lane, a) for lane, a in zip(lanes, actions, strict=True)]
        assert isinstance(self.agent, GoalBehaviouralCloning)
        outputs = self.agent.outputs(seen, bags, goals)
        return self._choose(outputs, observation.legal_mask, rng), [None] * len(goals)

    def _goals(self, observation: Observation) -> Tensor:
        if observation.goal is None:
            raise InputError("This player needs a goal; name a function that it is to reach.")
        places = self._goal_places[observation.goal]
        if (places < 0).any():
            name = self._catalogue.name(int(observation.goal[np.argmin(places)]))
            raise InputError(f"This player was not trained to reach {name}; choose another goal.")
        return torch.from_numpy(places).to(self._device)

    def _bags(self, traces: Sequence[CallTrace]) -> TraceBags:
        """Return the lanes' traces in the agent's ids, without the functions it does not know."""
        width = self.agent.spaces.functions
        lanes = np.repeat(np.arange(len(traces)), [len(trace) for trace in traces])
        ids = self._functions[np.concatenate([trace.ids for trace in traces]).astype(np.int64)]
        known = ids >= 0
        self.dropped_calls += int(ids.size - known.sum())
        pairs, counts = np.unique(lanes[known] * width + ids[known], return_counts=True)
        lane = pairs // width
        first = np.searchsorted(lane, np.arange(len(traces)))
        place = np.arange(len(pairs)) - first[lane]
        longest = int(place.max(initial=0)) + 1
        padded_ids = np.zeros((len(traces), longest), dtype=np.int64)
        padded_counts = np.zeros((len(traces), longest), dtype=np.float32)
        padded_ids[lane, place] = pairs % width
        padded_counts[lane, place] = counts
        return TraceBags(
            torch.from_numpy(padded_ids).to(self._device),
            torch.from_numpy(padded_counts).to(self._device),
        )

    def _remember(
        self,
        agent: GoalDecisionTransformer,
        seen: Tensor,
        bags: TraceBags | None,
        memory: Sequence[Memory],
    ) -> list[Recent]:
        """Encode what is new and append it to each lane's memory, which holds K steps at most."""
        states = agent.encode_states(seen)
        calls = agent.encode_calls(bags)
        kept = agent.config.context - 1
        lanes = []
        for lane, before in enumerate(cast("Sequence[Recent | None]", memory)):
            state = states[lane : lane + 1]
            call = None if calls is None else calls[lane : lane + 1]
            if before is None or not kept:
                first = 0 if before is None else before.first + len(before.actions)
                lanes.append(Recent(state, call, (), first))
                continue
            dropped = max(0, len(before.actions) - kept)
            if call is not None and before.calls is not None:
                call = torch.cat([before.calls[dropped:], call])
            lanes.append(
                Recent(
                    states=torch.cat([before.states[dropped:], state]),
                    calls=call,
                    actions=before.actions[dropped:],
                    first=before.first + dropped,
                )
            )
        return lanes

    def _latest_outputs(
        self, agent: GoalDecisionTransformer, lanes: list[Recent], goals: Tensor
    ) -> Tensor:
        """Return the logits of each lane's next action, or the action, ``[lanes, outputs]``."""
        lengths = torch.tensor([len(lane.states) for lane in lanes], device=self._device)
        longest = int(lengths.max())
        # The newest action is not known yet; the causal mask hides whatever stands in its place.
        spaces = agent.spaces
        dims = (len(spaces.action_low),) if spaces.continuous else ()
        kind = np.float32 if spaces.continuous else np.int64
        actions = np.zeros((len(lanes), longest, *dims), dtype=kind)
        for place, lane in enumerate(lanes):
            if lane.actions:
                actions[place, : len(lane.actions)] = np.stack(lane.actions)
        first = torch.tensor([lane.first for lane in lanes], device=self._device)
        calls = None
        if agent.call_stack is not None:
            parts = [lane.calls for lane in lanes if lane.calls is not None]
            calls = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
        outputs = agent.predict(
            goals=goals,
            states=torch.nn.utils.rnn.pad_sequence(
                [lane.states for lane in lanes], batch_first=True
            ),
            calls=calls,
            actions=torch.from_numpy(actions).to(self._device),
            steps=first[:, None] + torch.arange(longest, device=self._device),
        )
        return outputs[torch.arange(len(lanes), device=self._device), lengths - 1]

    def _choose(
        self,
        outputs: Tensor,
        legal_mask: NDArray[np.bool_] | None,
        rng: Sequence[np.random.Generator],
    ) -> NDArray[Any]:
        if isinstance(self.agent.head, ActionGiver):
            spaces = self.agent.spaces
            actions = self.agent.head.scale.from_unit(outputs.float()).cpu().numpy()
            low, high = (np.array(b, np.float32) for b in (spaces.action_low, spaces.action_high))
            clipped: NDArray[np.float32] = np.clip(actions, low, high)
            return clipped
        scores = outputs.double().cpu().numpy()
        if legal_mask is not None:
            scores = np.where(legal_mask, scores, -np.inf)
        if self.greedy:
            return scores.argmax(axis=-1).astype(np.int64)
        return draw_actions(scores, rng)


def draw_actions(
    scores: NDArray[np.float64], rng: Sequence[np.random.Generator]
) -> NDArray[np.int64]:
    """Draw one action a row from the softmax of its scores, by that row's own generator.

    Args:
        scores: ``float64[lanes, actions]``; ``-inf`` is never drawn.
        rng: One generator per lane; each gives one number.
    """
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    sums = weights.cumsum(axis=-1)
    marks = np.array([lane.random() for lane in rng]) * sums[:, -1]
    return (sums <= marks[:, None]).sum(axis=-1).astype(np.int64)


def load_player(
    checkpoint: Path, game_catalogue: Catalogue, device: str = "cpu", greedy: bool = False
) -> CheckpointPolicy:
    """Make a player of a checkpoint, for a game whose function ids may be others.

    Functions are matched by qualified name. Calls of functions that the agent never knew are left
    out of its traces and counted.

    Args:
        checkpoint: A checkpoint's folder, or the folder that a training wrote.
        game_catalogue: The functions of the game to play, as they are recorded there.
        device: ``cpu``, ``cuda`` or ``auto``.
        greedy: Take the likeliest action instead of drawing one.

    Raises:
        InputError: If the checkpoint cannot be read, was trained under another identity scheme,
            has goals that the game lacks, or reads traces of which the game lacks too much.
    """
    loaded = load_checkpoint(checkpoint, optimiser=False)
    functions, goal_places = _map_functions(checkpoint, loaded, game_catalogue)
    agent = make_agent(loaded.agent, loaded.spaces)
    try:
        agent.load_state_dict(dict(loaded.weights))
    except RuntimeError as error:
        raise InputError(
            f"{checkpoint / MODEL} does not hold the weights that its checkpoint.json describes; "
            "take another checkpoint."
        ) from error
    return CheckpointPolicy(
        agent.to(choose_device(device)),
        loaded.goals,
        _content_hash(loaded, greedy=greedy),
        functions=functions,
        goal_places=goal_places,
        game_catalogue=game_catalogue,
        greedy=greedy,
    )


def _map_functions(
    path: Path, loaded: Checkpoint, game: Catalogue
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if loaded.catalogue.scheme != game.scheme:
        raise InputError(
            f"Checkpoint {path} was trained under identity scheme {loaded.catalogue.scheme!r}; "
            f"the game is recorded under {game.scheme!r}. Use the same one."
        )
    here = {function.name: place for place, function in enumerate(game.functions)}
    problems = []
    if missing := [name for name in loaded.goals if name not in here]:
        problems.append(
            f"Checkpoint {path}: {len(missing)} of its {len(loaded.goals)} goals are not functions "
            f"of this game: {_some(missing)}; play the game version it was trained on."
        )
    known = [function.name for function in loaded.catalogue.functions]
    unmapped = [name for name in known if name not in here]
    if loaded.agent.call_stack and len(unmapped) > (1 - LEAST_OVERLAP) * len(known):
        problems.append(
            f"Checkpoint {path}: {len(unmapped)} of the {len(known)} functions in its traces are "
            f"not functions of this game: {_some(unmapped)}; play the game that it was trained on."
        )
    if problems:
        raise InputError(*problems)
    functions = np.full(len(game), -1, dtype=np.int64)
    for place, name in enumerate(known):
        if name in here:
            functions[here[name]] = place
    goal_places = np.full(len(game), -1, dtype=np.int64)
    goal_places[[here[name] for name in loaded.goals]] = np.arange(len(loaded.goals))
    return functions, goal_places


def _content_hash(loaded: Checkpoint, *, greedy: bool) -> str:
    digest = hashlib.sha256()
    parameters = {
        "kind": "checkpoint",
        "agent": asdict(loaded.agent),
        "spaces": asdict(loaded.spaces),
        "catalogue": loaded.catalogue.sha256,
        "goals": loaded.goals,
        "greedy": greedy,
    }
    digest.update(json.dumps(parameters, sort_keys=True).encode())
    for name, tensor in sorted(loaded.weights.items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _taken(lane: Recent, action: NDArray[Any]) -> Recent:
    return Recent(lane.states, lane.calls, (*lane.actions, action), lane.first)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
