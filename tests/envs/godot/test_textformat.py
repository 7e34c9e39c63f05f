import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.godot.engine import Engine, private_environment
from lanista.envs.godot.textformat import Call, FormatError, Tag, read_tags


def read_value(text: str) -> object:
    return read_tags(f"a={text}\n")[0].value("a")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.25", -0.25),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("null", None),
        ("inf_neg", -math.inf),
        ('""', ""),
        ('"two\nlines; not [a] {comment"', "two\nlines; not [a] {comment"),
        (r'"\"q\" \\ \n \u00e9 \U01f600 \ud83d\ude00"', '"q" \\ \n é 😀 😀'),
        ('&"name"', "name"),
        ('^"a/b"', "a/b"),
        ("[1, [2,], {}]", [1, [2], {}]),
        ('{"a": 1, 2: [3] , }', {"a": 1, 2: [3]}),
        ('PackedStringArray("4.4", "C#")', Call("PackedStringArray", ("4.4", "C#"))),
        ('Object(InputEventKey,"device":-1)', Call("Object", ("InputEventKey", -1))),
        ('Array[ExtResource("3")]([1])', Call("Array", ([1],))),
        ("Dictionary[String, int]({})", Call("Dictionary", ({},))),
        ("Color(1, 0, 0, 1)", Call("Color", (1, 0, 0, 1))),
        ("[1, ; one\n2]", [1, 2]),
    ],
)
def test_values_are_read(text: str, value: object) -> None:
    assert read_value(text) == value


def test_a_scene_is_split_into_tags() -> None:
    tags = read_tags(
        '\ufeff; made by hand\r\n[gd_scene load_steps=2 format=3 uid="uid://abc"]\r\n\r\n'
        '[ext_resource type="Script" path="res://a [1].gd" id="1_x"]\r\n'
        '[node name="A]" type="Node" groups=["one", "two"]]\r\n'
        'script = ExtResource("1_x")\r\nmetadata/_x = {\r\n"a": [1]\r\n}\r\n"odd key"=1\r\n'
    )
    assert [tag.name for tag in tags] == ["", "gd_scene", "ext_resource", "node"]
    assert tags[2].attributes == {"type": "Script", "path": "res://a [1].gd", "id": "1_x"}
    assert tags[3].attributes["groups"] == ["one", "two"]
    assert tags[3].value("script") == Call("ExtResource", ("1_x",))
    assert list(tags[3].assignments) == ["script", "metadata/_x", "odd key"]
    assert [tag.line for tag in tags] == [0, 2, 4, 5]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('a=1\nb="never\nclosed', 2, "string is never closed"),
        ("a=1\n\n[display\nb=2\n", 3, "bracket is never closed"),
        ("a=1\nhello\n", 2, "neither a tag nor an assignment"),
        ("a=1]\n", 1, "closes nothing"),
    ],
)
def test_broken_structure_is_named_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(FormatError, match=what) as caught:
        read_tags(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["", "[1 2]", "{1}", "1 2", "Call(", "@", "[" * 500 + "]" * 500])
def test_broken_values_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        Tag("", 1, {"a": (text, 1)}).value("a")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40))
def test_any_text_gives_tags_or_an_error_with_a_line(text: str) -> None:
    line = 0
    try:
        for tag in read_tags(text):
            for name in tag.assignments:
                tag.value(name)
            _ = tag.attributes
    except FormatError as error:
        line = error.line
    assert 0 <= line <= text.count("\n") + 1


WRITE = """extends SceneTree
func _init():
	var file := ConfigFile.new()
	file.set_value("s", "text", "a\\"b\\\\c\\nd\\té😀 ; [x]")
	file.set_value("s", "list", [1, -2.5, true, null, "x", {"k": [1]}])
	file.set_value("s", "packed", PackedStringArray(["4.4", "C#"]))
	file.set_value("s", "name with space", &"interned")
	file.set_value("s", "typed", [1, 2] as Array[int])
	file.set_value("s", "vector", Vector2(1.5, -2))
	file.save(OS.get_cmdline_user_args()[0])
	quit()
"""


def test_what_the_engine_writes_is_read(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "write.gd").write_text(WRITE, encoding="utf-8")
    out = tmp_path / "out.cfg"
    script = str(tmp_path / "write.gd")
    subprocess.run(
        [*engine.command, "--headless", "--script", script, "--", str(out)],
        env=private_environment(tmp_path),
        timeout=60,
        check=True,
        capture_output=True,
    )
    section = read_tags(out.read_text(encoding="utf-8"))[1]
    assert section.text == "s"
    assert section.value("text") == 'a"b\\c\nd\té😀 ; [x]'
    assert section.value("list") == [1, -2.5, True, None, "x", {"k": [1]}]
    assert section.value("packed") == Call("PackedStringArray", ("4.4", "C#"))
    assert section.value("name with space") == "interned"
    assert section.value("typed") == Call("Array", ([1, 2],))
    assert section.value("vector") == Call("Vector2", (1.5, -2))
