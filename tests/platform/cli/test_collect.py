"""``lanista collect`` and ``lanista data``, as a person types them."""

import json
from pathlib import Path
from typing import Any

import pytest

from lanista.platform.cli.app import main

RECIPE = """
game: crafter
episodes: 2
step_cap: 25
testers:
  - {name: random, weight: 1, parameters: {repeat: 0.5}}
  - {name: noisy, weight: 1}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    value: dict[str, Any] = json.loads(out)
    return value


def test_record_show_verify_and_mend(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe, store = tmp_path / "recipe.yaml", tmp_path / "store"
    recipe.write_text(RECIPE)
    command = ["collect", "--recipe", recipe, "--out", store, "--workers", 0]
    recorded = run_json(capsys, *command)
    assert (recorded["episodes"], recorded["steps"], recorded["workers"]) == (2, 50, 0)
    assert recorded["findings"] == recorded["failures"] == []
    assert run_json(capsys, *command)["manifest_sha256"] == recorded["manifest_sha256"]
    assert run_json(capsys, "collect", recipe, "--out", store)["episodes"] == 2

    shown = run_json(capsys, "data", "show", store)
    assert {name: shown[name] for name in ("episodes", "steps", "manifest_sha256")} == {
        name: recorded[name] for name in ("episodes", "steps", "manifest_sha256")
    }
    assert 0 < shown["goals"] < shown["functions"]
    assert {item["name"] for item in shown["testers"]} <= {"random", "noisy"}
    code, out, _ = run(capsys, "data", "show", store)
    assert code == 0
    assert "longest trace" in out
    assert len(shown["unreached"]) + shown["functions"] >= shown["catalogue"]
    assert "crafter.objects:Arrow.update" in shown["unreached"]
    code, out, _ = run(capsys, "data", "show", store, "--functions")
    assert code == 0
    assert "never" in out
    assert "crafter/objects.py:" in out

    assert run_json(capsys, "data", "verify", store)["ok"] is True
    victim = next((store / "episodes").iterdir())
    victim.write_bytes(victim.read_bytes()[:50])
    code, out, _ = run(capsys, "data", "verify", store, "--json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    assert found["problems"][0]["file"] == f"episodes/{victim.name}"
    code, _, err = run(capsys, *command)
    assert code == 2
    assert victim.name in err
    code, out, _ = run(capsys, "data", "verify", store, "--quarantine", "--json")
    assert (code, json.loads(out)["quarantined"]) == (1, True)
    assert run_json(capsys, *command)["manifest_sha256"] == recorded["manifest_sha256"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["collect", "crafter", "--episodes", "3"], "--out"),
        (["collect", "--out", "x"], "Name a game"),
        (["collect", "crafter", "--out", "x"], "--episodes"),
        (["collect", "nonesuch", "--out", "x", "--episodes", "3"], "nonesuch"),
        (["collect", "crafter", "--out", "x", "--episodes", "0"], "episodes is 0"),
        (["collect", "crafter", "--out", "/proc/x", "--episodes", "1"], "cannot be written"),
        (["collect", "missing.yaml", "--out", "x"], "missing.yaml"),
        (["collect", "crafter", "--out", "x", "--episodes", "1", "--set", "colour=1"], "colour"),
        (["data", "show", "nowhere"], "no episode store"),
        (["data", "verify", "nowhere"], "no episode store"),
        (["data", "export-minari", "nowhere", "--dataset-id", "a-v0"], "no episode store"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, out) == (2, "")
    assert expected in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_another_recipe_in_the_same_folder_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base = ["collect", "crafter", "--out", tmp_path / "s", "--workers", 0, "--set", "step_cap=5"]
    run_json(capsys, *base, "--episodes", 1)
    code, _, err = run(capsys, *base, "--episodes", 2, "--seed", 3)
    assert code == 2
    assert "another recipe (episodes, seed)" in err


def test_what_breaks_in_a_recording_is_a_file_that_replays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    command = ["collect", "vault_game:GAME", "--out", store, "--episodes", 400, "--workers", 0]
    found = run_json(capsys, *command)["findings"]
    assert [item["exception"] for item in found] == ["ZeroDivisionError"]
    assert found[0]["count"] >= 1
    file = Path(found[0]["replay"])
    assert file.parent == store / "findings"
    assert run_json(capsys, "data", "verify", store)["ok"] is True
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert found[0]["message"] in out
    assert "lanista replay" in out
    assert file.name in out.replace("\n", "").replace("│", "").replace(" ", "")
    replayed = run_json(capsys, "replay", file)
    assert replayed["reproduced"] is True
    assert replayed["exception"].startswith("ZeroDivisionError")
