import json
from pathlib import Path

import pytest

from lanista.platform.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


@pytest.fixture
def game(tmp_path: Path) -> Path:
    folder = tmp_path / "my game"
    folder.mkdir()
    (folder / "project.godot").write_text('config_version=5\n\n[application]\n\nconfig/name="g"\n')
    (folder / "robot.gd").write_text(
        "extends Node\nfunc jump():\n\tpass\nfunc land():\n\tpass\nfunc walk():\n\tpass\n"
    )
    (folder / "bad.gd").write_text("extends Node\nfunc f(:\n\tpass\n")
    return folder


def test_the_json_says_what_is_recorded_and_what_is_not(
    game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    command = ("godot", "instrument", str(game), "--out", str(copy), "--no-check", "--json")
    code, out, _ = run(capsys, *command)
    assert code == 0
    value = json.loads(out)
    assert (value["functions"], value["scripts"]) == (3, 1)
    (skipped,) = value["skipped"]
    assert (skipped["file"], skipped["line"], skipped["functions"]) == ("bad.gd", 2, 1)
    assert skipped["why"]
    assert (copy / "__lanista__" / "catalogue.json").is_file()
    code, again, _ = run(capsys, *command)
    assert (code, again) == (0, out)
    code, shown, _ = run(capsys, *command[:-1])
    assert code == 0
    assert "3 functions in 1 script" in " ".join(shown.split())
    assert "bad.gd" in shown


def test_patterns_may_stand_in_a_file(
    game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hot.txt").write_text("# the hot ones\nrobot:Robot.walk\n")
    out_folder = str(tmp_path / "copy")
    command = ("godot", "instrument", str(game), "--out", out_folder, "--no-check", "--json")
    code, out, _ = run(capsys, *command, "--exclude", str(tmp_path / "hot.txt"))
    assert (code, json.loads(out)["functions"]) == (0, 2)
    code, out, _ = run(capsys, *command, "--only", "Robot.jump")
    assert (code, json.loads(out)["functions"]) == (0, 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--scheme", "edge"), "definition and class"),
        (("--include", "nothing"), "'nothing' matches no function"),
        (("--budget", "0"), "leaves nothing to record"),
        (("--scene", "res://x.tscn"), "go with --budget"),
        (("--out", "."), "lies inside"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    game: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    changed: tuple[str, str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("godot", "instrument", str(game), "--out", "copy", "--no-check")
    code, out, err = run(capsys, *command, *changed)
    assert (code, out) == (2, "")
    assert said in err
    assert [line for line in err.splitlines() if line.startswith("error: ")] == [
        err.strip().splitlines()[-1]
    ]
    assert not (tmp_path / "copy").exists()


def test_a_folder_without_a_project_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "godot", "instrument", str(tmp_path), "--out", "x", "--no-check")
    assert code == 2
    assert "is no Godot project" in err
