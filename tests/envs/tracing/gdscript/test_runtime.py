"""Traced copies played in the engine: what is recorded, and what must not break."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lanista.envs.godot.engine import Engine
from lanista.envs.tracing.gdscript import project as instrumenting
from lanista.envs.tracing.gdscript.plan import Plan, Rule
from lanista.envs.tracing.gdscript.project import Instrumented, instrument_project
from lanista.envs.tracing.gdscript.scope import GodotScope

Write = Callable[[Path, dict[str, str]], Path]
Run = Callable[..., str]

TRACE = '(load("res://__lanista__/trace.gd") as GDScript)'
QUIT = "--quit-after"


def printed(output: str, name: str) -> list[list[int]]:
    """The lists that a game printed after a word of the test's."""
    lines = (line.removeprefix(f"{name} ") for line in output.splitlines() if name in line)
    return [json.loads(line) for line in lines]


def names(made: Instrumented, ids: list[int]) -> list[str]:
    return [made.catalogue.name(number).partition(":")[2] for number in ids]


MANY_KINDS = {
    "project.godot": (
        'config_version=5\n\n[application]\n\nconfig/name="kinds"\nrun/main_scene="res://main.tscn"\n\n'
        '[autoload]\n\nGlobal="*res://global.gd"\n\n[debug]\n\n'
        "gdscript/warnings/return_value_discarded=2\n"
    ),
    "main.gd": f"""extends Node
func _ready() -> void:
	print("STARTUP ", {TRACE}.call(&"drain"))
	var bat: BaseEnemy = (load("res://bat.gd") as GDScript).new()
	bat.life = 2
	bat.hit()
	bat.die()
	var plain: BaseEnemy = BaseEnemy.new()
	plain.hit()
	var _n: int = BaseEnemy.count()
	BaseEnemy.Part.new().break_off()
	print("FIRST ", {TRACE}.call(&"drain"))
	_between()
	print("SECOND ", {TRACE}.call(&"drain"))
	print("NOTHING ", {TRACE}.call(&"drain"))
	($Embedded as Node).call(&"inside")
	var ignored: GDScript = load("res://ignored/x.gd")
	ignored.call(&"unseen")
	var made: GDScript = GDScript.new()
	made.source_code = "extends BaseEnemy\\nfunc at_run_time() -> void:\\n\\thit()\\n"
	var _error: int = made.reload()
	var late: BaseEnemy = made.new()
	late.call(&"at_run_time")
	print("THIRD ", {TRACE}.call(&"drain"))
	print("TEXT ", [FileAccess.get_file_as_string("res://reads_itself.gd").length()])
	get_tree().quit()
func _between() -> void:
	pass
""",
    "main.tscn": """[gd_scene load_steps=3 format=3]

[ext_resource type="Script" path="res://main.gd" id="1"]

[sub_resource type="GDScript" id="GDScript_ab"]
script/source = "extends Node
func inside():
	print(\\"embedded\\")
"

[node name="Main" type="Node"]
script = ExtResource("1")

[node name="Embedded" type="Node" parent="."]
script = SubResource("GDScript_ab")
""",
    "global.gd": "extends Node\nfunc _ready() -> void:\n\tpass\n",
    "base_enemy.gd": """class_name BaseEnemy
extends RefCounted
var life: int = 3:
	set(v): life = v
func _init() -> void:
	pass
func hit() -> void:
	pass
func die() -> void:
	pass
static func count() -> int:
	return 1
class Part:
	func break_off() -> void:
		pass
""",
    "bat.gd": "extends BaseEnemy\nfunc die() -> void:\n\tsuper()\n",
    "reads_itself.gd": "extends Node\nfunc text() -> void:\n\tpass\n",
    "ignored/.gdignore": "",
    "ignored/x.gd": "extends RefCounted\nstatic func unseen() -> void:\n\tpass\n",
}


@pytest.fixture(scope="module")
def kinds(
    tmp_path_factory: pytest.TempPathFactory,
    write_project: Write,
    found_engine: Engine,
    run_engine: Run,
) -> tuple[Instrumented, str]:
    folder = tmp_path_factory.mktemp("kinds")
    source = write_project(folder / "game", MANY_KINDS)
    scope = GodotScope(exclude=("reads_itself",))
    made = instrument_project(source, folder / "copy", engine=found_engine, scope=scope)
    return made, run_engine(made.path, QUIT, "300")


def test_every_script_loads_and_the_engine_lists_the_same_functions(
    kinds: tuple[Instrumented, str],
) -> None:
    made, output = kinds
    assert made.checked
    assert made.skipped == ()
    assert made.failing_before == {}
    assert made.differences == ()
    assert "SCRIPT ERROR" not in output


