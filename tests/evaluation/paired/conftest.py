from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import pytest

from lanista.league.record import FRAME_COLUMNS

Row = tuple[str, str, int, float]
MakeFrame = Callable[..., pd.DataFrame]


@pytest.fixture
def make_frame() -> MakeFrame:
    """Make a ledger's table of rows (player in seat 0, in seat 1, world, points of seat 0)."""

    def make(rows: Iterable[Row], **columns: Any) -> pd.DataFrame:
        table = [
            {
                "episode_id": f"e{number}",
                "world": world,
                "repeat": 0,
                "player0": one,
                "player1": other,
                "kind0": "reactive",
                "kind1": "reactive",
                "ending": "normal",
                "points0": points,
                "points1": 1 - points,
                "fingerprint": f"w{world}",
                "recorded": number,
            }
            for number, (one, other, world, points) in enumerate(rows)
        ]
        return pd.DataFrame(table, columns=list(FRAME_COLUMNS)).assign(**columns)

    return make
