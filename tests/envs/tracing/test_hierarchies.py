"""Random class hierarchies under scheme ``class``, against a profiler; reloading; Numba."""

import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer, build_catalogue

NAMES = itertools.count()
MEMBERS = ("move", "size", "make", "grow")


def member(name: str, calls_super: bool, has_base: bool) -> str:
    up = f"super().{name}" if name == "size" else f"super().{name}()"
    body = f"({up} if hasattr(super(), {name!r}) else 0) + 1" if calls_super and has_base else "1"
    decorator = {"size": "    @property\n", "make": "    @classmethod\n"}.get(name, "")
    first = "cls" if name == "make" else "self"
    return f"{decorator}    def {name}({first}):\n        return {body}\n"


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Sources of up to six classes, each with at most one base, and the module of each."""
    sources, modules, bases = [], [], []
    for number in range(draw(st.integers(1, 6))):
        base = draw(st.integers(-1, number - 1))
        bases.append(base)
        chosen = draw(st.sets(st.sampled_from(MEMBERS), min_size=0 if base >= 0 else 1))
        body = "".join(member(name, draw(st.booleans()), base >= 0) for name in sorted(chosen))
        holder = f"(C{base})" if base >= 0 else ""
        sources.append(f"class C{number}{holder}:\n{body or '    pass'}\n")
        modules.append(draw(st.integers(modules[base] if base >= 0 else 0, 1)))
    return sources, modules


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(hierarchies())
def test_every_call_is_named_by_its_class_and_definition(
    folder: Path, made: tuple[list[str], list[int]]
) -> None:
    sources, where = made
    package = f"tree{next(NAMES)}"
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("")
    texts = ["", f"from {package}.low import *\n"]
    for source, module in zip(sources, where, strict=True):
        texts[module] += source
    (folder / package / "low.py").write_text(texts[0])
    (folder / package / "high.py").write_text(texts[1])
    importlib.invalidate_caches()
    importlib.import_module(f"{package}.high")
    parts = [importlib.import_module(f"{package}.{name}") for name in ("low", "high")]
    classes = [vars(parts[at])[f"C{number}"] for number, at in enumerate(where)]
    files = {part.__file__ for part in parts}
    seen: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in files:
            values = frame.f_locals
            owner = values["cls"] if "cls" in values else type(values["self"])
            seen.append((owner.__name__, frame.f_code.co_qualname))

    def play() -> None:
        for cls in classes:
            for name in MEMBERS:
                value = getattr(cls(), name, 0)
                if callable(value):
                    value()

    before = {cls: dict(vars(cls)) for cls in classes}
    with Tracer(Scope((package,)), "class") as tracer:
        sys.setprofile(profile)
        try:
            play()
        finally:
            sys.setprofile(None)
        names = [tracer.catalogue.name(call).split(":")[1] for call in tracer.drain().ids]
    expected = []
    for owner, qualname in seen:
        defined, _, attribute = qualname.partition(".")
        own = vars(classes[int(owner[1:])])
        nearest = next(c for c in classes[int(owner[1:])].__mro__ if attribute in vars(c))
        above = defined != owner and nearest.__name__ != defined
        assert above or attribute in own or defined == nearest.__name__
        expected.append(
            f"{owner}.super({defined}).{attribute}" if above else f"{owner}.{attribute}"
        )
    assert names == expected
    assert {cls: dict(vars(cls)) for cls in classes} == before


def test_a_module_that_is_reloaded_goes_on_recording(folder: Path) -> None:
    (folder / "again.py").write_text("class A:\n    def f(self):\n        return 1\n")
    importlib.invalidate_caches()
    again: Any = importlib.import_module("again")
    with Tracer(Scope(("again",)), "class") as tracer:
        old = again.A()
        again = importlib.reload(again)
        tracer.clear()
        again.A().f()
        old.f()
        assert [tracer.catalogue.name(call) for call in tracer.drain().ids] == ["again:A.f"] * 2
    again.A().f()
    assert len(tracer.drain()) == 0


def test_functions_that_numba_compiles_are_left_out_and_stay_right(folder: Path) -> None:
    (folder / "quick.py").write_text(
        "import numba\n\n@numba.njit\ndef twice(x):\n    return 2 * x\n\n"
        "def plain(x):\n    return twice(x) + 1\n"
    )
    importlib.invalidate_caches()
    quick: Any = importlib.import_module("quick")
    code = quick.twice.py_func.__code__
    with Tracer(Scope(("quick",)), "class") as tracer:
        assert quick.plain(4) == 9
        assert quick.twice.py_func.__code__ is code
        assert [tracer.catalogue.name(call) for call in tracer.drain().ids] == ["quick:plain"]


def test_a_game_with_one_info_for_all_steps_keeps_its_traces_apart(folder: Path) -> None:
    (folder / "one_info.py").write_text(
        "import gymnasium\n\nclass Game(gymnasium.Env):\n"
        "    info = {}\n"
        "    def reset(self, *, seed=None, options=None):\n        return 0, self.info\n"
        "    def step(self, action):\n"
        "        for _ in range(action):\n            self.turn()\n"
        "        return 0, 0.0, False, False, self.info\n"
        "    def turn(self):\n        return 1\n"
    )
    importlib.invalidate_caches()
    one_info: Any = importlib.import_module("one_info")
    env = TracedEnv(one_info.Game(), Tracer(Scope(("one_info",)), "class"))
    env.reset()
    infos = [env.step(action)[4] for action in (3, 0, 1)]
    assert [len(info["call_trace"].ids) for info in infos] == [4, 1, 2]
    env.close()


def test_traces_stay_the_same_however_late_they_are_read(folder: Path) -> None:
    """Many more calls than a segment holds, read as they come and at the end, and when stopped."""
    functions = "".join(f"def f{n}():\n    return {n}\n" for n in range(300))
    for name, source in (("few", "def f0():\n    return 0\n"), ("many", functions)):
        (folder / f"{name}_calls.py").write_text(source)
        importlib.invalidate_caches()
        module: Any = importlib.import_module(f"{name}_calls")
        with Tracer(Scope((f"{name}_calls",)), "class") as tracer:
            late, early = [], []
            for length in range(0, 400, 3):
                for number in range(length):
                    getattr(module, f"f{number % 300 if name == 'many' else 0}")()
                late.append(tracer.drain())
                if length % 2:
                    early.append((length, late[-1].ids.copy()))
        for length, ids in early:
            assert (late[length // 3].ids == ids).all()
        assert [len(trace.ids) for trace in late] == list(range(0, 400, 3))
        if name == "many":
            last = [tracer.catalogue.name(call) for call in late[-1].ids[:3]]
            assert last == [f"many_calls:f{n}" for n in range(3)]


def pythons() -> list[str]:
    """This Python, and the others of Lanista's versions that this machine has under ``pyenv``."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [path / "bin/python" for path in sorted(root.glob("3.1[23].*"))]
    return [sys.executable, *(str(path) for path in found if path.exists())]


def test_crafters_catalogue_is_the_same_in_every_python_found() -> None:
    import crafter

    scope = ("crafter.env", "crafter.objects", "crafter.engine:World*")
    ask = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from lanista.envs.tracing.plan import make_plan\n"
        "from lanista.envs.tracing.scope import Scope\n"
        f"plans = [make_plan(Scope({scope!r}), s) for s in ('definition', 'class', 'edge')]\n"
        "print(*(plan.catalogue.sha256 for plan in plans))\n"
    )
    schemes: Any = ("definition", "class", "edge")
    expected = [build_catalogue(Scope(scope), scheme).sha256 for scheme in schemes]
    folders = [Path(__file__).resolve().parents[3] / "envs", Path(crafter.__file__).parents[1]]
    for python in pythons():
        done = subprocess.run(
            [python, "-c", ask, *map(str, folders)], capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == expected, done.stderr
