"""The scripted players of civmini; light, since the players themselves load when made."""

from lanista.agents.scripted.registry import ScriptedKind

KINDS: tuple[ScriptedKind, ...] = ()
