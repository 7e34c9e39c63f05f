"""Scripted testers that read a game's state: they record the play that players learn from."""

from lanista.agents.experts.registry import make_tester, tester_hash, tester_names, tester_summary

__all__ = ["make_tester", "tester_hash", "tester_names", "tester_summary"]
