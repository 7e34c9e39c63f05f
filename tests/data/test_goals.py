"""Goals by both rules, on a game whose answers are known."""

import pytest
import tiny_game

from lanista.data.goals import action_dependent, recorded_minus_always
from lanista.data.store import EpisodeStore
from lanista.data.verify import quarantine, verify
from lanista.envs.errors import InputError


@pytest.mark.parametrize(
    ("calls", "whole_steps", "goals"),
    [
        ({}, 0, ()),
        ({1: (4, 4), 2: (3, 3), 3: (1, 0)}, 4, (2, 3)),
        ({1: (1, 0)}, 0, (1,)),
        ({5: (9, 9)}, 9, ()),
    ],
)
def test_recorded_minus_always(calls, whole_steps, goals):
    assert recorded_minus_always(calls, whole_steps) == goals


@pytest.fixture
def store(tmp_path, play_tiny):
    with EpisodeStore.create(
        tmp_path / "s", game=tiny_game.GAME, catalogue=tiny_game.catalogue()
    ) as made:
        for episode in play_tiny(range(6)):
            made.add(episode)
    return made


def test_action_dependent_goals_are_those_that_some_actions_call(store):
    told = []
    found = action_dependent(store, plays=4, states=40, on_play=lambda: told.append(1))
    names = {name.rpartition(".")[2] for name in found["names"]}
    # tick runs whatever is done; start belongs to reset; no corridor of this game crashes.
    assert names == {"eat", "fight", "rest", "walk"}
    assert len(told) == found["plays"] == 4
    assert 20 <= found["states"] <= 60


def test_they_are_saved_and_leave_the_hash_of_the_data_alone(store):
    before = store.manifest_sha256
    found = action_dependent(store)
    store.save_action_dependent(found)
    again = EpisodeStore.open(store.path)
    assert again.goals("action_dependent") == tuple(found["ids"])
    assert again.manifest_sha256 == before
    assert verify(store.path).ok
    (store.path / "manifest.json").unlink()
    quarantine(store.path)
    assert EpisodeStore.open(store.path).goals("action_dependent") == tuple(found["ids"])
    saved = store.path / "action_dependent.json"
    saved.write_text(saved.read_text().replace('"plays": 6', '"plays": 7'))
    assert [item.file for item in verify(store.path).problems] == ["action_dependent.json"]
    quarantine(store.path)
    with pytest.raises(InputError, match="no action_dependent goals"):
        EpisodeStore.open(store.path).goals("action_dependent")


def test_too_few_states_or_plays_are_refused(store):
    with pytest.raises(InputError, match="make no goals"):
        action_dependent(store, plays=5, states=2)
