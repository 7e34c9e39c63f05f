"""The same world and actions give the same play in any process, under any Python."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.crafter import Crafter
from lanista.envs.crafter.determinism import OrderedSet, night_noise

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
LOCK = REPOSITORY / "requirements.lock"
GOLDEN = json.loads((HERE / "golden.json").read_text())


def golden_of(python: str | Path, **environment: str) -> dict[str, dict[str, str]]:
    done = subprocess.run(
        [str(python), str(HERE / "golden.py")],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("hash_seed", ["0", "random"])
def test_other_processes_play_the_same(hash_seed: str) -> None:
    assert golden_of(sys.executable, PYTHONHASHSEED=hash_seed) == GOLDEN


def other_pythons() -> list[str]:
    """Interpreters of the other supported versions, on PATH or under pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which("python3.12"), shutil.which("python3.13")]
    candidates += [str(path) for path in sorted(versions.glob("3.1[23].*/bin/python"))]
    found: dict[str, str] = {}
    for candidate in filter(None, candidates):
        done = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        version = done.stdout.strip()
        if version in ("3.12", "3.13") and version != "{}.{}".format(*sys.version_info):
            found[version] = candidate
    return list(found.values())


@pytest.mark.slow
def test_other_pythons_play_the_same(tmp_path: Path) -> None:
    pythons = other_pythons()
    if not pythons:
        # A fresh environment of this Python is checked all the same.
        warnings.warn("no second Python 3.12 or 3.13 was found to compare with", stacklevel=1)
        pythons = [sys.executable]
    uv = shutil.which("uv") or str(REPOSITORY / ".uv" / "bin" / "uv")
    packages = ("crafter", "gymnasium", "numba", "numpy")
    for number, python in enumerate(pythons):
        folder = tmp_path / str(number)
        subprocess.run([uv, "venv", "--quiet", "--python", python, folder], check=True)
        interpreter = folder / "bin" / "python"
        subprocess.run(
            [uv, "pip", "install", "-q", "--python", interpreter, *packages, "-c", LOCK],
            check=True,
        )
        assert golden_of(interpreter) == GOLDEN, python


def play(env: Crafter, world: int, between: object = None, steps: int = 260) -> list[bytes]:
    env.reset(options={"world": world})
    env.game._player.inventory["energy"] = 3
    chance = np.random.default_rng(world)
    seen = []
    for step in range(steps):
        if callable(between):
            between(env, step)
        action = 6 if step > 180 else int(chance.integers(1, 6))
        observation, reward, *_, info = env.step(action)
        seen.append(observation.tobytes() + repr((reward, info["step_info"])).encode())
        env.game._player.inventory["health"] = 9
    return seen


@pytest.mark.parametrize("fast", [True, False])
def test_pictures_between_the_steps_change_nothing(fast: bool) -> None:
    plain = play(Crafter(fast=fast), 3)

    def draw(env: Crafter, step: int) -> None:
        env.render((90, 90))
        if step % 7 == 0:
            env.render((300, 200))

    assert play(Crafter(fast=fast, render_mode="rgb_array"), 3, draw) == plain


def test_pictures_left_out_change_nothing() -> None:
    env, blind = Crafter(), Crafter()
    first = play(env, 6)
    blind.reset(options={"world": 6})
    view = blind.game._local_view
    blind.game._local_view = lambda player, unit: np.zeros((63, 49, 3), np.uint8)
    blind.game._player.inventory["energy"] = 3
    chance = np.random.default_rng(6)
    for step in range(260):
        action = 6 if step > 180 else int(chance.integers(1, 6))
        if step == 259:
            blind.game._local_view = view
        observation, *_ = blind.step(action)
        blind.game._player.inventory["health"] = 9
    assert first[-1].startswith(observation.tobytes())


def test_a_world_does_not_depend_on_the_plays_before() -> None:
    env, fresh = Crafter(), Crafter()
    for world in (1, 2, 3):
        env.reset(options={"world": world})
    again, info = env.reset(options={"world": 9})
    first, fresh_info = fresh.reset(options={"world": 9})
    assert np.array_equal(again, first)
    assert info["world_fingerprint"] == fresh_info["world_fingerprint"]


def test_worlds_differ_and_the_seed_draws_them() -> None:
    env = Crafter()
    prints = {
        env.reset(options={"world": world})[1]["world_fingerprint"] for world in (0, 1, 2**31 - 1)
    }
    assert len(prints) == 3
    first, second = env.reset(seed=5)[1], env.reset()[1]
    assert (env.reset(seed=5)[1]["world"], env.reset()[1]["world"]) == (
        first["world"],
        second["world"],
    )
    assert first["world"] != second["world"]


def test_night_noise_depends_on_world_and_step() -> None:
    noise = night_noise(3, 200, (63, 49))
    assert noise.shape == (63, 49)
    assert 32 <= noise.min() < 40
    assert 120 < noise.max() < 127
    assert np.array_equal(noise, night_noise(3, 200, (63, 49)))
    assert not np.array_equal(noise, night_noise(3, 201, (63, 49)))
    assert not np.array_equal(noise, night_noise(4, 200, (63, 49)))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8))))
def test_ordered_set_is_a_set_in_order_of_insertion(changes: list[tuple[bool, int]]) -> None:
    ordered: OrderedSet[int] = OrderedSet()
    model: list[int] = []
    for add, member in changes:
        if add:
            ordered.add(member)
            model += [] if member in model else [member]
        elif member in model:
            ordered.remove(member)
            model.remove(member)
        else:
            with pytest.raises(KeyError):
                ordered.remove(member)
        assert list(ordered) == model
        assert len(ordered) == len(model)
        assert all((i in ordered) == (i in model) for i in range(9))
