"""The command line."""

from lanista.platform.cli.app import main

__all__ = ["main"]
