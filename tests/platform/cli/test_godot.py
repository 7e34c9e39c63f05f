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
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "engine"
    path.write_text("#!/bin/sh\necho 4.5.1.stable.made_up\n")
    path.chmod(0o755)
    monkeypatch.setenv("GODOT", str(path))
    return path


def test_the_engine_found_is_said(capsys: pytest.CaptureFixture[str], program: Path) -> None:
    code, out, _ = run(capsys, "godot", "install", "--json")
    assert code == 0
    assert json.loads(out) == {"engine": str(program), "version": "4.5.1.stable.made_up"}
    code, out, _ = run(capsys, "godot", "install")
    assert code == 0
    assert out.replace("\n", "") == f"Godot 4.5.1.stable.made_up at {program}"


def test_an_old_engine_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], program: Path
) -> None:
    program.write_text("#!/bin/sh\necho 4.2.1.stable.official\n")
    code, out, err = run(capsys, "godot", "install", "--json")
    assert (code, out) == (2, "")
    assert "4.4 or newer is needed" in err
    assert len(err.strip().splitlines()) == 1