def test_startup_comes_apart_from_the_first_drain(kinds: tuple[Instrumented, str]) -> None:
    made, output = kinds
    (startup,) = printed(output, "STARTUP")
    assert names(made, startup) == ["Global._ready", "Main._ready"]


def test_inherited_methods_go_to_the_class_of_the_object(kinds: tuple[Instrumented, str]) -> None:
    made, output = kinds
    (first,) = printed(output, "FIRST")
    assert names(made, first) == [
        "Bat._init",
        "Bat.@life_setter",
        "Bat.hit",
        "Bat.die",
        "BaseEnemy.die",
        "BaseEnemy._init",
        "BaseEnemy.hit",
        "BaseEnemy.count",
        "BaseEnemy.Part.break_off",
    ]


def test_a_drain_takes_all_and_once(kinds: tuple[Instrumented, str]) -> None:
    made, output = kinds
    (second,) = printed(output, "SECOND")
    assert names(made, second) == ["Main._between"]
    assert printed(output, "NOTHING") == [[]]


def test_embedded_scripts_are_seen_and_those_made_at_run_time_fall_to_their_base(
    kinds: tuple[Instrumented, str],
) -> None:
    made, output = kinds
    (third,) = printed(output, "THIRD")
    assert "embedded" in output
    assert names(made, third) == ["Main.inside", "BaseEnemy._init", "BaseEnemy.hit"]


def test_a_script_left_out_reads_itself_unchanged(kinds: tuple[Instrumented, str]) -> None:
    _, output = kinds
    assert printed(output, "TEXT") == [[len(MANY_KINDS["reads_itself.gd"])]]


def test_other_threads_neither_record_nor_break_anything(
    tmp_path: Path, write_project: Write, run_engine: Run
) -> None:
    files = {
        "main.gd": f"""extends Node
func _ready():
	var threads = []
	for i in 4:
		var thread = Thread.new()
		thread.start(work)
		threads.append(thread)
	for i in 50000:
		step()
	for thread in threads:
		thread.wait_to_finish()
	var calls = Array({TRACE}.drain())
	print("COUNT ", [calls.size(), calls.count(calls[-1])])
	print("OTHERS ", [int({TRACE}.other_threads)])
	get_tree().quit()
func work():
	for i in 50000:
		step()
		Kind.new().shared()
func step():
	pass
class Kind:
	func shared():
		pass
class Sub extends Kind:
	pass
""",
    }
    source = write_project(tmp_path / "game", files)
    made = instrument_project(source, tmp_path / "copy")
    assert made.threads
    output = run_engine(made.path, QUIT, "3000")
    assert printed(output, "COUNT") == [[50001, 50000]]
    assert printed(output, "OTHERS") == [[1]]


def test_calls_that_nobody_drains_are_capped_and_told(
    tmp_path: Path, write_project: Write, run_engine: Run
) -> None:
    files = {
        "main.gd": f"""extends Node
var frames = 0
func _process(_delta):
	frames += 1
	if frames <= 3:
		for i in 500000:
			step()
	elif frames == 5:
		print("CUT ", [{TRACE}.drain().size(), int({TRACE}.truncated)])
		step()
		print("WHOLE ", [{TRACE}.drain().size(), int({TRACE}.truncated)])
		{TRACE}.take_regularly()
		for i in 1500000:
			step()
		print("CUT ", [{TRACE}.drain().size(), int({TRACE}.truncated)])
		step()
		print("WHOLE ", [{TRACE}.drain().size(), int({TRACE}.truncated)])
		get_tree().quit()
func step():
	pass
""",
    }
    source = write_project(tmp_path / "game", files)
    made = instrument_project(source, tmp_path / "copy")
    output = run_engine(made.path, QUIT, "300")
    found = printed(output, "CUT")
    assert len(found) == 2
    for size, cut in found:
        assert 1 << 20 <= size < (1 << 20) + 10
        assert cut == 1
    assert printed(output, "WHOLE") == [[1, 0], [1, 0]]


def test_nothing_is_kept_in_the_editor(
    tmp_path: Path, write_project: Write, run_engine: Run
) -> None:
    files = {
        "project.godot": (
            'config_version=5\n\n[application]\n\nconfig/name="tool"\n\n[autoload]\n\n'
            'Watcher="*res://main.gd"\n'
        ),
        "main.gd": f"""@tool
extends Node
var frames = 0
func _process(_delta):
	for i in 100:
		step()
	frames += 1
	if frames % 20 == 0:
		print("KEPT ", [int(Engine.is_editor_hint()), frames, {TRACE}.calls.size()])
func step():
	pass
""",
    }
    source = write_project(tmp_path / "game", files)
    made = instrument_project(source, tmp_path / "copy")
    output = run_engine(made.path, "--editor", QUIT, "200")
    kept = printed(output, "KEPT")
    assert len(kept) > 3
    assert all(editing == 1 and size <= 202 for editing, _, size in kept)


