"""Scripts inside scenes."""

import pytest

from lanista.envs.tracing.gdscript.rewriting import rewrite_script
from lanista.envs.tracing.gdscript.scenes import (
    embedded_scripts,
    rewrite_scene,
    scene_uses_threads,
)

SCENE = b"""[gd_scene load_steps=3 format=3 uid="uid://b1"]

; a comment with "a quote
[ext_resource type="Script" path="res://x.gd" id="1_a"]

[sub_resource type="GDScript" id="GDScript_q7"]
resource_name = "has [brackets] and \\"quotes\\""
script/source = "extends Node
# [sub_resource type=\\"GDScript\\"]
func _ready(): print(\\"a\\\\tb\\")

func gro\xc3\x9f(x = \\"\\"):
	return \\"\xf0\x9f\x98\x80\\"
"

[sub_resource type="BoxMesh" id="BoxMesh_1"]
script/source = "func not_a_script(): pass"

[node name="Main" type="Node"]
script = SubResource("GDScript_q7")
metadata/text = "
[sub_resource type=\\"GDScript\\" id=\\"GDScript_no\\"]
script/source = \\"func no(): pass\\"
"
"""


def test_an_embedded_script_is_read_without_its_escapes():
    (script,) = embedded_scripts(SCENE)
    assert script.identifier == "GDScript_q7"
    assert SCENE.split(b"\n")[script.line - 1].startswith(b"script/source")
    assert script.source.decode().split("\n") == [
        "extends Node",
        '# [sub_resource type="GDScript"]',
        'func _ready(): print("a\\tb")',
        "",
        'func groß(x = ""):',
        '\treturn "😀"',
        "",
    ]


def test_a_hook_is_escaped_and_nothing_else_changes():
    result = rewrite_scene(
        SCENE,
        lambda script: rewrite_script(
            script.source, lambda f: f'load("res://a\\\\b").hit({f.line})'
        ),
    )
    assert [item.rewritten.functions[0].name for item in result.scripts] == ["_ready"]
    escaped = rb"load(\"res://a\\\\b\").hit(%d); "
    assert result.source.count(escaped % 3) == result.source.count(escaped % 5) == 1
    assert result.source.replace(escaped % 3, b"").replace(escaped % 5, b"") == SCENE
    (script,) = embedded_scripts(result.source)
    assert script.source == result.scripts[0].rewritten.source


def test_a_resource_file_may_be_a_script_itself():
    source = (
        b'[gd_resource type="GDScript" format=3]\r\n\r\n'
        b'[resource]\r\nscript/source = "func a(): pass\r\n"\r\n'
    )
    result = rewrite_scene(source, lambda script: rewrite_script(script.source, lambda f: "hit(1)"))
    assert result.source == source.replace(b"pass", b"hit(1); pass")
    assert embedded_scripts(source.replace(b"GDScript", b"Shader")) == ()


@pytest.mark.parametrize("value", [b"0", b"1", b"2"])
def test_nodes_that_run_in_other_threads_are_seen(value: bytes):
    scene = SCENE + b'[node name="W" type="Node"]\nprocess_thread_group = ' + value + b"\n"
    assert scene_uses_threads(scene) == (value != b"0")
    assert not scene_uses_threads(SCENE)


@pytest.mark.parametrize(
    "source", [b"", b"\xff\x00[[[", b'[sub_resource type="GDScript"', SCENE[:300]]
)
def test_a_broken_scene_comes_back_as_it_was(source: bytes):
    result = rewrite_scene(source, lambda script: rewrite_script(script.source, lambda f: None))
    assert result.source == source
