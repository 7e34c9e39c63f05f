"""Makes the tests' own game importable by name, here and in the processes that tests start."""

import sys
from pathlib import Path

GAMES = str(Path(__file__).parent / "games")
if GAMES not in sys.path:
    sys.path.insert(0, GAMES)
