"""What goes to Minari comes back as it was."""

import dataclasses
import sys

import gymnasium
import minari
import numpy as np
import pytest
import tiny_game

from lanista.data.minari_exchange import PADDING, export_minari, import_minari
from lanista.data.store import EpisodeStore
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path


def make_store(path, episodes, game=tiny_game.GAME, mode="stored"):
    with EpisodeStore.create(
        path, game=game, catalogue=tiny_game.catalogue(), recipe={"observations": mode}
    ) as store:
        for episode in episodes:
            store.add(episode)
    return store


@pytest.mark.parametrize("mode", ["stored", "replayed"])
@pytest.mark.parametrize("game", [tiny_game.GAME, tiny_game.CRASHING])
def test_a_round_trip_loses_nothing(datasets, play_tiny, same_episode, mode, game):
    store = make_store(datasets / "one", play_tiny(range(4), game), game, mode)
    assert export_minari(store, "corridor/testers-v0") == 4
    again = import_minari("corridor/testers-v0", datasets / "two")
    assert again.manifest_sha256 == store.manifest_sha256
    for one, other in zip(store.episodes(), again.episodes(), strict=True):
        same_episode(one, other)


def test_awkward_episodes_survive(datasets, play_tiny, same_episode):
    first, second, third = play_tiny(range(3))
    first = dataclasses.replace(
        first,
        trace_ids=np.array([], dtype=np.uint16),
        trace_offsets=np.zeros(first.steps + 1, dtype=np.int64),
        reset_trace=CallTrace(),
    )
    second = dataclasses.replace(second, reset_trace=CallTrace([6] * 300))
    rewards = np.full(third.steps, np.float32(0.1), dtype=np.float32)
    third = dataclasses.replace(third, rewards=rewards, step_info={"x": rewards.astype(float)})
    store = make_store(datasets / "one", [first, second, third])
    export_minari(store, "awkward-v0")
    again = import_minari("awkward-v0", datasets / "two")
    for one, other in zip(store.episodes(), again.episodes(), strict=True):
        same_episode(one, other)


def test_minari_itself_sees_rows_as_documented(datasets, play_tiny):
    store = make_store(datasets / "one", play_tiny([5]))
    episode = next(store.episodes())
    export_minari(store, "corridor-v0")
    data = minari.load_dataset("corridor-v0")[0]
    np.testing.assert_array_equal(data.observations, episode.observations)
    np.testing.assert_array_equal(data.actions, episode.actions)
    assert data.terminations.tolist() == [False] * (episode.steps - 1) + [True]
    traces = data.infos["call_trace"]
    assert len(traces) == episode.steps + 1
    for step in range(episode.steps + 1):
        expected = episode.input_trace(step)
        assert traces[step][traces[step] != PADDING].tolist() == expected.ids.tolist()
        assert data.infos["call_count"][step] == len(expected)


def test_what_cannot_be_exchanged_is_refused(datasets, play_tiny, monkeypatch):
    empty = make_store(datasets / "empty", [])
    with pytest.raises(InputError, match="no episodes to export"):
        export_minari(empty, "a-v0")
    store = make_store(datasets / "one", play_tiny([5]))
    export_minari(store, "a-v0")
    with pytest.raises(InputError, match="Minari refuses 'a-v0'"):
        export_minari(store, "a-v0")
    with pytest.raises(InputError, match="no dataset 'b-v0'"):
        import_minari("b-v0", datasets / "two")
    minari.create_dataset_from_buffers(
        "foreign-v0",
        [
            minari.data_collector.EpisodeBuffer(
                observations=np.zeros((3, 1), np.float32),
                actions=np.zeros(2, np.int64),
                rewards=[0.0, 1.0],
                terminations=[False, True],
                truncations=[False, False],
            )
        ],
        observation_space=gymnasium.spaces.Box(-1, 1, (1,)),
        action_space=gymnasium.spaces.Discrete(2),
        data_format="arrow",
    )
    with pytest.raises(InputError, match="not exported by Lanista"):
        import_minari("foreign-v0", datasets / "three")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(InputError, match=r"lanista\[minari\]"):
        export_minari(store, "c-v0")
