"""Protocols, statistics and reports."""
