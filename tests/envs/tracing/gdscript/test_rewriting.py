"""Hooks: where they stand, and that nothing else changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanista.envs.tracing.gdscript.rewriting import Insertion, insert, remove, rewrite_script

SOURCE = b"func a(): return 1\nvar b = func(): pass\nfunc c():\n\t# why\n\tpass\n"


def test_a_hook_is_asked_for_once_per_function_and_may_be_refused():
    asked = []

    def hook(function):
        asked.append(function.name)
        return "hit(1)" if function.name == "c" else None

    result = rewrite_script(SOURCE, hook)
    assert asked == ["a", "c"]
    assert [function.name for function in result.functions] == ["c"]
    assert result.source == SOURCE.replace(b"\tpass", b"\thit(1); pass")


@pytest.mark.parametrize("hook", ["hit(1)", "hit(1);", " hit(1) ; "])
def test_a_semicolon_at_the_end_of_a_hook_makes_no_difference(hook: str):
    result = rewrite_script(SOURCE, lambda function: hook, lambdas=True)
    assert result.source.count(b"hit(1); ") == 3
    assert result.source.replace(b"hit(1); ", b"") == SOURCE


@pytest.mark.parametrize("hook", ["", ";", "a()\nb()", "a() # no", "a()\rb()"])
def test_a_hook_that_is_no_statement_on_one_line_is_refused(hook: str):
    with pytest.raises(ValueError, match="one statement on one line"):
        rewrite_script(SOURCE, lambda function: hook)


def test_a_script_that_cannot_be_read_comes_back_unchanged_with_the_reason():
    source = SOURCE + b"export var x\n"
    result = rewrite_script(source, lambda function: "hit(1)")
    assert result.source == source
    assert result.functions == ()
    assert result.skipped[0].line == 6
    assert result.script.unseen == 2


STRICT = """extends Node
var _speed: int = 0:
	set(to):
		@warning_ignore("integer_division")
		_speed = to / 2
	get: return _speed
func _ready() -> void:
	@warning_ignore("integer_division")
	var halves: Array[int] = [
		7 / 2]
	print(halves)
	get_tree().quit()
func pause(signal_: Signal) -> void:
	await signal_
static func make() -> int:
	@warning_ignore("unused_variable") var width: int = 3
	@warning_ignore_start("integer_division")
	return 9 / 2
	@warning_ignore_restore("integer_division")