def test_a_script_that_only_hooks_break_is_put_back(
    tmp_path: Path,
    write_project: Write,
    found_engine: Engine,
    run_engine: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {
        "main.gd": (
            "extends Node\nfunc _ready():\n\tprint(\"SUM \", [load('res://sub.gd').new().one()])\n"
            "\tget_tree().quit()\n"
        ),
        "base.gd": "class_name Base\nextends RefCounted\nfunc one():\n\treturn 1\n",
        "sub.gd": "extends Base\nfunc two():\n\treturn 2\n",
        "bad.gd": "extends Node\nfunc f(:\n\tpass\nfunc g():\n\tpass\n",
        "broken.gd": "extends Node\nfunc f():\n\treturn no_such_name\n",
    }
    source = write_project(tmp_path / "game", files)
    real = instrumenting.hook_text

    def spoiled(plan: Plan, rule: Rule, *, threads: bool) -> str:
        text = real(plan, rule, threads=threads)
        wrong = rule.default == names_of.index("base:Base.one")
        return "no_such_function()" if wrong else text

    names_of = [
        item.name for item in instrumenting.script_catalogue(source, "definition").functions
    ]
    monkeypatch.setattr(instrumenting, "hook_text", spoiled)
    made = instrument_project(source, tmp_path / "copy", engine=found_engine, scheme="definition")
    skipped = {item.file: item for item in made.skipped}
    assert set(skipped) >= {"bad.gd", "base.gd"}
    assert (skipped["bad.gd"].line, skipped["bad.gd"].functions) == (2, 2)
    assert "not with hooks" in skipped["base.gd"].why
    assert "no_such_function" in skipped["base.gd"].why
    assert set(made.failing_before) == {"bad.gd", "broken.gd"}
    assert "no_such_name" in made.failing_before["broken.gd"]
    assert (made.path / "base.gd").read_text() == files["base.gd"]
    assert (made.path / "bad.gd").read_text() == files["bad.gd"]
    assert printed(run_engine(made.path, QUIT, "300"), "SUM") == [[1]]


def test_a_project_that_ends_at_once_is_not_checked_and_says_so(
    tmp_path: Path, write_project: Write, found_engine: Engine
) -> None:
    files = {
        "project.godot": (
            'config_version=5\n\n[application]\n\nconfig/name="ends"\n'
            'run/main_scene="res://main.tscn"\n\n[autoload]\n\nEnd="*res://end.gd"\n'
        ),
        "end.gd": "extends Node\nfunc _init():\n\tOS.kill(OS.get_process_id())\n",
        "main.gd": "extends Node\nfunc _ready():\n\tpass\n",
    }
    source = write_project(tmp_path / "game", files)
    made = instrument_project(source, tmp_path / "copy", engine=found_engine)
    assert not made.checked
    assert "ended before its scripts were loaded" in made.unchecked
    assert made.functions == 2
    assert not list(made.path.rglob("load_check*"))


def test_hooks_and_runtime_raise_no_warning(
    tmp_path: Path, write_project: Write, run_engine: Run, found_engine: Engine
) -> None:
    listing = (
        "extends SceneTree\nfunc _init():\n\tfor item in ProjectSettings.get_property_list():\n"
        "\t\tif item.name.begins_with('debug/gdscript/warnings/') and item.type == TYPE_INT:\n"
        "\t\t\tprint('WARNING ', item.name.trim_prefix('debug/'))\n\tquit()\n"
    )
    empty = write_project(tmp_path / "empty", {"main.gd": "extends Node\n", "list.gd": listing})
    output = run_engine(empty, "--script", "list.gd")
    warnings = [line.split()[1] for line in output.splitlines() if line.startswith("WARNING ")]
    assert len(warnings) > 30
    strict = "\n".join(f"{name}=2" for name in warnings)
    loading = (
        "extends SceneTree\nfunc _init() -> void:\n"
        "\tfor path: String in ['res://game.gd', 'res://__lanista__/trace.gd']:\n"
        "\t\tvar script: GDScript = load(path) as GDScript\n"
        "\t\tprint('LOADS ', [int(script.can_instantiate())])\n\tquit()\n"
    )
    game = """extends RefCounted
class Kind:
	func shared() -> void:
		pass
class Sub extends Kind:
	func own() -> int:
		return 1
"""
    source = write_project(
        tmp_path / "game", {"main.gd": "extends Node\n", "game.gd": game, "load.gd": loading}
    )
    made = instrument_project(source, tmp_path / "copy")
    settings = made.path / "project.godot"
    head, _, _ = settings.read_text().partition("[autoload]")
    settings.write_text(f"{head}\n[debug]\n\n{strict}\n")
    output = run_engine(made.path, "--script", "load.gd")
    assert "Warning treated as error" not in output
    assert printed(output, "LOADS") == [[1], [1]]
