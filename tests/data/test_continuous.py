"""Actions made of numbers, from the tester to the store and back, with nothing rounded."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import meadow
import minari
import numpy as np
import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.dataset import GoalDataset
from lanista.data.episode import EpisodeKey
from lanista.data.executor import SerialExecutor
from lanista.data.goals import action_dependent
from lanista.data.minari_exchange import export_minari, import_minari
from lanista.data.replay import play_again
from lanista.data.rollout import Play, rollout
from lanista.data.store import EpisodeStore
from lanista.data.verify import verify
from lanista.envs.errors import InputError

RECIPE = CollectRecipe(
    "meadow:GAME", 6, (RecipeTester("walker", 2.0), RecipeTester("random")), step_cap=20
)


def record(path: Path, mode: str = "stored") -> EpisodeStore:
    recipe = CollectRecipe(**{**vars(RECIPE), "observations": mode})
    collect(path, recipe, SerialExecutor(), experts.make_tester, experts.tester_hash)
    return EpisodeStore.open(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EpisodeStore:
    return record(tmp_path_factory.mktemp("meadow") / "store")


def play(*chosen: Any, world: int = 0) -> Any:
    """Play given actions, whatever they are."""
    game = meadow.GAME
    engine, catalogue = game.engine(), game.catalogue("class")
    key = EpisodeKey(
        game.id, engine["version"], engine["sha256"], catalogue.sha256, world, 0, "given", None, 20
    )
    rest = iter(chosen)
    tester = SimpleNamespace(act=lambda env, rng: next(rest))
    env = game.make("class", None)
    try:
        return rollout([env], [Play(key, None, (0,), len(chosen))], testers=[tester])[0]
    finally:
        env.close()


def test_a_recording_holds_float32_actions_that_play_the_same_again(store: EpisodeStore) -> None:
    assert verify(store.path).ok
    env = meadow.GAME.make("class", None)
    for episode in store.episodes():
        assert episode.actions.dtype == np.float32
        assert episode.actions.shape == (episode.steps, 2)
        assert np.abs(episode.actions).max() <= 1
        again = play_again(env, episode)
        assert np.array_equal(again.actions, episode.actions)
        assert np.array_equal(again.observations, episode.observations)
        assert np.array_equal(again.trace_ids, episode.trace_ids)
    env.close()
    assert {"walker", "random"} == {item["name"] for item in store.recipe["testers"]}


def test_observations_can_be_made_anew_from_the_actions(
    store: EpisodeStore, tmp_path: Path, same_episode: Callable[[Any, Any], None]
) -> None:
    lean = record(tmp_path / "lean", "replayed")
    for one, other in zip(store.episodes(), lean.episodes(), strict=True):
        same_episode(one, other)


def test_a_dataset_takes_the_games_bounds(store: EpisodeStore) -> None:
    goals = store.goals("recorded_minus_always")
    bounds = meadow.GAME.action_bounds
    dataset = GoalDataset.from_episodes(
        store.episodes(), goals, store.catalogue, action_bounds=bounds
    )
    assert dataset.action_bounds == ((-1.0, -1.0), (1.0, 1.0))
    assert dataset.actions.dtype == np.float32
    joined = np.concatenate([episode.actions for episode in store.episodes()])
    assert np.array_equal(dataset.actions, joined)
    assert "advance" not in {name.rpartition(".")[2] for name in dataset.goal_names}


def test_a_minari_round_trip_loses_nothing_and_knows_the_bounds(
    store: EpisodeStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    same_episode: Callable[[Any, Any], None],
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    assert export_minari(store, "meadow/testers-v0") == len(store)
    space = minari.load_dataset("meadow/testers-v0").action_space
    assert (space.low.tolist(), space.high.tolist()) == ([-1, -1], [1, 1])
    assert space.dtype == np.float32
    again = import_minari("meadow/testers-v0", tmp_path / "again")
    assert again.manifest_sha256 == store.manifest_sha256
    for one, other in zip(store.episodes(), again.episodes(), strict=True):
        same_episode(one, other)


def test_numbers_out_of_bounds_are_recorded_as_the_game_got_them() -> None:
    wild = play([3.0, -0.5], np.array([[-7.0], [0.25]]))
    assert wild.fault is None
    assert wild.actions.tolist() == [[1.0, -0.5], [-1.0, 0.25]]
    tame = play([1.0, -0.5], [-1.0, 0.25])
    assert np.array_equal(wild.observations, tame.observations)


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [0.0, np.inf], [0.0], [0.0, 0.0, 0.0], "up"])
def test_what_is_no_action_is_the_players_fault(bad: Any) -> None:
    episode = play([0.5, 0.5], bad, [0.5, 0.5])
    assert episode.fault.kind == "player"
    assert (episode.steps, episode.actions.shape) == (1, (1, 2))
    assert episode.truncated


def test_goals_by_trying_every_action_are_refused(store: EpisodeStore) -> None:
    with pytest.raises(InputError, match="need discrete actions"):
        action_dependent(store, plays=2, states=4)