"""
WARNINGS = [
    "return_value_discarded", "integer_division", "unused_variable", "untyped_declaration",
    "inferred_declaration", "unsafe_property_access", "unsafe_method_access", "unsafe_cast",
    "unsafe_call_argument", "standalone_expression", "unreachable_code", "redundant_await",
    "static_called_on_instance", "missing_tool", "unassigned_variable", "shadowed_variable",
    "unused_parameter", "unused_private_class_variable", "confusable_local_usage",
]  # fmt: skip


@pytest.mark.parametrize(
    ("hook", "runs"), [(None, True), ("hit(7)", True), ("calls.append(7)", False)]
)
def test_hooks_raise_no_warning_where_all_warnings_are_errors(
    tmp_path: Path, run_engine: Callable[..., str], *, hook: str | None, runs: bool
):
    settings_ = "\n".join(f"gdscript/warnings/{name}=2" for name in WARNINGS)
    (tmp_path / "project.godot").write_text(f"config_version=5\n\n[debug]\n\n{settings_}\n")
    (tmp_path / "trace.gd").write_text(
        "extends Object\nstatic var calls: PackedInt32Array = PackedInt32Array()\n"
        "static func hit(id: int) -> void:\n"
        '\t@warning_ignore("return_value_discarded")\n\tcalls.append(id)\n'
    )
    statement = hook and f'preload("res://trace.gd").{hook};'
    result = rewrite_script(STRICT.encode(), lambda function: statement)
    (tmp_path / "main.gd").write_bytes(result.source)
    (tmp_path / "main.tscn").write_text(
        '[gd_scene load_steps=2 format=3]\n\n[ext_resource type="Script" path="res://main.gd" '
        'id="1"]\n\n[node name="Main" type="Node"]\nscript = ExtResource("1")\n'
    )
    printed = run_engine(tmp_path, "--quit-after", "20", "res://main.tscn")
    assert ("[3]" in printed) == runs
    assert ("error" not in printed.lower()) == runs


@dataclass
class Text:
    """A script made up line by line, with the functions that it must be found to have."""

    indent: str
    lines: list[str] = field(default_factory=list)
    functions: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)

    def add(self, depth: int, *lines: str) -> None:
        for line in lines:
            self.lines.append(self.indent * depth + line.replace("\t", self.indent))


BODIES = [
    ["pass"],
    ['"""doc', "func no():", '"""', "return 1"],
    ["", "# func no(): pass", "", "return {", '1: "}", # {', "}"],
    ['@warning_ignore("x")', "var a = [", "1", "]"],
    ["if a:", "\tfor b in c:", "\t\treturn b", "\tpass", "return 2"],
    ["await go"],
    ["match a:", "\t1: pass", "\t_:", "\t\treturn"],
    ['return "a', 'func no(): return "'],
    ["return a \\", "\t+ b"],
    ["return $func/class.b % %func"],
]
HEADERS = ["{0}()", "{0}(a = ':)#', b := [1, {{2: 3}}]) -> Array[int]", "{0}(\n\t\ta, # )\n)"]
NAMES = st.sampled_from(["go", "größe", "_ready", "set_", "match", "func_", "名"])


@st.composite
def scripts(draw: st.DrawFn) -> tuple[bytes, list[tuple[tuple[str, ...], str, str]]]:
    text = Text(draw(st.sampled_from(["\t", "  ", "    "])))
    text.add(0, draw(st.sampled_from(["extends Node", "", "class_name A extends 'b'.C;"])))
    _members(draw, text, 0, ())
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    whole = line_end.join("\n".join(text.lines).split("\n"))
    whole = draw(st.sampled_from(["", "\ufeff"])) + whole + draw(st.sampled_from(["", line_end]))
    return whole.encode(), text.functions


def _members(draw: st.DrawFn, text: Text, depth: int, owners: tuple[str, ...]) -> None:
    kinds = ["short", "long", "variable", "property", "short property", "by name", "abstract"]
    if depth < 3:
        kinds += ["class"]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5)):
        name = draw(NAMES)
        static = draw(st.sampled_from(["", "static "]))
        body = draw(st.sampled_from(BODIES))
        if draw(st.booleans()):
            text.lines.append(draw(st.sampled_from(["", "# func no():", "\t\t  # at odds", "  "])))
        header = draw(st.sampled_from(HEADERS)).format(name)
        function = "static" if static else "function"
        if kind == "short":
            text.add(depth, f"{static}func {header}: return 1; # func no(): pass")
            text.functions.append((owners, name, function))
        elif kind == "long":
            text.add(depth, f"@rpc('any', \"x)\") {static}func {header}: # ):")
            text.add(depth + 1, *body)
            text.functions.append((owners, name, function))
        elif kind == "variable":
            text.add(depth, f"{static}var {name} := 1; const B = [func(): pass, '''func no():''']")
            text.functions.append((owners, "<anonymous lambda>", "lambda"))
        elif kind == "property":
            text.add(depth, f"{static}var {name}: int = 3:", "\tset(a):")
            text.add(depth + 2, *body)
            text.add(depth + 1, "get:")
            text.add(depth + 2, *body)
            text.functions.append((owners, f"@{name}_setter", "accessor"))
            text.functions.append((owners, f"@{name}_getter", "accessor"))
        elif kind == "short property":
            text.add(depth, f"var {name}:", "\tget(): return 4")
            text.functions.append((owners, f"@{name}_getter", "accessor"))
        elif kind == "by name":
            text.add(depth, f"var {name}: int:", "\tget = _a, set = _b")
        elif kind == "abstract":
            text.add(depth, f"@abstract func {header}")
            text.functions.append((owners, name, "abstract"))
        else:
            text.add(depth, f"class {name} extends Node:")
            _members(draw, text, depth + 1, (*owners, name))


@settings(max_examples=150, deadline=None)
@given(scripts(), st.booleans())
def test_made_up_scripts_get_a_hook_per_function_and_nothing_else(made, lambdas: bool):
    source, functions = made
    result = rewrite_script(source, lambda function: "hit(12345);", lambdas=lambdas, check=False)
    assert result.skipped == ()
    found = sorted((item.owners, item.name, item.kind) for item in result.script.functions)
    assert found == sorted(functions)
    wanted = [item for item in functions if item[2] != "abstract"]
    if not lambdas:
        wanted = [item for item in wanted if item[2] != "lambda"]
    assert len(result.functions) == result.source.count(b"hit(12345); ") == len(wanted)
    assert remove(result.source, result.insertions) == source
    assert result.source.replace(b"hit(12345); ", b"") == source
    assert result.source.count(b"\n") == source.count(b"\n")


@given(st.binary(max_size=60), st.data())
def test_insertions_can_be_taken_out_again(source: bytes, data: st.DataObject):
    offsets = st.integers(0, len(source))
    one = st.builds(Insertion, offsets, st.binary(max_size=5))
    insertions = data.draw(st.lists(one, max_size=6))
    changed = insert(source, insertions)
    assert len(changed) == len(source) + sum(len(text) for _, text in insertions)
    assert remove(changed, insertions) == source
