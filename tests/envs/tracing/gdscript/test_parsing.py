"""What is read off a script, and what is refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanista.envs.tracing.gdscript import oracles, parsing
from lanista.envs.tracing.gdscript.oracles import Confirmation, confirm
from lanista.envs.tracing.gdscript.parsing import ScriptClass, parse_script


def test_declarations_of_a_script():
    script = parse_script(
        """@tool
@abstract
class_name Mob extends "res://base.gd".Inner
class Part extends Node2D.Sub:
	class Bolt: pass
@abstract class Loose:
	extends Part
func act(with = func(x): return x):
	var f := func named(): pass
	f.call()
static func make(): return (func(): return 1).call()
class One: func two(): return func(): pass
"""
    )
    assert script.tool
    assert script.class_name == "Mob"
    assert script.extends == '"res://base.gd".Inner'
    assert script.classes == (
        ScriptClass((), '"res://base.gd".Inner', 1, abstract=True),
        ScriptClass(("Part",), "Node2D.Sub", 4, abstract=False),
        ScriptClass(("Part", "Bolt"), "", 5, abstract=False),
        ScriptClass(("Loose",), "Part", 6, abstract=True),
        ScriptClass(("One",), "", 12, abstract=False),
    )
    assert [(item.qualname, item.kind, item.line, item.static) for item in script.functions] == [
        ("act.<anonymous lambda>", "lambda", 8, False),
        ("act", "function", 9 - 1, False),
        ("act.named", "lambda", 9, False),
        ("make", "static", 11, True),
        ("make.<anonymous lambda>", "lambda", 11, True),
        ("One.two", "function", 12, False),
        ("One.two.<anonymous lambda>", "lambda", 12, False),
    ]
    assert script.problems == ()
    assert script.threads == ()


def test_lambdas_of_static_variables_have_no_self():
    source = """static var a := [func b(): pass]; var c = func d(): pass
static var e = func f():
	return func g(): pass
static var h := 1:
	set(v): h = (func i(): return v).call()
var j = func k(): pass
"""
    functions = parse_script(source).functions
    assert {item.name for item in functions if item.static} == {*"bfgi", "@h_setter"}
    assert {item.name for item in functions if not item.static} == {*"dk"}


def test_text_and_bytes_give_the_same_offsets():
    text = 'func größe(x = "😀"): return x'
    (function,) = parse_script(text).functions
    assert parse_script(text.encode()).functions == (function,)
    assert text.encode()[function.offset :] == b"return x"


@pytest.mark.parametrize("extends", ["Node", "A.B", '"res://a.gd"', '"res://a.gd".B', ""])
@pytest.mark.parametrize("form", ["{0}\n", "class_name K {0}\n", "class_name K\n{0}\nvar a\n"])
def test_what_a_script_extends(form: str, extends: str):
    source = form.format(f"extends {extends}" if extends else "")
    assert parse_script(source).extends == extends


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("var t := Thread.new()", ("Thread",)),
        ("func a(): WorkerThreadPool.add_task(b)", ("WorkerThreadPool",)),
        ("func a():\n\tself.process_thread_group = 2", ("process_thread_group",)),
        ("func a(): ResourceLoader.load_threaded_request(p)", ("load_threaded_request",)),
        ('func a(): print("Thread") # Thread', ()),
        ("var ThreadLike = 1", ()),
    ],
)
def test_use_of_threads_is_seen(source: str, names: tuple[str, ...]):
    assert parse_script(source).threads == names


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        ("func a():\n\t\tpass\n\tpass\n", 3, "indentation matches"),
        ("var a\n\tvar b\n", 2, "unexpected indentation"),
        ("\tvar b\n", 1, "unexpected indentation"),
        ('func a():\n\treturn "x\n', 2, "string is not closed"),
        ("func a():\n\treturn '''x''\n", 2, "string is not closed"),
        ("var a = [1,\n2\nfunc b(): pass\n", 1, "bracket is not closed"),
        ("var a = (1]\n", 1, "closes no bracket"),
        ("var a = 1)\n", 1, "closes no bracket"),
        ("tool\nextends Node\n", 1, "“tool” begins no declaration"),
        ("extends Node\nexport var a = 1\n", 2, "“export” begins no declaration"),
        ("func a():\nvar b\n", 1, "no body"),
        ("func a()\n", 1, "no body"),
        ("func a(); var b\n", 1, "no body"),
        ("func (): pass\n", 1, "no name"),
        ("func a: pass\n", 1, "no list of parameters"),
        ("var\n", 1, "no name"),
        ("class:\n\tpass\n", 1, "no name"),
        ("class A\n\tvar b\n", 1, "no body"),
        ("var a:\n\tset(v): pass\n\tvar b\n", 3, "only “get” and “set”"),
        ("var a:\n\tset(v)\n\tget: pass\n", 2, "only “get” and “set”"),
        ("func a():\n\tvar f = func\n", 2, "no list of parameters"),
        ("func a():\n\tvar f = [func()]\n", 2, "no body"),
        ("func a():\n\tx()\nif true: pass\n", 3, "“if” begins no declaration"),
        ("GDSC\0\0", 1, "not text"),
        (b"func a(): return '\xff'\n", 1, "not UTF-8"),
        ("class A: " * 3000 + "pass", 1, "nested too deeply"),
    ],
)
def test_what_no_engine_reads_is_refused_with_its_line(source: str | bytes, line: int, why: str):
    script = parse_script(source)
    (problem,) = script.problems
    assert problem.line == line
    assert why in problem.why
    assert script.functions == ()


def test_functions_of_a_refused_script_are_counted():
    source = "export var a\n# func no():\nfunc b(): pass\n\tstatic func c():\nvar func_d\n"
    assert parse_script(source).unseen == 2


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80)))
@example(b"\xef\xbb\xbf")
@example("\ud800")
def test_any_input_gives_an_answer(source: bytes | str):
    parse_script(source, check=False)


KEYWORDS = ["func", "var", "class", "static", "enum", "get", "set", "extends", "class_name", "pass"]
SIGNS = [
    "if",
    "return",
    "a",
    "b",
    "r",
    "1",
    *"()[]{}:;=,.$%@&#\\'\"\n\t ",
    "->",
    '"""',
    "\\\n",
    "\r\n",
]


