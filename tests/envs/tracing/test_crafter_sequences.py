"""On real Crafter the hook records what independent recorders see, call by call."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import crafter
import numpy as np
import pytest

from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer

GAME_LOGIC = Scope(("crafter.env", "crafter.objects", "crafter.engine:World*"))
WHOLE = Scope(("crafter",))
FOLDER = Path(crafter.__file__).parent.parent
TOOL = 2
Place = tuple[str, str, int]


_places: dict[int, tuple[CodeType, Place | None]] = {}


def place_of(code: CodeType) -> Place | None:
    """Where a code object comes from, found without Lanista; None if it is no Crafter function."""
    found = _places.get(id(code))
    if found is None:
        found = _places[id(code)] = (code, find_place(code))
    return found[1]


def find_place(code: CodeType) -> Place | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(FOLDER / "crafter") or not code.co_flags & 1:
        return None
    if code.co_name in {"<listcomp>", "<dictcomp>", "<setcomp>"}:
        return None
    return path.relative_to(FOLDER).as_posix(), code.co_qualname, code.co_firstlineno


class MonitoringRecorder:
    """Every PY_START of Crafter's functions, by the interpreter itself."""

    def __init__(self, wanted: Callable[[Place], bool]) -> None:
        self.calls: list[Place] = []
        self.wanted = wanted

    def __enter__(self) -> Self:
        sys.monitoring.use_tool_id(TOOL, "test")
        sys.monitoring.register_callback(TOOL, sys.monitoring.events.PY_START, self.started)
        sys.monitoring.set_events(TOOL, sys.monitoring.events.PY_START)
        return self

    def started(self, code: CodeType, offset: int) -> None:
        place = place_of(code)
        if place is not None and self.wanted(place):
            self.calls.append(place)

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(TOOL, 0)
        sys.monitoring.free_tool_id(TOOL)


@pytest.fixture(autouse=True, scope="module")
def compiled_noise() -> None:
    """Let Numba compile Crafter's noise before anything watches every call."""
    crafter.Env(seed=0).reset()


def is_game_logic(place: Place) -> bool:
    file, qualname, _ = place
    return file in {"crafter/env.py", "crafter/objects.py"} or (
        file == "crafter/engine.py" and qualname.startswith("World")
    )


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [(GAME_LOGIC, is_game_logic), (WHOLE, lambda place: True)],
    ids=["game logic", "everything"],
)
def test_definition_equals_the_interpreters_own_record(
    scope: Scope, wanted: Callable[[Place], bool]
) -> None:
    env = crafter.Env(seed=3)
    actions = np.random.default_rng(0).integers(0, 17, 450)
    steps = 0
    with Tracer(scope, "definition") as tracer, MonitoringRecorder(wanted) as oracle:
        places = [
            (item.file, re.sub(r"#\d+$|\.setter$", "", item.name.split(":")[1]), item.line)
            for item in tracer.catalogue.functions
        ]
        env.reset()
        assert [places[call] for call in tracer.drain().ids] == oracle.calls
        oracle.calls.clear()
        for action in actions:
            done = env.step(int(action))[2]
            recorded = [places[call] for call in tracer.drain().ids]
            assert recorded == oracle.calls
            assert recorded
            oracle.calls.clear()
            steps += 1
            if done:
                env.reset()
                tracer.clear()
                oracle.calls.clear()
    assert steps == 450


def test_class_equals_the_type_of_self_that_a_profiler_sees() -> None:
    calls: list[tuple[str, str, str]] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        place = place_of(frame.f_code)
        if place is None or not is_game_logic(place) or frame.f_lasti > 20:
            return
        _, qualname, _ = place
        self = frame.f_locals.get("self")
        nested = "<locals>" in qualname
        known = self is not None and not nested and not qualname.startswith("staticproperty")
        owner = type(self).__name__ if known else qualname.split(".")[0]
        defined, _, name = qualname.partition(".")
        calls.append((owner, defined, name))

    env = crafter.Env(seed=5)
    with Tracer(GAME_LOGIC, "class") as tracer:
        named = []
        for item in tracer.catalogue.functions:
            text = re.sub(r"#\d+$|\.setter$", "", item.name.split(":")[1])
            owner, _, name = text.partition(".")
            above = re.match(r"super\((\w+)\)\.(.*)", name)
            named.append((owner, name) if not above else (owner, above[2]))
        for action in [-1, *np.random.default_rng(1).integers(0, 17, 150)]:
            calls.clear()
            sys.setprofile(profile)
            try:
                if action < 0:
                    env.reset()
                else:
                    env.step(int(action))
            finally:
                sys.setprofile(None)
            got = [named[call] for call in tracer.drain().ids]
            assert got == [(owner, name) for owner, _, name in calls]
