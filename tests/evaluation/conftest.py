"""Makes the tests' own games importable by name, here and in the processes that tests start."""

import sys
from pathlib import Path

for games in (Path(__file__).parent / "games", Path(__file__).parents[1] / "data" / "games"):
    if str(games) not in sys.path:
        sys.path.insert(0, str(games))
