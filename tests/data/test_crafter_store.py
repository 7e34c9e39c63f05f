"""The real case: Crafter recorded, read, replayed in another process's engine and checked."""

import numpy as np
import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor
from lanista.data.store import EpisodeStore
from lanista.data.verify import verify
from lanista.envs.errors import InputError
from lanista.envs.game import load_game

TESTERS = (
    RecipeTester("noisy", 1.0, {"epsilon": 0.2}),
    RecipeTester("random", 1.0, {"stop_steps": [20, 40]}),
)


@pytest.mark.parametrize("mode", ["stored", "replayed"])
def test_crafter_is_recorded_and_comes_back(tmp_path, mode):
    recipe = CollectRecipe("crafter", 3, TESTERS, step_cap=60, observations=mode)
    result = collect(
        tmp_path / mode, recipe, SerialExecutor(), experts.make_tester, experts.tester_hash
    )
    assert result.episodes == 3
    assert result.findings == []
    assert verify(tmp_path / mode).ok
    store = EpisodeStore.open(tmp_path / mode)
    assert store.catalogue == load_game("crafter").catalogue("class")
    env = load_game("crafter").make("class", None)
    for episode in store.episodes():
        observation, info = env.reset(options={"world": episode.key.world})
        np.testing.assert_array_equal(episode.observations[0], observation)
        assert episode.reset_trace == info["call_trace"]
        assert episode.world_fingerprint == str(info["world_fingerprint"])
        for step, action in enumerate(episode.actions.tolist()):
            observation, reward, _, _, info = env.step(action)
            assert episode.trace(step) == info["call_trace"]
            assert episode.rewards[step] == np.float32(reward)
            np.testing.assert_array_equal(episode.observations[step + 1], observation)
        assert episode.summary == {name: int(n) for name, n in info["summary"].items()}
    env.close()
    names = store.manifest["goals"]["recorded_minus_always"]["names"]
    assert "crafter.objects:Player.update" not in names
    assert all(name.startswith("crafter.") for name in names)


def test_only_some_functions_of_crafter_are_recorded(tmp_path):
    recipe = CollectRecipe(
        "crafter", 1, TESTERS[1:], step_cap=10, scheme="definition", only=("nothing.*",)
    )
    with pytest.raises(InputError):
        collect(tmp_path / "s", recipe, SerialExecutor(), experts.make_tester, experts.tester_hash)
