"""Every kind of function in a made-up module, against an interpreter that watches the original."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Scheme
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer, build_catalogue

SOURCE = '''
"""A module with every kind of function."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools


def plain(x):
    """Only a docstring."""


def closure(n):
    total = 0
    def inner(k):
        nonlocal total
        total += k
        return (lambda: total + n)()
    return inner


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 2


@contextlib.contextmanager
def managed():
    yield 5


def generator(n):
    """With a docstring."""
    for i in range(n):
        yield i


async def coroutine(x):
    await asyncio.sleep(0)
    return [y async for y in agen(x)]


async def agen(x):
    for i in range(x):
        yield i


class static_property:
    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner=None):
        return self.function()


class Base:
    registry = []

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Base.registry.append(cls.__name__)

    def __init__(self, x):
        self.x = x

    @property
    def value(self):
        return self.x

    @value.setter
    def value(self, new):
        self.x = new

    @staticmethod
    def static(a, b=lambda: 3):
        return b() + a

    @classmethod
    def make(cls, x):
        return cls(x)

    @static_property
    def constant():
        return 7

    def __private(self):
        return 1

    def call_private(self):
        return self.__private()

    def work(self):
        return sum(v for v in self if v)

    def __iter__(self):
        yield from (self.x, 1)


class Child(Base):
    def __init__(self, x):
        super().__init__(x + 1)

    def work(self):
        return super().work() + Base.work(self)


if len(__name__) > 0:
    def chosen():
        return "first"
else:
    def chosen():
        return "second"


@dataclasses.dataclass
class Point:
    a: int
    def norm(self): return abs(self.a)


two = (lambda: 1, lambda: 2)


def fails(x):
    """Raises."""

    y = x
    return (
        1 / (y - y)
    )


def everything():
    plain(1)
    add = closure(2)
    add(3), add(4)
    cached(1), cached(1), cached.__wrapped__(2)
    with managed() as five:
        list(generator(five))
    generator(1)
    late = (plain(i) for i in range(3))
    plain(9)
    next(late)
    nested = [list(x for x in (y for y in range(2))) for _ in range(2)]
    asyncio.run(coroutine(2))
    b, c = Base(1), Child.make(2)
    b.value = 3
    b.value + c.value + Base.static(1) + b.constant
    c.value = 4
    b.call_private(), c.call_private(), b.work(), c.work()
    Point(-3).norm()
    two[0](), two[1](), chosen()
    return nested, sorted([3, 1], key=lambda k: -k), {k: (lambda: k)() for k in range(2)}
