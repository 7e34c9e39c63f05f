"""The whole way: a real traced copy of a godot-rl game, played by the client."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanista.envs.tracing.gdscript import budget
from lanista.envs.tracing.gdscript.budget import measure_cost
from lanista.envs.tracing.gdscript.project import instrument_project
from lanista.envs.tracing.gdscript.scope import GodotScope

Go = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize("sync", ["sync_three", "sync_seven"])
def test_the_client_gets_the_trace_of_each_step(
    games: Any, go: Go, tmp_path: Path, sync: str
) -> None:
    source = games.project(sync, bridge=False)
    made = instrument_project(source, tmp_path / "copy")
    assert made.skipped == ()
    client = games.start(made.path)

    def names(ids: Any) -> list[str]:
        return [made.catalogue.name(int(number)).rpartition(".")[2] for number in ids]

    assert client.bridged
    assert "_ready" in names(client.startup_trace)
    client.reset(seed=1)
    for _ in range(3):
        frame = client.step(go(1.0))
        called = names(frame.traces[0])
        assert called.count("set_action") == 1
        assert called.count("get_obs") == 1
        assert called.index("set_action") < called.index("_physics_process")
        assert "_ready" not in called
    again = games.start(made.path)
    again.reset(seed=1)
    first = [again.step(go(1.0)).traces[0] for _ in range(3)]
    assert np.array_equal(first[-1], frame.traces[0])


def test_hooks_change_nothing_that_an_agent_sees(games: Any, go: Go, tmp_path: Path) -> None:
    source = games.project("sync_seven", bridge=False, runners=2)
    seen = []
    for name, scope in (("traced", GodotScope()), ("bare", GodotScope(exclude=("*",)))):
        made = instrument_project(source, tmp_path / name, scope=scope)
        client = games.start(made.path)
        frames = [client.reset(seed=5), *(client.step(go(0.5, 2)) for _ in range(30))]
        assert all((len(frame.traces[0]) > 0) == (name == "traced") for frame in frames)
        seen.append([{**part} for frame in frames for part in frame.obs])
    for one, other in zip(*seen, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.slow
def test_a_godot_rl_game_is_measured_by_its_steps(
    games: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_BLOCK_S", 0.01)
    source = games.project("sync_seven", bridge=False, runners=2)
    cost = measure_cost(source, games.engine, scope=GodotScope(), seconds=0.1)
    assert cost.unit == "step"
    assert cost.rounds >= 3
    assert 0.5 < cost.ratio < 3.0
    assert cost.low <= cost.high
    assert cost.untraced_us > 1.0
    acting = {name.rpartition(".")[2]: count for name, count in cost.calls.items()}
    assert acting["set_action"] == pytest.approx(2.0, abs=0.5)
