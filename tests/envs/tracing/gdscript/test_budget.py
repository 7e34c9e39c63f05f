from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.engine import Engine
from lanista.envs.tracing.gdscript import budget
from lanista.envs.tracing.gdscript.budget import Cost, measure_cost, propose
from lanista.envs.tracing.gdscript.project import script_catalogue
from lanista.envs.tracing.gdscript.scope import GodotScope

Write = Callable[[Path, dict[str, str]], Path]


def cost(ratio: float, calls: dict[str, float]) -> Cost:
    return Cost("step", ratio, ratio, ratio, 3, 700.0, calls)


def test_the_most_called_go_first_and_no_more_than_needed() -> None:
    measured = cost(1.10, {"a:A.hot": 80.0, "a:A.warm": 15.0, "a:A.rare": 5.0})
    assert propose(measured, 12.0).exclude == ()
    assert propose(measured, 3.0).exclude == ("a:A.hot",)
    tight = propose(measured, 1.0)
    assert tight.exclude == ("a:A.hot", "a:A.warm")
    assert tight.percent == pytest.approx(0.5)
    assert tight.kept_calls == pytest.approx(0.05)
    assert measured.us_per_call == pytest.approx(0.7)


@given(
    st.floats(0.9, 3.0),
    st.dictionaries(st.text("abc", min_size=1, max_size=4), st.floats(0.01, 1e4), max_size=8),
    st.floats(0.1, 50.0),
)
def test_a_proposal_stays_under_the_budget(
    ratio: float, calls: dict[str, float], percent: float
) -> None:
    measured = cost(ratio, calls)
    proposal = propose(measured, percent)
    if calls:
        assert proposal.percent <= percent + 1e-6
    left = [count for name, count in calls.items() if name not in proposal.exclude]
    assert all(calls[name] >= max(left, default=0.0) for name in proposal.exclude)
    assert sum(left) == pytest.approx(proposal.kept_calls * sum(calls.values()))


def test_a_budget_of_nothing_is_refused() -> None:
    for percent in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="leaves nothing to record"):
            propose(cost(1.1, {"a": 1.0}), percent)


FILES = {
    "main.gd": (
        "extends Node\nfunc _process(_delta):\n\tfor i in 200:\n\t\thot()\n\trare()\n"
        "func hot():\n\tpass\nfunc rare():\n\tpass\nfunc never():\n\tpass\n"
    ),
    "menu.gd": "extends Node\n",
    "menu.tscn": (
        '[gd_scene load_steps=2 format=3]\n\n[ext_resource type="Script" path="res://menu.gd" '
        'id="1"]\n\n[node name="Menu" type="Node"]\nscript = ExtResource("1")\n'
    ),
}


def test_a_game_that_nobody_plays_is_measured_by_its_frames(
    tmp_path: Path,
    write_project: Write,
    found_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "_FRAME_RUNS", 2)
    source = write_project(tmp_path / "game", FILES)
    measured = measure_cost(source, found_engine, scope=GodotScope())
    assert measured.unit == "frame"
    assert measured.calls == {
        "main:Main._process": 1.0,
        "main:Main.hot": 200.0,
        "main:Main.rare": 1.0,
    }
    assert 0.8 < measured.ratio < 4.0
    excluded = propose(measured, measured.percent / 2 if measured.percent > 0 else 1.0).exclude
    names = {
        item.name for item in script_catalogue(source, scope=GodotScope(exclude=excluded)).functions
    }
    assert not names & set(excluded)


@pytest.mark.slow
def test_a_menu_that_calls_nothing_is_told(
    tmp_path: Path, write_project: Write, found_engine: Engine
) -> None:
    source = write_project(tmp_path / "game", FILES)
    with pytest.raises(RunError, match="name the scene to play with --scene"):
        measure_cost(source, found_engine, scope=GodotScope(), scene="res://menu.tscn")
