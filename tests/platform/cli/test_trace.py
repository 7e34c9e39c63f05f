"""``lanista trace`` on real Crafter and the robot, and its refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from lanista.platform.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["trace", *arguments])
    printed = capsys.readouterr()
    return int(stopped.value.code or 0), printed.out, printed.err


def test_the_json_holds_the_fixed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("crafter", "--world", "7", "--steps", "60", "--json", "--no-overhead")
    code, out, _ = run(capsys, *arguments)
    value: dict[str, Any] = json.loads(out)
    assert code == 0
    assert value["steps"] == 60
    total = sum(row["calls"] for row in value["functions"])
    assert value["calls_per_step"]["mean"] == pytest.approx(total / 60)
    goals = [row for row in value["functions"] if row["goal"]]
    assert value["goals"] == len(goals) > 10
    assert all(0 < row["step_share"] < 1 for row in goals)
    assert json.loads(run(capsys, *arguments)[1]) == value


def test_the_table_and_the_overhead(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    patterns = tmp_path / "patterns.txt"
    patterns.write_text("# what matters\nPlayer.update\nEnv.step\n")
    code, out, error = run(capsys, "crafter", "--steps", "5", "--only", str(patterns))
    assert code == 0, error
    assert "2 of 2 functions" in out
    assert "interleaved" in out


def test_a_game_in_another_program_says_where_its_overhead_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("robot", "--world", "3", "--steps", "30")
    code, out, error = run(capsys, *arguments)
    assert code == 0, error
    assert "godot instrument --budget" in out
    value = json.loads(run(capsys, *arguments, "--json")[1])
    assert "overhead" not in value
    assert json.loads(run(capsys, *arguments, "--json")[1]) == value


@pytest.mark.parametrize("width", [80, 120])
def test_names_fit_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run(capsys, "crafter", "--steps", "200", "--no-overhead")
    assert code == 0
    assert "…" not in out
    assert "Env._balance_chunk.<locals>.<lambda>#2 " in out
    assert max(map(len, out.splitlines())) <= width
    assert "Player._degen_or_regen_health " in out
    assert ("crafter/objects.py:" in out) == (width == 120)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nosuch",), "No game"),
        (("crafter", "--steps", "0"), "steps"),
        (("crafter", "--scheme", "colour"), "colour"),
        (("crafter", "--only", "Nothing.*"), "Nothing.*"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_game_that_breaks_later_shows_what_it_called_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [5]  # a reset makes one of these calls

    def broken(*_: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise ZeroDivisionError("bad luck")

    monkeypatch.setattr("crafter.env.Env._update_time", broken)
    code, out, err = run(capsys, "crafter", "--world", "7", "--steps", "9", "--only", "Env.step")
    assert code == 1
    assert "functions called in 3 steps" in " ".join(out.split())
    last = err.strip().splitlines()[-1]
    assert last.startswith("error: The game broke in world 7 at step 3: ZeroDivisionError at ")
    assert "bad luck" in last
    left[0] = 5
    code, out, _ = run(capsys, "crafter", "--world", "7", "--steps", "9", "--json")
    told = json.loads(out)
    assert (code, told["steps"], told["broke"]["exception"]) == (1, 3, "ZeroDivisionError")


@pytest.mark.parametrize("error", [ZeroDivisionError("bad\nluck"), SystemExit(3)])
def test_a_game_that_breaks_is_named_in_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("crafter.env.Env._update_time", broken)
    code, out, err = run(capsys, "crafter", "--world", "7", "--steps", "5", "--only", "Env.step")
    assert (code, out) == (1, "")
    assert f"The game broke in world 7 at step 0: {type(error).__name__}" in err
    assert len(err.strip().splitlines()) == 1
