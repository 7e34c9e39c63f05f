import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lanista.envs.errors import InputError
from lanista.envs.godot.project import Project
from lanista.envs.tracing.gdscript.inventory import Inventory
from lanista.envs.tracing.gdscript.project import script_catalogue
from lanista.envs.tracing.gdscript.scope import GodotScope

Write = Callable[[Path, dict[str, str]], Path]

FILES = {
    "main.gd": "extends Node\nfunc _ready():\n\tpass\n",
    "enemies/base_enemy.gd": (
        "class_name BaseEnemy\nextends Node\nvar life := 3:\n\tset(v): life = v\n"
        "func hit():\n\tpass\nfunc die():\n\tpass\nstatic func count():\n\treturn 1\n"
        "class Part:\n\tfunc break_off():\n\t\tpass\n"
    ),
    "enemies/bat.gd": "extends BaseEnemy\nfunc die():\n\tsuper()\nfunc fly():\n\tpass\n",
    "enemies/vampire_bat.gd": 'extends "bat.gd"\nfunc drink():\n\tpass\n',
    "enemies/wing.gd": (
        "const Base = preload('base_enemy.gd')\nclass Tip extends Base.Part:\n\tpass\n"
    ),
    "addons/plugin/tool.gd": "extends Node\nfunc help():\n\tpass\n",
    "addons_mine/own.gd": "extends Node\nfunc mine():\n\tpass\n",
    "ignored/.gdignore": "",
    "ignored/x.gd": "extends Node\nfunc unseen():\n\tpass\n",
    "nested/project.godot": "config_version=5\n",
    "nested/y.gd": "extends Node\nfunc unseen():\n\tpass\n",
    ".hidden/z.gd": "extends Node\nfunc unseen():\n\tpass\n",
    "level.tscn": (
        '[gd_scene load_steps=2 format=3]\n\n[sub_resource type="GDScript" id="GDScript_ab"]\n'
        'script/source = "extends Node\nfunc inside():\n\tprint(\\"x\\")\n"\n\n'
        '[node name="Level" type="Node"]\nscript = SubResource("GDScript_ab")\n'
    ),
}


@pytest.fixture
def source(tmp_path: Path, write_project: Write) -> Path:
    return write_project(tmp_path / "game", FILES)


def names(source: Path, **choices: object) -> set[str]:
    return {item.name for item in script_catalogue(source, **choices).functions}  # type: ignore[arg-type]


DEFINED = {
    "addons_mine.own:Own.mine",
    "enemies.base_enemy:BaseEnemy.@life_setter",
    "enemies.base_enemy:BaseEnemy.Part.break_off",
    "enemies.base_enemy:BaseEnemy.count",
    "enemies.base_enemy:BaseEnemy.die",
    "enemies.base_enemy:BaseEnemy.hit",
    "enemies.bat:Bat.die",
    "enemies.bat:Bat.fly",
    "enemies.vampire_bat:VampireBat.drink",
    "level.tscn.GDScript_ab:Level.inside",
    "main:Main._ready",
}
INHERITED = {
    "enemies.bat:Bat.@life_setter",
    "enemies.bat:Bat.hit",
    "enemies.vampire_bat:VampireBat.@life_setter",
    "enemies.vampire_bat:VampireBat.die",
    "enemies.vampire_bat:VampireBat.fly",
    "enemies.vampire_bat:VampireBat.hit",
    "enemies.wing:Wing.Tip.break_off",
}


def test_functions_are_named_by_script_and_class(source: Path) -> None:
    assert names(source, scheme="definition") == DEFINED


def test_scheme_class_adds_what_is_inherited_and_not_overridden(source: Path) -> None:
    assert names(source, scheme="class") == DEFINED | INHERITED
    catalogue = script_catalogue(source)
    place = {item.name: (item.file, item.line, item.owner) for item in catalogue.functions}
    assert place["enemies.bat:Bat.hit"] == ("enemies/base_enemy.gd", 5, "Bat")
    assert place["enemies.base_enemy:BaseEnemy.Part.break_off"][2] == "BaseEnemy.Part"


def test_patterns_choose_as_they_do_for_python(source: Path) -> None:
    assert names(source, scope=GodotScope(include=("enemies.bat",))) == {
        "enemies.bat:Bat.die",
        "enemies.bat:Bat.fly",
        "enemies.vampire_bat:VampireBat.die",
        "enemies.vampire_bat:VampireBat.fly",
    }
    assert names(source, scope=GodotScope(exclude=("enemies", "level.tscn"))) == {
        "addons_mine.own:Own.mine",
        "main:Main._ready",
    }
    assert names(source, scope=GodotScope(only=("VampireBat.hit",))) == {
        "enemies.vampire_bat:VampireBat.hit"
    }
    assert names(source, scope=GodotScope(include=("*", "addons.plugin"))) > {
        "addons.plugin.tool:Tool.help",
        "main:Main._ready",
    }
    without = names(source, scope=GodotScope(exclude=("enemies.base_enemy:BaseEnemy.hit",)))
    assert not any(name.endswith(".hit") for name in without)


def test_patterns_that_match_nothing_are_refused(source: Path) -> None:
    with pytest.raises(InputError, match="'enemy' matches no function"):
        script_catalogue(source, scope=GodotScope(include=("enemy",)))
    with pytest.raises(InputError, match="matches 'Dragon"):
        script_catalogue(source, scope=GodotScope(only=("Dragon.*",)))
    with pytest.raises(InputError, match="by definition or class"):
        script_catalogue(source, "edge")
    with pytest.raises(InputError, match="includes nothing"):
        GodotScope(include=())


def test_ids_are_the_same_in_every_process(source: Path) -> None:
    code = (
        "import sys\nfrom lanista.envs.tracing.gdscript.project import script_catalogue\n"
        "print(script_catalogue(sys.argv[1]).sha256)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, str(source)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {script_catalogue(source).sha256 + "\n"}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("t.gd", "extends Node\nfunc f():\n\tvar t = Thread.new()\n\tt.start(f)\n"),
        ("t.gd", "extends AudioStreamPlayback\nfunc _mix(b, r, f):\n\treturn 0\n"),
        ("t.gd", "extends Node\nfunc f():\n\tResourceLoader.load_threaded_request('x')\n"),
        ("t.gd", "extends Node\nfunc f(:\n\tvar t = Thread.new()\n"),
        (
            "t.tscn",
            '[gd_scene format=3]\n\n[node name="A" type="Node"]\nprocess_thread_group = 2\n',
        ),
        ("lib.gdextension", "[configuration]\n"),
        ("Net.cs", "class Net { void F() { Task.Run(() => {}); } }"),
        (
            "project.godot",
            "config_version=5\n\n[physics]\n\n3d/run_on_separate_thread=true\n",
        ),
    ],
)
def test_a_project_that_uses_threads_is_told(source: Path, file: str, text: str) -> None:
    assert not Inventory.read(Project.open(source)).threads
    (source / file).write_text(text)
    assert Inventory.read(Project.open(source)).threads


def test_bases_that_lead_round_do_not_hang(tmp_path: Path, write_project: Write) -> None:
    files = {
        "main.gd": FILES["main.gd"],
        "a.gd": 'class_name A\nextends "b.gd"\nfunc a():\n\tpass\n',
        "b.gd": "class_name B\nextends A\nfunc b():\n\tpass\n",
    }
    assert "a:A.a" in names(write_project(tmp_path / "game", files))
