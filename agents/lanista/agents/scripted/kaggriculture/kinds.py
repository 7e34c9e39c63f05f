"""The scripted players of kaggriculture; light, since the players themselves load when made."""

from lanista.agents.scripted.registry import ScriptedKind

KINDS: tuple[ScriptedKind, ...] = ()
