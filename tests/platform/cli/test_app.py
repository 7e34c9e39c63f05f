import json
import subprocess
import sys
from pathlib import Path

import pytest

from lanista.envs.errors import InputError
from lanista.platform.cli.app import app, main
from lanista.platform.cli.options import parse_worlds


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["games", "--colour"], "--colour"),
        (["games", "--seed", "-1"], "--seed"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert expected in err
    assert len(err.strip().splitlines()) == 1


def test_an_interrupted_command_says_so_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("lanista.envs.game.game_ids", interrupted)
    code, out, err = run(capsys, "games")
    assert code == 1
    assert out == ""
    assert err.startswith("error: Interrupted; ")
    assert len(err.strip().splitlines()) == 1


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    def leaves(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        children = getattr(command, "commands", None)
        if not children:
            return [path]
        return [leaf for name, child in children.items() for leaf in leaves(child, (*path, name))]

    found = leaves(typer.main.get_command(app), ())
    assert len(found) >= 2
    for path in found:
        code, out, _ = run(capsys, *path, "--help")
        assert code == 0, path
        assert "Example: lanista" in out, path
        assert "--json" in out, path
        assert "--seed" in out, path


def test_games_in_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "games", "--json")
    assert code == 0
    assert out.count("\n") == 1
    rows = {row["id"]: row for row in json.loads(out)["games"]}
    assert set(rows["crafter"]) >= {
        "id", "seats", "actions", "observations", "functions", "installed",
    }  # fmt: skip


def test_the_program_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lanista.platform.cli", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "doctor" in done.stdout


def test_worlds_are_lists_and_ranges() -> None:
    assert parse_worlds("7") == [7]
    assert parse_worlds("0-3,9") == [0, 1, 2, 3, 9]
    for bad in ("", "a", "3-1", "1,1", "-4", "1-2-3", "0-99999999999", "99999999999"):
        with pytest.raises(InputError, match="Worlds"):
            parse_worlds(bad)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ZeroDivisionError("by\nzero"), "ZeroDivisionError: by zero at "),
        (RecursionError(), "RecursionError: no more is known"),
        (OSError(28, "No space left on device", "/full/file"), "/full/file: No space left"),
    ],
)
def test_whatever_breaks_people_get_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    expected: str,
) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr("lanista.platform.cli.games.emit", lambda *_, **__: broken())
    code, out, err = run(capsys, "games", "--json")
    assert (code, out) == (1, "")
    assert expected in err
    assert len(err.strip().splitlines()) == 1


def test_what_a_game_prints_stays_off_standard_output() -> None:
    script = (
        "import os, sys\n"
        "from lanista.platform.cli.output import emit, results_only\n"
        "with results_only():\n"
        "    print('from the game')\n"
        "    os.write(1, b'from below\\n')\n"
        "    os.system('echo from a child')\n"
        "    emit({'value': float('nan')}, as_json=True)\n"
        "print('after')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == '{"value": null}\nafter\n'
    assert {"from the game", "from below", "from a child"} <= set(done.stderr.splitlines())


def test_a_game_in_the_working_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "a_game_of_mine.py").write_text("GAME = 3\n")
    program = Path(sys.executable).with_name("lanista")
    done = subprocess.run(
        [program, "trace", "a_game_of_mine:GAME"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "is a int, not a lanista Game" in done.stderr
