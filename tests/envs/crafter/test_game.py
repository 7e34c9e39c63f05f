"""Crafter as a Lanista game."""

import re

import numpy as np
import pytest

from lanista.envs.crafter.game import CRAFTER, STEP_CAP, engine
from lanista.envs.errors import InputError
from lanista.envs.game import load_game


def test_it_is_found_by_its_id_and_says_what_it_is() -> None:
    game = load_game("crafter")
    assert game is CRAFTER
    assert len(game.actions) == 17
    assert game.actions[:2] == ("noop", "move_left")
    assert (game.observation_shape, game.observation_dtype) == ((64, 64, 3), "uint8")
    assert game.step_cap == STEP_CAP == 1000
    assert game.save_restore


def test_the_engine_has_a_version_and_a_hash() -> None:
    assert engine()["version"] == "1.8.3"
    assert re.fullmatch("[0-9a-f]{64}", engine()["sha256"])


def test_the_scope_is_game_logic_without_drawing() -> None:
    catalogue = CRAFTER.catalogue("class")
    names = {function.name for function in catalogue.functions}
    assert "crafter.objects:Plant.update" in names
    assert "crafter.objects:Zombie.move" in names
    assert "crafter.engine:World.nearby" in names
    assert not any("View" in name or "Textures" in name or "worldgen" in name for name in names)
    assert catalogue.resolve("Player._do_material") == catalogue.resolve(
        "crafter.objects:Player._do_material"
    )


@pytest.mark.parametrize("scheme", ["definition", "class", "edge"])
def test_a_made_game_records_its_calls(scheme: str) -> None:
    env = CRAFTER.make(scheme, None)
    try:
        assert env.catalogue == CRAFTER.catalogue(scheme)
        _, info = env.reset(options={"world": 0})
        assert len(info["call_trace"]) > 8000, "reset fills 4096 cells and looks at each"
        _, _, _, _, info = env.step(5)
        called = {env.catalogue.name(i) for i in info["call_trace"].ids}
        assert any(name.endswith("crafter.env:Env.step") for name in called) or scheme == "edge"
        assert any("Player._do_material" in name for name in called)
    finally:
        env.close()


def test_many_games_share_a_process() -> None:
    envs = [CRAFTER.make("class", None) for _ in range(3)]
    try:
        for world, env in enumerate(envs):
            env.reset(options={"world": world})
        alone = []
        for action in (1, 5, 2):
            alone.append([env.step(action)[4]["call_trace"] for env in envs])
        again = envs[2]
        again.reset(options={"world": 0})
        assert [again.step(action)[4]["call_trace"] for action in (1, 5, 2)] == [
            row[0] for row in alone
        ]
    finally:
        for env in envs:
            env.close()


def test_patterns_limit_what_is_recorded() -> None:
    env = CRAFTER.make("class", ("Player.update", "Zombie.*"))
    try:
        env.reset(options={"world": 0})
        _, _, _, _, info = env.step(0)
        names = {env.catalogue.name(i) for i in info["call_trace"].ids}
        assert "crafter.objects:Player.update" in names
        assert all("Player.update" in name or "Zombie." in name for name in names)
    finally:
        env.close()
    with pytest.raises(InputError, match="matches"):
        CRAFTER.make("class", ("Dragon.*",))


def test_pictures_and_saves_between_steps_are_in_no_trace() -> None:
    plain, watched = CRAFTER.make("class", None), CRAFTER.make("class", None)
    try:
        plain.reset(options={"world": 5})
        watched.reset(options={"world": 5})
        for action in np.random.default_rng(1).integers(17, size=40).tolist():
            watched.render()
            watched.unwrapped.restore(watched.unwrapped.save())
            one, two = plain.step(action), watched.step(action)
            assert np.array_equal(one[0], two[0])
            assert one[4] == two[4]
    finally:
        plain.close()
        watched.close()
