"""Crafter, registered as ``lanista/Crafter-v0``."""

import gymnasium

from lanista.envs.crafter.environment import Crafter

__all__ = ["Crafter"]

if "lanista/Crafter-v0" not in gymnasium.registry:
    gymnasium.register(
        id="lanista/Crafter-v0", entry_point="lanista.envs.crafter.environment:Crafter"
    )
