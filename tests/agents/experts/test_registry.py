import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lanista.agents import experts  # by module: pytest collects imported names like tester_hash
from lanista.agents.experts import registry
from lanista.agents.experts.parameters import Fraction
from lanista.agents.experts.registry import Kind, register
from lanista.envs.errors import InputError


def rng() -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([0, 1, 2]))


def test_crafter_has_the_whole_family() -> None:
    assert experts.tester_names("crafter") == ["expert", "noisy", "random", "shuffled", "subgoal"]
    assert all(experts.tester_summary("crafter", name) for name in experts.tester_names("crafter"))


def test_any_game_has_the_random_tester() -> None:
    assert experts.tester_names("somebody:GAME") == ["random"]


def test_an_unknown_tester_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="'exprt'; it has expert, noisy"):
        experts.make_tester("crafter", "exprt", {}, rng())


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("noisy", {"epsilon": 1.5}, "number from 0 to 1"),
        ("noisy", {"epsilon": "much"}, "number from 0 to 1"),
        ("noisy", {"epsilon": True}, "number from 0 to 1"),
        ("noisy", {"epsilon": float("nan")}, "number from 0 to 1"),
        ("noisy", {"epsilom": 0.1}, "no parameter 'epsilom'; it has epsilon, stop_steps"),
        ("expert", {"epsilon": 0.1}, "no parameter 'epsilon'"),
        ("expert", {"stop_steps": [9, 3]}, "the lower first"),
        ("expert", {"stop_steps": [0, 3]}, "from 1 on"),
        ("expert", {"stop_steps": 30}, "two whole numbers"),
        ("expert", {"stop_steps": "ab"}, "two whole numbers"),
        ("subgoal", {"subgoals": ["fly"]}, "names fly"),
        ("subgoal", {"subgoals": []}, "list of names"),
        ("subgoal", {"subgoals": "wake_up"}, "list of names"),
        ("subgoal", {"subgoals": ["wake_up", "wake_up"]}, "twice"),
        ("subgoal", {"count": 23}, "from 1 to 22"),
        ("subgoal", {"count": 1.0}, "whole number"),
        ("random", {"repeat": 1}, "from 0 to 0.99"),
    ],
)
def test_wrong_parameters_are_refused(name: str, parameters: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        experts.make_tester("crafter", name, parameters, rng())
    with pytest.raises(InputError, match=says):
        experts.tester_hash("crafter", name, parameters)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        experts.make_tester(
            "crafter", "subgoal", {"count": 0, "epsilon": 2, "colour": "red"}, rng()
        )
    assert len(caught.value.problems) == 3


def test_a_hash_tells_parameters_apart_and_takes_defaults_for_what_they_are() -> None:
    plain = experts.tester_hash("crafter", "noisy", {})
    assert plain == experts.tester_hash("crafter", "noisy", {"epsilon": 0.1})
    assert len(plain) == 64
    others = [
        experts.tester_hash("crafter", "noisy", {"epsilon": 0.2}),
        experts.tester_hash("crafter", "noisy", {"stop_steps": [3, 9]}),
        experts.tester_hash("crafter", "shuffled", {"epsilon": 0.1}),
    ]
    assert len({plain, *others}) == 4
    assert others[1] == experts.tester_hash("crafter", "noisy", {"stop_steps": (3, 9)})


def test_a_hash_covers_the_testers_of_its_own_game_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [("crafter", "noisy"), ("robot", "noisy"), ("crafter", "random")]
    before = [experts.tester_hash(game, name, {}) for game, name in names]
    read = Path.read_bytes

    def changed(path: Path) -> bytes:
        return read(path) + (b"#" if path.parent.name == "robot" else b"")

    monkeypatch.setattr(Path, "read_bytes", changed)
    registry.source_hash.cache_clear()
    try:
        after = [experts.tester_hash(game, name, {}) for game, name in names]
    finally:
        registry.source_hash.cache_clear()
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]


def test_a_hash_is_the_same_in_another_process() -> None:
    code = (
        "from lanista.agents.experts import tester_hash; print(tester_hash('crafter','noisy',{}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == experts.tester_hash("crafter", "noisy", {})


def test_a_tester_of_another_game_can_be_added() -> None:
    kind = Kind(
        game="tests:PONG",
        name="lazy",
        summary="Mostly random.",
        factory="lanista.agents.experts.random_play:make_random",
        parameters={"repeat": Fraction(0.9)},
    )
    register(kind)
    register(kind)
    assert experts.tester_names("tests:PONG") == ["lazy", "random"]
    assert experts.tester_names("crafter") == ["expert", "noisy", "random", "shuffled", "subgoal"]
    with pytest.raises(InputError, match="already"):
        register(Kind(game="tests:PONG", name="lazy", summary="", factory="a:b"))


def test_importing_the_experts_loads_no_game() -> None:
    code = (
        "import sys, lanista.agents.experts as e; e.tester_names('crafter'); "
        "print([m for m in ('crafter', 'numba', 'scipy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
