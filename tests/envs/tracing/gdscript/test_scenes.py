"""Scripts inside scenes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


CASES = (Path(__file__).parent / "cases.txt").read_text(encoding="utf-8").split("\n===== ")[1:]


def in_scene(text: str, *, all_escapes: bool) -> bytes:
    """Return a scene with a script in it, escaped as the engine does or as it also reads."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if all_escapes:
        escaped = escaped.replace("\n", "\\n").replace("\t", "\\t").replace("é", "\\u00e9")
        escaped = escaped.replace("😀", "\\U01F600").replace("'", "\\'")
    return (
        '[gd_scene format=3]\n\n[sub_resource type="GDScript" id="G_1"]\n'
        f'script/source = "{escaped}"\n\n[node name="A" type="Node"]\n'
    ).encode()


@pytest.mark.parametrize("all_escapes", [False, True])
@pytest.mark.parametrize("case", CASES, ids=[case.partition(":")[0] for case in CASES])
def test_a_script_gets_the_same_hooks_inside_a_scene(case: str, *, all_escapes: bool):
    text = case.partition("\n")[2].replace("␉", "\t").replace("␠", " ")
    scene = in_scene(text, all_escapes=all_escapes)
    result = rewrite_scene(
        scene, lambda script: rewrite_script(script.source, lambda f: f'h("{f.line}")', check=False)
    )
    alone = rewrite_script(text.encode(), lambda f: f'h("{f.line}")', check=False)
    assert alone.functions
    assert [item.source for item in embedded_scripts(result.source)] == [alone.source]
    assert result.source.count(b"\n") == scene.count(b"\n")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_any_text_is_read_out_of_a_scene(text: str, all_escapes: bool):
    (script,) = embedded_scripts(in_scene(text, all_escapes=all_escapes))
    assert script.source == text.encode()


@given(st.binary(max_size=200), st.integers(0, len(SCENE)))
def test_no_scene_raises(part: bytes, place: int):
    embedded_scripts(SCENE[:place] + part + SCENE[place:])
    embedded_scripts(part)


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
