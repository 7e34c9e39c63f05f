"""One gradient update, one look at held-out rows, and all the state that both need."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lanista.agents.agent import Agent, make_agent
from lanista.agents.batches import Batch, ResidentDataset
from lanista.agents.checkpoint import Checkpoint
from lanista.agents.config import AgentConfig, Spaces, TrainConfig
from lanista.agents.networks.action import ActionGiver
from lanista.data.dataset import GoalDataset
from lanista.data.sampler import HindsightSampler, Windows, last_calls
from lanista.envs.errors import InputError

BATCH_STREAM, VALIDATION_STREAM = 1, 2


@dataclass(frozen=True)
class Measures:
    """What one update or one look was like.

    Attributes:
        loss: Mean negative log-likelihood of the recorded actions, in nats (loss 1); where an
            action is made of numbers, the mean squared distance from it on the scale of -1 to 1
            (loss 2).
        accuracy: Share of rows whose likeliest action is the recorded one; ``None`` where an
            action is made of numbers.
        gradient_norm: Before clipping; 0 where there was no update.
        rows: Rows learned from or looked at.
    """

    loss: float
    accuracy: float | None
    gradient_norm: float
    rows: int


class BadUpdate(Exception):  # noqa: N818
    """An update whose loss or gradient is not a finite number.

    Attributes:
        what: ``loss`` or ``gradient``.
        value: What it is instead.
        rows: Rows of the dataset that caused it.
    """

    def __init__(self, what: str, value: float, rows: NDArray[np.int64]) -> None:
        super().__init__(what)
        self.what = what
        self.value = value
        self.rows = rows


class Learner:
    """An agent, its optimiser and its data on one device.

    Dropout draws from PyTorch's global generator; who runs a learner seeds it and puts it back.

    Attributes:
        agent: The network being trained.
        update: Updates done.
        rows: Rows learned from so far, repetitions counted.
    """

    def __init__(
        self,
        agent: AgentConfig,
        train: TrainConfig,
        dataset: GoalDataset,
        validation: GoalDataset | None = None,
    ) -> None:
        """Make the agent from ``train.seed`` and move the data to the device.

        Raises:
            InputError: If the device is not there, or the held-out episodes do not fit.
        """
        self.config = train
        self.device = choose_device(train.device)
        self.dtype = choose_dtype(train, self.device)
        self.agent: Agent = make_agent(agent, Spaces.of(dataset), train.seed).to(self.device)
        self.optimiser = make_optimiser(self.agent, train)
        self.update = 0
        self.rows = 0
        self._sampler = HindsightSampler(dataset, agent.window)
        self._rng = _generator(train.seed, BATCH_STREAM)
        traces = agent.call_stack is not None
        self._resident = ResidentDataset(dataset, self.device, traces=traces)
        self._validation: tuple[HindsightSampler, ResidentDataset] | None = None
        if validation is not None:
            _check_alike(dataset, validation)
            # Held-out episodes are few; where none of them reaches a goal there is nothing to see.
            if (last_calls(validation) >= 0).any():
                self._validation = (
                    HindsightSampler(validation, agent.window),
                    ResidentDataset(validation, self.device, traces=traces),
                )

    def step(self) -> Measures:
        """Do one update.

        Raises:
            BadUpdate: If loss or gradient is not finite; the weights are then as before.
        """
        windows = self._sampler.sample(self._rng, self.config.batch_size)
        batch = self._resident.gather(windows)
        rate = self.config.learning_rate_at(self.update)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.agent.train()
        losses, hits = self._losses(batch)
        count = batch.valid.sum()
        loss = losses.sum() / count
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.agent.parameters(), self.config.gradient_clip)
        # One transfer brings all three numbers, which makes checking every update cheap.
        shares = [] if hits is None else [hits.sum() / count]
        values = torch.stack([loss.detach(), norm, *shares]).tolist()
        for what, value in zip(("loss", "gradient"), values[:2], strict=True):
            if not math.isfinite(value):
                raise BadUpdate(what, value, _culprits(windows, losses.detach()))
        self.optimiser.step()
        self.update += 1
        rows = int(windows.valid.sum())
        self.rows += rows
        return Measures(values[0], None if hits is None else values[2], values[1], rows)

    @torch.no_grad()
    def validate(self) -> Measures | None:
        """Look at held-out rows, the same ones each time; ``None`` if no goal is reached in any."""
        if self._validation is None:
            return None
        sampler, resident = self._validation
        rng = _generator(self.config.seed, VALIDATION_STREAM)
        self.agent.eval()
        loss, right, rows = 0.0, 0.0, 0
        for _ in range(self.config.validation_batches):
            windows = sampler.sample(rng, self.config.batch_size)
            losses, hits = self._losses(resident.gather(windows))
            loss += losses.sum().item()
            right += 0.0 if hits is None else hits.sum().item()
            rows += int(windows.valid.sum())
        accuracy = None if self.agent.spaces.continuous else right / rows
        return Measures(loss / rows, accuracy, 0.0, rows)

    def state(self) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
        """Return the optimiser's and PyTorch's state as tensors, and the sampler's as JSON."""
        tensors = {
            f"{kind}/{name}": tensor
            for name, parameter in self.agent.named_parameters()
            for kind, tensor in self.optimiser.state[parameter].items()
        }
        tensors["rng/cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["rng/cuda"] = torch.cuda.get_rng_state(self.device)
        return tensors, self._rng.bit_generator.state

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint of this same learner, generators included.

        Raises:
            InputError: If the checkpoint's tensors are not this agent's.
        """
        try:
            self.agent.load_state_dict(dict(checkpoint.weights))
            for name, parameter in self.agent.named_parameters():
                self.optimiser.state[parameter] = {
                    kind: self._moment(checkpoint.optimiser[f"{kind}/{name}"], kind)
                    for kind in ("step", "exp_avg", "exp_avg_sq")
                }
            torch.set_rng_state(checkpoint.optimiser["rng/cpu"])
            if self.device.type == "cuda" and "rng/cuda" in checkpoint.optimiser:
                torch.cuda.set_rng_state(checkpoint.optimiser["rng/cuda"], self.device)
            self._rng.bit_generator.state = dict(checkpoint.sampler_rng)
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise InputError(f"The checkpoint does not fit its agent: {error}.") from error
        self.update = checkpoint.update
        self.rows = checkpoint.rows

    def _moment(self, tensor: Tensor, kind: str) -> Tensor:
        # AdamW keeps its step counts on the CPU; a copy leaves the checkpoint's tensor alone.
        return tensor.clone() if kind == "step" else tensor.to(self.device, copy=True)

    def _losses(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the loss of each row, and whether its likeliest action is right.

        Both are 0 in the padding; the second is ``None`` where an action is made of numbers.
        """
        enabled = self.dtype != torch.float32
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=enabled):
            outputs = self.agent(batch)
        outputs = outputs.float()
        if isinstance(self.agent.head, ActionGiver):
            wanted = self.agent.head.scale.to_unit(batch.actions)
            return (outputs - wanted).square().sum(-1).where(batch.valid, 0.0), None
        losses = functional.cross_entropy(
            outputs.flatten(0, 1), batch.actions.flatten(), reduction="none"
        ).view_as(batch.valid)
        hits = (outputs.argmax(-1) == batch.actions) & batch.valid
        return losses.where(batch.valid, 0.0), hits


