import os
import shutil
from pathlib import Path

import pytest

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.engine import Engine, run_engine
from lanista.envs.godot.project import (
    Project,
    SyncNode,
    import_project,
    project_files,
    project_sha256,
)

SETTINGS = """; Engine configuration file.
config_version=5

[application]

config/name="A \\"small\\" game"
run/main_scene="uid://main1"
config/features=PackedStringArray("4.4", "C#", "Forward Plus")

[autoload]

Log="*res://log.gd"
Sound="*uid://sound1"

[input]

left={
"deadzone": 0.5,
"events": [Object(InputEventKey,"device":-1,"keycode":4194319,"script":null)
]
}

[physics]

common/physics_ticks_per_second=30
"""
SYNC = """extends Node
var stream: StreamPeerTCP = null
func handshake(): return "handshake"
func env_info(): return {"type": "env_info"}
"""
SCENE = """[gd_scene load_steps=2 format=3 uid="uid://main1"]

[ext_resource type="Script" path="res://scripts/my_sync.gd" id="1"]

[sub_resource type="GDScript" id="GDScript_1"]
script/source = "extends Node
func _ready(): pass
"

[node name="Main" type="Node"]
script = SubResource("GDScript_1")

[node name="World" type="Node" parent="."]

[node name="Sync" type="Node" parent="World"]
script = ExtResource("1")
control_mode = 2
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def make_project(folder: Path) -> Path:
    return write(
        folder,
        {
            "project.godot": SETTINGS,
            "log.gd": "extends Node\n",
            "scripts/sound.gd": "extends Node\n",
            "scripts/sound.gd.uid": "uid://sound1\n",
            "scripts/my_sync.gd": '@tool\nextends "res://addons/godot_rl_agents/sync.gd"\n',
            "scenes/main.tscn": SCENE,
            "addons/godot_rl_agents/sync.gd": SYNC,
            "addons_mine/own.gd": "extends Node\n",
            "ignored/.gdignore": "",
            "ignored/hidden.gd": "extends Node\n",
            ".hidden/hidden.gd": "extends Node\n",
            "inner/project.godot": SETTINGS,
            "inner/other.gd": "extends Node\n",
        },
    )


def test_the_facts_of_a_project(tmp_path: Path) -> None:
    project = Project.open(make_project(tmp_path / "with space"))
    assert project.path == (tmp_path / "with space").resolve()
    assert project.name == 'A "small" game'
    assert project.config_version == 5
    assert project.main_scene == "scenes/main.tscn"
    assert project.features == ("4.4", "C#", "Forward Plus")
    assert project.autoloads == {"Log": "log.gd", "Sound": "scripts/sound.gd"}
    assert project.physics_ticks == 30
    assert project.scripts == (
        "addons_mine/own.gd",
        "log.gd",
        "scripts/my_sync.gd",
        "scripts/sound.gd",
    )
    assert project.addon_scripts == ("addons/godot_rl_agents/sync.gd",)
    assert project.scenes == project.embedded_scenes == ("scenes/main.tscn",)
    assert project.sync_nodes == (
        SyncNode("scenes/main.tscn", "World/Sync", "scripts/my_sync.gd", 2),
    )
    project.require_sync()
    assert Project.open(project.path / "project.godot") == project


def test_what_is_not_set_has_the_engines_default(tmp_path: Path) -> None:
    project = Project.open(write(tmp_path, {"project.godot": "config_version=5\n"}))
    assert (project.name, project.physics_ticks) == (tmp_path.name, 60)
    assert (project.main_scene, project.features, dict(project.autoloads)) == ("", (), {})


def test_overrides_come_first(tmp_path: Path) -> None:
    make_project(tmp_path)
    write(tmp_path, {"override.cfg": "[physics]\ncommon/physics_ticks_per_second=120\n"})
    assert Project.open(tmp_path).physics_ticks == 120


@pytest.mark.parametrize(
    ("declared", "extends"),
    [
        ("class_name Sync\n", "extends Sync"),
        ("", 'extends "../addons/godot_rl_agents/sync.gd"'),
        ("class_name Sync extends Node\n", "class_name Mine extends Sync"),
    ],
)
def test_a_sync_script_is_known_by_what_it_extends(
    tmp_path: Path, declared: str, extends: str
) -> None:
    make_project(tmp_path)
    plugin = declared + (SYNC.replace("extends Node\n", "") if "extends" in declared else SYNC)
    write(
        tmp_path,
        {"addons/godot_rl_agents/sync.gd": plugin, "scripts/my_sync.gd": f"{extends}\n"},
    )
    assert [node.script for node in Project.open(tmp_path).sync_nodes] == ["scripts/my_sync.gd"]


def test_an_autoload_can_be_the_sync_node(tmp_path: Path) -> None:
    settings = 'config_version=5\n[autoload]\nBridge="*res://b.gd"\n'
    project = Project.open(write(tmp_path, {"project.godot": settings, "b.gd": SYNC}))
    assert project.sync_nodes == (SyncNode("", "Bridge", "b.gd", None),)


def test_a_project_without_sync_node_is_refused(tmp_path: Path) -> None:
    make_project(tmp_path)
    write(tmp_path, {"scripts/my_sync.gd": "extends Node\n"})
    project = Project.open(tmp_path)
    assert project.sync_nodes == ()
    with pytest.raises(InputError, match="has no Sync node: add"):
        project.require_sync()
    write(tmp_path, {"scenes/binary.scn": "RSCC"})
    Project.open(tmp_path).require_sync()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, r"is no Godot project: it holds no project\.godot"),
        ({"project.godot": "config_version=4\n"}, "made for Godot 3"),
        ({"project.godot": "config_version=6\n"}, "newer than 4"),
        ({"project.godot": ""}, "names no config_version"),
        ({"project.godot": 'config_version=5\n[application]\nx="a\n'}, "is broken in line 3"),
        (
            {"project.godot": 'config_version=5\n[application]\nconfig/name={"a"}\n'},
            "is broken in line 3",
        ),
        (
            {"project.godot": "config_version=5\n", "Main.cs": "class Main {}"},
            r"C# alone.*Main\.cs",
        ),
        (
            {"project.godot": "config_version=5\n[physics]\ncommon/physics_ticks_per_second=0\n"},
            "sets 0 physics ticks",
        ),
    ],
)
def test_what_is_no_project_for_us_is_refused_in_one_sentence(
    tmp_path: Path, files: dict[str, str], expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        Project.open(write(tmp_path, files))
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)


def test_broken_bytes_and_wrong_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "project.godot").write_bytes(b"config_version=5\n\xff\xfe")
    with pytest.raises(InputError, match="byte 17 is no UTF-8"):
        Project.open(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Project.open(tmp_path / "missing")
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(InputError, match="is no Godot project; name the folder"):
        Project.open(tmp_path / "file.txt")


def test_links_are_followed_once(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    write(tmp_path / "shared", {"shared.gd": "extends Node\n"})
    (tmp_path / "project" / "linked").symlink_to(tmp_path / "shared")
    (tmp_path / "project" / "loop").symlink_to(tmp_path / "project")
    assert "linked/shared.gd" in Project.open(tmp_path / "project").scripts
    assert not [name for name in project_files(tmp_path / "project") if name.startswith("loop")]


def test_the_hash_follows_contents_and_names_alone(tmp_path: Path) -> None:
    first = make_project(tmp_path / "a")
    second = shutil.copytree(first, tmp_path / "b")
    same = project_sha256(first)
    write(second, {".godot/uid_cache.bin": "made", "log.gd.uid": "uid://made"})
    os.utime(second / "log.gd", (1, 1))
    assert project_sha256(second) == same
    changes = {
        "log.gd": "extends Node \n",
        "ignored/hidden.gd": "extends Node2D\n",
        "inner/other.gd": "extends Node2D\n",
        "new.gd": "",
    }
    hashes = {same}
    for name, text in changes.items():
        write(second, {name: text})
        hashes.add(project_sha256(second))
    (second / "new.gd").rename(second / "renamed.gd")
    hashes.add(project_sha256(second))
    assert len(hashes) == 2 + len(changes)


CLASSES = {
    "project.godot": 'config_version=5\n[application]\nrun/main_scene="res://m.tscn"\n',
    "a.gd": "class_name Answer\nstatic func give() -> int:\n\treturn 42\n",
    "m.gd": "extends Node\nfunc _ready():\n\tprint('answer ', Answer.give())\n"
    "\tget_tree().quit()\n",
    "m.tscn": '[gd_scene load_steps=2 format=3]\n[ext_resource type="Script" path="res://m.gd" '
    'id="1"]\n[node name="M" type="Node"]\nscript = ExtResource("1")\n',
}


def test_an_imported_project_knows_its_classes(engine: Engine, tmp_path: Path) -> None:
    folder = write(tmp_path / "with space", CLASSES)
    output = import_project(engine, folder)
    assert "\x1b" not in output
    assert "Answer" in (folder / ".godot" / "global_script_class_cache.cfg").read_text()
    played = run_engine(engine.command, ["--headless", "--path", str(folder)], timeout_s=60)
    assert "answer 42" in played.output


def test_an_import_that_fails_or_hangs_shows_the_last_lines(tmp_path: Path) -> None:
    project = write(tmp_path, {"project.godot": "config_version=5\n"})
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\necho one\necho broken asset >&2\nexit 1\n")
    program.chmod(0o755)
    engine = Engine((str(program),), "4.4.stable.test")
    with pytest.raises(RunError, match=r"4\.4\.stable\.test cannot import.*one \| broken asset"):
        import_project(engine, project)
    program.write_text("#!/bin/sh\necho thinking\nsleep 60\n")
    with pytest.raises(RunError, match=r"did not end within 1 s.*thinking"):
        import_project(engine, project, timeout_s=1)
