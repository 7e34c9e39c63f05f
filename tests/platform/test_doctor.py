import json
from pathlib import Path

import pytest

from lanista.platform import doctor
from lanista.platform.cli.app import main


def test_a_sound_machine_passes_every_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--quick", "--json", "--root", str(tmp_path)])
    checks = {item["name"]: item for item in json.loads(capsys.readouterr().out)["checks"]}
    assert ended.value.code == 0
    assert {"python", "package ray", "disk", "mlflow store", "game crafter"} <= set(checks)
    assert all(item["ok"] and item["detail"] for item in checks.values())
    assert "ray starts" not in checks


def test_each_failure_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(doctor, "_PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(doctor, "game_ids", lambda: ["no_such_game"])
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--quick", "--json", "--root", str(tmp_path / "file")])
    checks = {item["name"]: item for item in json.loads(capsys.readouterr().out)["checks"]}
    assert ended.value.code == 1
    failed = {name for name, item in checks.items() if not item["ok"]}
    assert failed == {"package no-such-package", "disk", "mlflow store", "game no_such_game"}
    assert all(checks[name]["fix"] for name in failed)