'''


def write(folder: Path, name: str, source: str) -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(source))
    importlib.invalidate_caches()


def watched(module: ModuleType, play: Callable[[], Any]) -> list[tuple[str, int]]:
    """Return what sys.monitoring sees of a module: qualified name and first line of each start."""
    calls: list[tuple[str, int]] = []
    file = module.__file__

    def started(code: CodeType, _: int) -> None:
        if code.co_filename == file:
            calls.append((code.co_qualname, code.co_firstlineno))

    sys.monitoring.use_tool_id(2, "test")
    sys.monitoring.register_callback(2, sys.monitoring.events.PY_START, started)
    sys.monitoring.set_events(2, sys.monitoring.events.PY_START)
    try:
        play()
    finally:
        sys.monitoring.set_events(2, 0)
        sys.monitoring.free_tool_id(2)
    return calls


def recorded(tracer: Tracer) -> list[str]:
    return [tracer.catalogue.name(call).split(":")[1] for call in tracer.drain().ids]


@pytest.mark.parametrize("late", [False, True], ids=["imported before", "imported later"])
def test_every_kind_is_recorded_as_the_interpreter_sees_the_original(
    folder: Path, late: bool
) -> None:
    name = f"kinds_{'late' if late else 'early'}"
    write(folder, name, SOURCE)
    scope = Scope((name,))
    if not late:
        module = importlib.import_module(name)
        expected = watched(module, module.everything)
        module.cached.cache_clear()
    with Tracer(scope, "definition") as tracer:
        module = importlib.import_module(name)
        tracer.clear()
        module.everything()
        trace = tracer.drain()
        functions = [tracer.catalogue.functions[call] for call in trace.ids]
    if late:
        module.cached.cache_clear()
        expected = watched(module, module.everything)
    got = [
        (re.sub(r"#\d+$|\.setter$", "", item.name.split(":")[1]), item.line) for item in functions
    ]
    assert got == expected
    seen = {item.name.split(":")[1] for item in functions}
    assert {
        "closure.<locals>.inner.<locals>.<lambda>",
        "cached",
        "managed",
        "agen",
        "Base.value.setter",
        "Base.constant",
        "Base.__private",
        "everything.<locals>.<genexpr>",
        "Base.make",
        "<lambda>#2",
    } <= seen


def test_results_metadata_and_lines_stay_and_taking_out_restores_all(folder: Path) -> None:
    write(folder, "kept", SOURCE)
    kept = importlib.import_module("kept")
    old = {name: value.__code__ for name, value in vars(kept).items() if inspect.isfunction(value)}
    work, members = kept.Base.work.__code__, set(vars(kept.Child))
    result, inner = kept.everything(), kept.closure(1)
    held = kept.Child(1).call_private

    def failure() -> list[tuple[int | None, str]]:
        try:
            kept.fails(1)
        except ZeroDivisionError as error:
            return [(f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)[1:]]
        raise AssertionError

    lines, signature = failure(), str(inspect.signature(kept.Base.static))
    with Tracer(Scope(("kept",)), "class") as tracer:
        assert kept.everything() == result
        assert failure() == lines
        assert kept.plain.__doc__ == "Only a docstring."
        assert kept.Child.work.__code__.co_filename == kept.__file__
        assert isinstance(hash(kept.Base.work.__code__), int)
        assert str(inspect.signature(kept.Base.static)) == signature
        tracer.clear()
        inner(1)
        held()
        assert recorded(tracer)[:1] == ["closure.<locals>.inner"]
        made = kept.closure(5)
        assert made(1) == 6
    for name, code in old.items():
        assert getattr(kept, name).__code__ is code
    assert kept.Base.work.__code__ is work
    assert set(vars(kept.Child)) == members
    tracer.clear()
    made(2), inner(1), kept.everything()
    assert len(tracer.drain()) == 0


def test_class_names_the_concrete_class_and_calls_of_a_base(folder: Path) -> None:
    write(folder, "classes", SOURCE)
    classes = importlib.import_module("classes")
    with Tracer(Scope(("classes",)), "class") as tracer:
        c = classes.Child(2)
        assert recorded(tracer) == ["Child.__init__", "Child.super(Base).__init__"]
        c.value = c.value + 1
        assert recorded(tracer) == ["Child.value", "Child.value.setter"]
        c.work()
        own = [name for name in recorded(tracer) if "work" in name and "<" not in name]
        assert own == ["Child.work", "Child.super(Base).work", "Child.super(Base).work"]
        classes.Child.make(1)
        assert recorded(tracer)[0] == "Child.make"
        classes.Base.call_private(c)
        assert recorded(tracer)[0] == "Child.call_private"

        class RunTime(classes.Child):  # type: ignore[misc]
            pass

        tracer.clear()
        RunTime(1).call_private()
        assert recorded(tracer)[:3] == [
            "Child.__init__",
            "Child.super(Base).__init__",
            "Child.call_private",
        ]


def test_edges_name_caller_and_callee(folder: Path) -> None:
    write(folder, "edges", "def a():\n    return b() + b()\n\ndef b():\n    return 1\n")
    edges = importlib.import_module("edges")
    with Tracer(Scope(("edges",)), "edge") as tracer:
        edges.a()
        names = [tracer.catalogue.name(call) for call in tracer.drain().ids]
    assert names == ["outside -> edges:a", "edges:a -> edges:b", "edges:a -> edges:b"]


@pytest.mark.parametrize("scheme", ["definition", "class"])
def test_a_module_without_source_is_recorded_by_monitoring(folder: Path, scheme: Scheme) -> None:
    import py_compile

    write(
        folder, "bare", "def a(n):\n    return [b() for _ in range(n)]\n\ndef b():\n    return 1\n"
    )
    py_compile.compile(str(folder / "bare.py"), cfile=str(folder / "bare.pyc"))
    (folder / "bare.py").unlink()
    importlib.invalidate_caches()
    bare = importlib.import_module("bare")
    with Tracer(Scope(("bare",)), scheme) as tracer:
        bare.a(2)
        assert recorded(tracer) == ["a", "b", "b"]
    bare.a(2)
    assert len(tracer.drain()) == 0


def test_only_a_priority_list_is_recorded(folder: Path) -> None:
    write(folder, "chosen_ones", SOURCE)
    module = importlib.import_module("chosen_ones")
    scope = Scope(("chosen_ones",), only=("Child.value*", "plain"))
    with Tracer(scope, "class") as tracer:
        names = {item.name.split(":")[1] for item in tracer.catalogue.functions}
        assert names == {"Child.value", "Child.value.setter", "plain"}
        module.everything()
        assert set(recorded(tracer)) == names
    with pytest.raises(InputError, match="nothing_like"):
        Tracer(Scope(("chosen_ones",), only=("nothing_like",)))


def test_tracers_share_nest_and_refuse(folder: Path) -> None:
    write(folder, "shared_one", "def a():\n    return 1\n")
    write(folder, "shared_two", "def b():\n    return 1\n")
    one, two = importlib.import_module("shared_one"), importlib.import_module("shared_two")
    original = one.a.__code__
    first, second = Tracer(Scope(("shared_one",))), Tracer(Scope(("shared_one",)))
    other = Tracer(Scope(("shared_two",)))
    with first, second, other, first:
        one.a(), two.b()
        assert len(first.drain()) == 1
        assert len(other.drain()) == 1
        with pytest.raises(InputError, match="under scheme class"):
            Tracer(Scope(("shared_one",)), "definition").install()
    assert one.a.__code__ is original


@pytest.mark.parametrize(
    ("include", "match"),
    [(("no_such_package_at_all",), "No package"), (("*",), "begin with"), ((), "nothing")],
)
def test_a_scope_of_nothing_is_refused(include: tuple[str, ...], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Tracer(Scope(include))


def test_the_catalogue_is_the_same_in_other_processes_and_pythons(folder: Path) -> None:
    write(folder, "stable", SOURCE)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from lanista.envs.tracing.scope import Scope\n"
        "from lanista.envs.tracing.tracer import build_catalogue\n"
        "print(*(build_catalogue(Scope(('stable',)), s).sha256 for s in "
        "('definition', 'class', 'edge')))\n"
    )
    schemes: tuple[Scheme, ...] = ("definition", "class", "edge")
    expected = [build_catalogue(Scope(("stable",)), scheme).sha256 for scheme in schemes]
    envs = Path(__file__).resolve().parents[3] / "envs"
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder), str(envs)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.split() == expected
