"""Run the command line with ``python -m lanista.platform.cli``."""

from lanista.platform.cli.app import main

main()
