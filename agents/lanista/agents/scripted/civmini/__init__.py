"""Scripted players of civmini."""
