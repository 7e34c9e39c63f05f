"""Players: networks, learners, experts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanista.agents.agent import Agent, make_agent
    from lanista.agents.checkpoint import (
        Checkpoint,
        latest_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from lanista.agents.config import AgentConfig, Spaces, TrainConfig
    from lanista.agents.player import CheckpointPolicy, load_player
    from lanista.agents.policies import RandomPolicy
    from lanista.agents.training import TrainResult, train

_HOMES = {
    "Agent": "agent",
    "AgentConfig": "config",
    "Checkpoint": "checkpoint",
    "CheckpointPolicy": "player",
    "RandomPolicy": "policies",
    "Spaces": "config",
    "TrainConfig": "config",
    "TrainResult": "training",
    "latest_checkpoint": "checkpoint",
    "load_checkpoint": "checkpoint",
    "load_player": "player",
    "make_agent": "agent",
    "save_checkpoint": "checkpoint",
    "train": "training",
}

__all__ = [
    "Agent",
    "AgentConfig",
    "Checkpoint",
    "CheckpointPolicy",
    "RandomPolicy",
    "Spaces",
    "TrainConfig",
    "TrainResult",
    "latest_checkpoint",
    "load_checkpoint",
    "load_player",
    "make_agent",
    "save_checkpoint",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the room stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
