"""Scripted league players: they act from observations alone."""
