"""How much faster than stock Crafter, at equal observations."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_at_least_seven_times_stock_crafter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.crafter", "--json", "--rounds", "4"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["resets"] > 4
    assert result["ratio"]["stock"]["whole"] >= 7
    assert result["ratio"]["stock+numba"]["whole"] > 2.5
