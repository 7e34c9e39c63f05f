"""The whole dataset on the device, and batches gathered there."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lanista.agents.networks.call_stack import TraceBags
from lanista.data.dataset import GoalDataset
from lanista.data.sampler import Windows


@dataclass(frozen=True)
class Batch:
    """Windows of rows as an agent reads them. Padding comes last within a window.

    Attributes:
        observations: ``uint8[batch, context, height, width, channels]`` or
            ``float32[batch, context, dims]``.
        bags: The calls that led to each observation; ``None`` for agents that do not read them.
        actions: ``int64[batch, context]``, or ``float32[batch, context, dims]``.
        goals: ``int64[batch]``, positions in the list of goals.
        steps: ``int64[batch, context]``, step of each row within its episode.
        valid: ``bool[batch, context]``, false in the padding.
    """

    observations: Tensor
    bags: TraceBags | None
    actions: Tensor
    goals: Tensor
    steps: Tensor
    valid: Tensor


class ResidentDataset:
    """A dataset's arrays as tensors on one device (on the CPU they are shared, not copied)."""

    def __init__(self, dataset: GoalDataset, device: torch.device, *, traces: bool) -> None:
        """Move the arrays.

        Args:
            dataset: What to move.
            device: Where to.
            traces: Whether the agent reads call traces; without, they stay behind.
        """
        self._device = device
        self._observations = torch.from_numpy(dataset.observations).to(device)
        self._actions = torch.from_numpy(dataset.actions).to(device)
        self._frames = torch.from_numpy(dataset.frame_of_row).to(device)
        self._steps = torch.from_numpy(dataset.step_of_row).to(device)
        self._traces = traces
        if traces:
            # A step of padding after the last bag keeps every gathered index in range.
            longest = dataset.longest_bag
            self._ids = torch.from_numpy(dataset.bag_ids).to(device)
            self._counts = torch.from_numpy(dataset.bag_counts).to(device)
            self._ids = torch.cat([self._ids, self._ids.new_zeros(longest)])
            self._counts = torch.cat([self._counts, self._counts.new_zeros(longest)])
            self._offsets = torch.from_numpy(dataset.bag_offsets).to(device)
            self._places = torch.arange(longest, device=device)

    def gather(self, windows: Windows) -> Batch:
        """Collect what the windows' rows saw and did."""
        rows = torch.from_numpy(windows.rows).to(self._device)
        frames = self._frames[rows]
        return Batch(
            observations=self._observations[frames],
            bags=self._bags(frames) if self._traces else None,
            actions=self._actions[rows],
            goals=torch.from_numpy(windows.goals).to(self._device),
            steps=self._steps[rows],
            valid=torch.from_numpy(windows.valid).to(self._device),
        )

    def _bags(self, frames: Tensor) -> TraceBags:
        start, stop = self._offsets[frames, None], self._offsets[frames + 1, None]
        index = start + self._places
        inside = index < stop
        return TraceBags(
            ids=self._ids[index].long().where(inside, 0),
            counts=self._counts[index].float().where(inside, 0),
        )
