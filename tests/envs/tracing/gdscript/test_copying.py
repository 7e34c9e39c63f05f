import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lanista.envs.errors import InputError
from lanista.envs.tracing.gdscript import project as instrumenting
from lanista.envs.tracing.gdscript.project import instrument_project
from lanista.envs.tracing.gdscript.scope import GodotScope

Write = Callable[[Path, dict[str, str]], Path]
SCRIPT = "extends Node\nfunc _ready():\n\tpass\n"


@pytest.fixture
def source(tmp_path: Path, write_project: Write) -> Path:
    return write_project(tmp_path / "game", {"main.gd": SCRIPT, "data/level.json": "{}"})


def listing(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_project_is_only_read_and_every_file_arrives(source: Path, tmp_path: Path) -> None:
    for name in (".git/HEAD", ".godot/cache", "sub/.git/config"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("not for the copy")
    (source / "tool.sh").write_text("#!/bin/sh\n")
    (source / "tool.sh").chmod(0o755)
    (source / "main.gd").chmod(0o444)
    before = listing(source)
    made = instrument_project(source, tmp_path / "out" / "copy")
    assert listing(source) == before
    copied = {name: text for name, text in listing(made.path).items() if "__lanista__" not in name}
    assert set(copied) == {name for name in before if ".git/" not in name and ".godot/" not in name}
    changed = {name for name, text in copied.items() if text != before[name]}
    assert changed == {"main.gd", "project.godot"}
    assert stat.S_IMODE((made.path / "main.gd").stat().st_mode) == 0o444
    assert stat.S_IMODE((made.path / "tool.sh").stat().st_mode) == 0o755
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["copy"]


def test_nothing_is_written_through_links(source: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "shared.gd").write_text("extends Node\nfunc linked():\n\tpass\n")
    (outside / "library").mkdir()
    (outside / "library" / "deep.gd").write_text("extends Node\nfunc deep():\n\tpass\n")
    (source / "shared.gd").symlink_to(outside / "shared.gd")
    (source / "library").symlink_to(outside / "library")
    (source / "data" / "round").symlink_to(source)
    (source / "nowhere.gd").symlink_to(tmp_path / "missing.gd")
    before = listing(outside)
    made = instrument_project(source, tmp_path / "copy")
    assert listing(outside) == before
    assert not any(path.is_symlink() for path in made.path.rglob("*"))
    assert b"events.append" in (made.path / "shared.gd").read_bytes()
    assert b"events.append" in (made.path / "library" / "deep.gd").read_bytes()
    assert not (made.path / "data" / "round").exists()
    assert not (made.path / "nowhere.gd").exists()


def test_a_second_run_keeps_the_copy_and_other_choices_replace_it(
    source: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    first = instrument_project(source, copy)
    inode = copy.stat().st_ino
    again = instrument_project(source, copy)
    assert again == first
    assert copy.stat().st_ino == inode
    (source / "main.gd").write_text(SCRIPT + "func more():\n\tpass\n")
    other = instrument_project(source, copy)
    assert other.functions == 2
    assert other.sha256 != first.sha256
    assert copy.stat().st_ino != inode
    definition = instrument_project(source, copy, scheme="definition")
    assert definition.sha256 != other.sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "game"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("game/copy", "inside the project"),
        ("game", "inside the project"),
        (".", "lies inside"),
        ("full", "not empty and no earlier copy"),
        ("file", "is a file"),
        ("link", "is a link"),
        ("file/copy", "cannot be made"),
    ],
)
def test_a_place_where_no_copy_may_be_is_refused(
    source: Path, tmp_path: Path, place: str, said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    before = listing(tmp_path)
    with pytest.raises(InputError, match=said):
        instrument_project(source, tmp_path / place)
    assert listing(tmp_path) == before


def test_the_folder_of_the_hooks_must_be_free(source: Path, tmp_path: Path) -> None:
    made = instrument_project(source, tmp_path / "copy")
    with pytest.raises(InputError, match="is a traced copy already"):
        instrument_project(made.path, tmp_path / "other")
    (source / "__lanista__").mkdir()
    with pytest.raises(InputError, match="has a folder __lanista__ of its own"):
        instrument_project(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_what_breaks_half_way_leaves_the_earlier_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = instrument_project(source, tmp_path / "copy")
    before = listing(made.path)

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(instrumenting, "write_runtime", broken)
    with pytest.raises(OSError, match="No space left"):
        instrument_project(source, made.path, scope=GodotScope(exclude=("main",)))
    assert listing(made.path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "game"]


def test_warnings_are_no_errors_in_the_copy(source: Path, tmp_path: Path) -> None:
    settings = source / "project.godot"
    strict = (
        "[debug]\n\ngdscript/warnings/enable=true\ngdscript/warnings/return_value_discarded=2\n"
    )
    settings.write_text(settings.read_text() + "\n" + strict)
    made = instrument_project(source, tmp_path / "copy")
    text = (made.path / "project.godot").read_text()
    assert text.count("gdscript/warnings/enable=") == 1
    assert "gdscript/warnings/enable=false" in text