def make_optimiser(agent: Agent, train: TrainConfig) -> torch.optim.AdamW:
    """Make AdamW that decays matrices and kernels, not biases, norms and embeddings."""
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for module in agent.modules():
        for name, parameter in module.named_parameters(recurse=False):
            weighs = name == "weight" and isinstance(module, nn.Linear | nn.Conv2d)
            (decayed if weighs else spared).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": train.weight_decay},
            {"params": spared, "weight_decay": 0.0},
        ],
        lr=train.learning_rate,
        betas=train.betas,
    )


def choose_device(name: str) -> torch.device:
    """Return the device that ``name`` means; ``auto`` is a GPU where there is one.

    Raises:
        InputError: If there is no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise InputError(f"Device {name!r} is not supported; take cpu or cuda.")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"Device {name!r} is not here; take cpu or auto.") from error
    return device


def choose_dtype(train: TrainConfig, device: torch.device) -> torch.dtype:
    """Return the type that networks compute in; weights and moments stay float32."""
    if train.precision == "auto":
        able = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if able else torch.float32
    return torch.bfloat16 if train.precision == "bfloat16" else torch.float32


def _generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, stream, 0]))


def _culprits(windows: Windows, losses: Tensor) -> NDArray[np.int64]:
    """Return the rows whose own loss is not finite, or the whole batch if all are."""
    bad = ~torch.isfinite(losses).cpu().numpy() & windows.valid
    return np.unique(windows.rows[bad if bad.any() else windows.valid])


def _check_alike(dataset: GoalDataset, validation: GoalDataset) -> None:
    if (
        Spaces.of(dataset) != Spaces.of(validation)
        or dataset.catalogue != validation.catalogue
        or not np.array_equal(dataset.goals, validation.goals)
    ):
        raise InputError(
            "The held-out episodes have other observations, actions, goals or functions than the "
            "ones to train on; make both from one recording."
        )
