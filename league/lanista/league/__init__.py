"""Matches, the ledger, opponent pools and ratings."""
