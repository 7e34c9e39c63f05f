"""Trained agents as the protocol's players."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lanista.envs.policy import Policy
from lanista.envs.tracing.catalogue import Catalogue

if TYPE_CHECKING:
    from lanista.agents.player import CheckpointPolicy


@dataclass(frozen=True)
class CheckpointMaker:
    """Makes the policy of a checkpoint in whichever process it is called; it pickles.

    Attributes:
        checkpoint: The checkpoint's folder, reachable from every worker.
        device: ``cpu``, ``cuda`` or ``auto``.
        greedy: Take the likeliest action instead of drawing one.
    """

    checkpoint: Path
    device: str = "cpu"
    greedy: bool = False

    def __call__(self, catalogue: Catalogue) -> Policy:
        """Load the player.

        Raises:
            InputError: If the checkpoint is broken or does not fit the game.
        """
        return self.load(catalogue)

    def load(self, catalogue: Catalogue) -> "CheckpointPolicy":
        """Load the player with what else it knows: its hash and the goals it was trained for."""
        import torch

        from lanista.agents.player import load_player

        # Sums come out otherwise with another number of threads; workers share the cores anyway.
        torch.set_num_threads(1)
        return load_player(self.checkpoint, catalogue, device=self.device, greedy=self.greedy)
