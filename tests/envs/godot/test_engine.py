import os
import stat
import time
from pathlib import Path

import pytest

from lanista.envs.cache import cache_folder
from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.engine import (
    Engine,
    find_engine,
    installed_program,
    open_engine,
    run_engine,
    version_number,
)


def make_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make_engine(path: Path, version: str = "4.5.1.stable.official.abc123") -> Path:
    return make_program(path, f"echo {version}")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("GODOT", raising=False)
    monkeypatch.setenv("LANISTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_the_engine_here_runs_and_will_do(engine: Engine) -> None:
    assert engine.number >= (4, 4, 0)
    finished = run_engine(engine.command, ["--headless", "--version"], timeout_s=60)
    assert finished.code == 0
    assert finished.output.strip() == engine.version


def test_the_variable_comes_before_path_and_path_before_our_own(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_engine(installed_program(), "4.4.stable.own")
    assert find_engine() == Engine((str(own),), "4.4.stable.own")
    on_path = make_engine(nothing_installed / "bin" / "godot4", "4.5.stable.path")
    assert find_engine() == Engine((str(on_path),), "4.5.stable.path")
    given = make_engine(nothing_installed / "given with space" / "engine", "4.6.stable.given")
    monkeypatch.setenv("GODOT", str(given))
    assert find_engine() == Engine((str(given),), "4.6.stable.given")


def test_an_old_engine_on_path_is_passed_over(nothing_installed: Path) -> None:
    make_engine(nothing_installed / "bin" / "godot", "3.6.stable.official.abc")
    with pytest.raises(InputError, match=r"lanista godot install.*3\.6\.stable") as caught:
        find_engine()
    assert len(caught.value.problems) == 1
    own = make_engine(installed_program())
    assert find_engine().command == (str(own),)


def test_no_engine_says_what_to_do(nothing_installed: Path) -> None:
    with pytest.raises(InputError, match=r"lanista godot install.*\$GODOT"):
        find_engine()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 4.3.stable.official.abc", r"4\.3\.stable\.official\.abc, and 4\.4 or newer"),
        ("echo hello", "no Godot engine that runs here.*hello"),
        ("echo broken >&2; exit 3", r"broken \(status 3\)"),
        ("exit 0", "nothing"),
    ],
)
def test_a_variable_that_names_something_else_is_refused(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    monkeypatch.setenv("GODOT", str(make_program(nothing_installed / "other", script)))
    with pytest.raises(InputError, match=expected):
        find_engine()


def test_a_variable_that_names_nothing_is_refused(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_engine(installed_program())
    monkeypatch.setenv("GODOT", str(nothing_installed / "missing"))
    with pytest.raises(InputError, match=r"\$GODOT names .*missing"):
        find_engine()


def test_a_replaced_program_is_asked_anew(tmp_path: Path) -> None:
    program = make_engine(tmp_path / "godot", "4.5.stable.one")
    assert open_engine(program).version == "4.5.stable.one"
    make_engine(program, "4.5.1.stable.other")
    assert open_engine(program).version == "4.5.1.stable.other"


def test_versions_are_read() -> None:
    assert version_number("4.6.3.stable.debian4.6.3+ds-3") == (4, 6, 3)
    assert version_number("4.5.stable.official.876b29033") == (4, 5, 0)
    assert version_number("4.6.beta2.mono.official") == (4, 6, 0)
    with pytest.raises(InputError):
        version_number("four")


def test_each_run_has_a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    program = make_program(tmp_path / "p", 'echo "$HOME ${XDG_DATA_HOME-none}"')
    homes = [run_engine((str(program),), [], timeout_s=10).output.split() for _ in range(2)]
    assert [data for _, data in homes] == ["none", "none"]
    assert len({home for home, _ in homes} | {os.environ["HOME"]}) == 3
    assert not any(Path(home).exists() for home, _ in homes)


def test_a_run_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    program = make_program(
        tmp_path / "p", f"echo started\nsleep 60 &\necho $! > '{tmp_path}/child'\nsleep 60"
    )
    before = time.monotonic()
    with pytest.raises(RunError, match=r"did not end within 1 s.*started"):
        run_engine((str(program),), [], timeout_s=1)
    assert time.monotonic() - before < 30
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child still runs")


def test_the_cache_is_where_the_person_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LANISTA_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    monkeypatch.delenv("LANISTA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert cache_folder() == tmp_path / "b" / "lanista"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "lanista"