@given(st.lists(st.sampled_from(KEYWORDS + SIGNS), max_size=40).map(" ".join))
def test_any_order_of_words_gives_an_answer(source: str):
    script = parse_script(source, check=False)
    assert bool(script.problems) == (script.parser == "")
    data = source.encode()
    for function in script.functions:
        if function.kind != "abstract":
            assert not data[function.offset : function.offset + 1].isspace()


SAMPLE = (
    b'func a(): # "\n\t@warning_ignore("x")\n\tvar f = func(): return 1\n'
    b'var b:\n\tget: return "\xc3\xa9"\n'
)
BODIES = frozenset({SAMPLE.index(text) for text in (b"@w", b"return 1", b'return "')})


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("read", [oracles.by_tree_sitter, oracles.by_gdtoolkit])
def test_each_oracle_sees_the_first_statements(read, line_end: bytes, mark: bytes):
    source = mark + SAMPLE.replace(b"\n", line_end)
    ours = {item.offset for item in parse_script(source, check=False).functions}
    assert read(source) == ours
    if not mark and line_end == b"\n":
        assert ours == BODIES


def test_an_oracle_that_reads_a_file_in_another_way_disputes_it():
    assert confirm(SAMPLE, BODIES) == Confirmation("tree-sitter", None)
    assert confirm(SAMPLE, BODIES - {min(BODIES)}) == Confirmation("tree-sitter", min(BODIES))


def test_a_file_that_only_the_second_oracle_reads_is_confirmed_by_it():
    source = b"func a(): if b: return 1\n"
    assert oracles.by_tree_sitter(source) is None
    assert parse_script(source).parser == "lanista+gdtoolkit"


def test_a_body_that_begins_with_a_comment_at_the_margin_is_not_disputed():
    source = b"func a():\n#\tb\n\tpass\nfunc c():\n\tvar d := func():\n# e\n\t\tpass\n"
    assert oracles.by_tree_sitter(source) is None
    script = parse_script(source)
    assert script.parser == "lanista+gdtoolkit"
    assert [source[item.offset :][:3] for item in script.functions] == [b"pas", b"var", b"pas"]


def test_a_file_that_no_oracle_reads_is_read_all_the_same():
    source = b"func a(): b.c(func(): if d: e = 1)\n"
    assert confirm(source, frozenset()) == Confirmation("", None)
    script = parse_script(source)
    assert script.parser == "lanista"
    assert len(script.functions) == 2


def test_a_disputed_file_is_refused(monkeypatch: pytest.MonkeyPatch):
    offset = SAMPLE.index(b"var b")
    monkeypatch.setattr(parsing, "confirm", lambda source, bodies: Confirmation("other", offset))
    script = parse_script(SAMPLE)
    assert script.problems[0].line == 4
    assert "other" in script.problems[0].why
    assert parse_script(SAMPLE, check=False).parser == "lanista"
