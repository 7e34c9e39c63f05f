"""Whatever the engine compiles is read as it reads it, and still compiles with hooks."""

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.tracing.gdscript.rewriting import Rewritten, rewrite_script
from lanista.envs.tracing.gdscript.scenes import rewrite_scene
from lanista.envs.tracing.gdscript.tokens import SourceError, logical_lines

HERE = Path(__file__).parent
HOOK = 'preload("res://trace.gd").hit(%d)'
TRACE = """extends RefCounted
static func hit(id: int) -> void:
	print("HIT ", id)
"""
FRAGMENTS = [
    "\n", "\t", "  ", ";", ":", "(", ")", "\\\n", "# x\n", '"', '"""', "func", "func(): pass",
    "func(): return 1", "static ", "class Q: ", "class Q:\n\t", "pass", "pass; ", "\r\n",
    "@warning_ignore('unused_variable') ", "@warning_ignore('unused_variable')\n", "if true: ",
    "[", "]", "{", "}", "var zz = ", "var zz: int:\n\tget: return 1\n", "\n\n", "\t\t", "$A/func ",
    '"x"', "-> int", 'r"', '&"a"', ".", "enum ", ", ", "=", "get", "set(v): pass", "return ",
]  # fmt: skip
JOINTS = [" ", "; ", "\n\n", "\r\n", " \\\n", " # c\n", "\n# c\n", ""]


def changed(source: bytes, rng: random.Random) -> bytes:
    """Return a script with one to three small changes, mostly where a token begins or ends."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = _places(source)
        place = rng.choice(places)
        kind = rng.random()
        lines = source.split(b"\n")
        index = rng.randrange(len(lines))
        if kind < 0.5:
            source = source[:place] + rng.choice(FRAGMENTS).encode() + source[place:]
        elif kind < 0.6:
            start, end = sorted((place, rng.choice(places)))
            source = source[:start] + source[end:] if end - start < 40 else source
        elif kind < 0.7:
            lines[index] = rng.choice([b"\t" + lines[index], lines[index][1:], lines[0]])
            source = b"\n".join(lines)
        elif kind < 0.8:
            source = b"\n".join(lines[:index] + lines[index + 1 :])
        else:
            ends = [match.start() for match in re.finditer(rb"\n", source)] or [0]
            end = rng.choice(ends)
            source = source[:end] + rng.choice(JOINTS).encode() + source[end + 1 :]
    return source


def _places(source: bytes) -> list[int]:
    try:
        tokens = [token for line in logical_lines(source) for token in line.tokens]
    except SourceError:
        tokens = []
    return [place for token in tokens for place in (token.start, token.end)] or [0]


def compiled(
    project: Path, run_engine: Callable[..., str], texts: Mapping[str, bytes]
) -> dict[str, dict[str, Any]]:
    """Return what the engine says of each text."""
    (project / "texts").mkdir()
    (project / "project.godot").write_text("config_version=5\n", encoding="utf-8")
    (project / "trace.gd").write_text(TRACE, encoding="utf-8")
    for name in ("loader.gd", "methods.gd"):
        shutil.copy(HERE / name, project)
    for name, text in texts.items():
        (project / "texts" / f"{name}.txt").write_bytes(text)
    printed = run_engine(project, "--script", "res://loader.gd")
    said = [json.loads(match) for match in re.findall(r"(?m)^CASE (.*)$", printed)]
    assert len(said) == len(texts), printed[-2000:]
    return {line["name"]: line for line in said}


def test_changed_scripts_are_read_as_the_engine_reads_them(
    tmp_path: Path, run_engine: Callable[..., str]
):
    rng = random.Random(20)
    sections = (HERE / "cases.txt").read_text(encoding="utf-8").split("\n===== ")[1:]
    sources = [item.split("\n", 1)[1].encode() for item in sections if "class_name" not in item]
    rewritten: dict[str, Rewritten] = {}
    texts: dict[str, bytes] = {}
    for number in range(600):
        source = changed(rng.choice(sources), rng)
        result = rewrite_script(source, lambda function: HOOK % 1, lambdas=True, check=False)
        rewritten[str(number)] = result
        texts[f"{number}"] = source
        texts[f"{number}_hooked"] = result.source
    said = compiled(tmp_path, run_engine, texts)
    loading = [name for name in rewritten if said[name]["loaded"]]
    assert len(loading) > 60
    for name in loading:
        result = rewritten[name]
        assert result.skipped == (), texts[name].decode()
        assert said[f"{name}_hooked"]["loaded"], texts[name].decode()
        found = [item for item in result.script.functions if item.kind != "lambda"]
        ours = sorted([list(item.owners), item.name] for item in found)
        assert ours == sorted(said[name]["methods"]), texts[name].decode()


def test_what_is_refused_the_engine_refuses(tmp_path: Path, run_engine: Callable[..., str]):
    refused = {
        "dedent": b"func a():\n\t\tpass\n\tpass\n",
        "indented_member": b"var a\n\tvar b\n",
        "indented_file": b"\tvar b\n",
        "open_string": b'func a():\n\treturn "x\n',
        "open_bracket": b"var a = [1,\n2\nfunc b(): pass\n",
        "wrong_bracket": b"var a = (1]\n",
        "too_many_brackets": b"var a = 1)\n",
        "old_tool": b"tool\nextends Node\n",
        "old_export": b"extends Node\nexport var a = 1\n",
        "no_body": b"func a():\nvar b\n",
        "no_colon": b"func a()\n",
        "no_name": b"func (): pass\n",
        "no_parameters": b"func a: pass\n",
        "no_variable": b"var\n",
        "no_class": b"class:\n\tpass\n",
        "no_class_body": b"class A\n\tvar b\n",
        "odd_property": b"var a:\n\tset(v): pass\n\tvar b\n",
        "headless_setter": b"var a:\n\tset(v)\n\tget: pass\n",
        "bare_lambda": b"func a():\n\tvar f = func\n",
        "empty_lambda": b"func a():\n\tvar f = [func()]\n",
        "statement": b"func a():\n\tprint()\nif true: pass\n",
    }
    said = compiled(tmp_path, run_engine, {**refused, "control": b"func a():\n\tpass\n"})
    assert [name for name, line in said.items() if line["loaded"]] == ["control"]
    for source in refused.values():
        assert rewrite_script(source, lambda function: None).skipped


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_script_inside_a_scene_records(
    tmp_path: Path, run_engine: Callable[..., str], line_end: bytes
):
    scene = b"""[gd_scene load_steps=2 format=3]

[sub_resource type="GDScript" id="GDScript_1"]
script/source = "extends Node

func _ready():
	print(\\"SAID \\" + words(\\"a\\\\\\"b\\\\tc\\"))
	get_tree().quit()

func words(what := \\"\\"): return what + \\"\xe2\x82\xac\\"
"

[node name="Main" type="Node"]
script = SubResource("GDScript_1")
""".replace(b"\n", line_end)
    result = rewrite_scene(
        scene, lambda script: rewrite_script(script.source, lambda item: HOOK % len(item.name))
    )
    assert [item.script.identifier for item in result.scripts] == ["GDScript_1"]
    (tmp_path / "project.godot").write_text("config_version=5\n", encoding="utf-8")
    (tmp_path / "trace.gd").write_text(TRACE, encoding="utf-8")
    (tmp_path / "main.tscn").write_bytes(result.source)
    printed = run_engine(tmp_path, "--quit-after", "20", "res://main.tscn")
    lines = [line for line in printed.splitlines() if line.startswith(("HIT", "SAID"))]
    assert lines == ["HIT 6", "HIT 5", 'SAID a"b\tc€']
