"""Episodes come back as they were written, and nothing is lost or changed silently."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_game
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lanista.data.episode import Episode, EpisodeKey, Fault
from lanista.data.episode_file import decode_episode, encode_episode
from lanista.data.store import EpisodeStore
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace

TRACES = st.lists(
    st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1)), max_size=20), max_size=12
)
NUMBERS = st.sampled_from([np.bool_, np.int64, np.uint8, np.int16, np.float32, np.float64])


@st.composite
def episodes(draw):
    traces = [CallTrace(ids) for ids in draw(TRACES)]
    steps = len(traces)
    dims = draw(st.sampled_from([(), (), (3,)]))
    actions = draw(hnp.arrays(np.float32 if dims else np.int64, (steps, *dims)))
    shape = draw(st.sampled_from([(), (4,), (3, 2, 2)]))
    dtype = draw(st.sampled_from([np.uint8, np.float32, np.int64]))
    ids = [trace.ids for trace in traces]
    faulty = draw(st.booleans())
    return Episode(
        key=EpisodeKey(
            "tiny_game:GAME",
            "1.0",
            "c0" * 32,
            tiny_game.catalogue().sha256,
            draw(st.integers(0, 2**40)),
            draw(st.integers(0, 3)),
            draw(st.text(max_size=5)),
            draw(st.none() | st.text(max_size=5)),
            draw(st.integers(0, 2**31)),
        ),
        world_fingerprint=draw(st.text(max_size=5)),
        actions=actions,
        rewards=draw(hnp.arrays(np.float32, steps)),
        trace_ids=np.concatenate(ids) if ids else np.zeros(0, np.uint16),
        trace_offsets=np.cumsum([0, *map(len, ids)]).astype(np.int64),
        reset_trace=CallTrace(draw(st.lists(st.integers(0, 2**20), max_size=9))),
        terminated=draw(st.booleans()),
        truncated=draw(st.booleans()),
        observations=draw(hnp.arrays(dtype, (steps + 1, *shape))),
        step_info={
            name: draw(hnp.arrays(draw(NUMBERS), steps))
            for name in draw(st.sets(st.text(min_size=1, max_size=4), max_size=3))
        },
        summary=draw(st.dictionaries(st.text(max_size=4), st.integers(-(2**60), 2**60))),
        fault=Fault("exception", "E", draw(st.text()), "a:1:f", "…") if faulty else None,
    )


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(episode=episodes())
def test_any_episode_survives_its_file(episode, same_episode):
    encoded = encode_episode(episode)
    same_episode(episode, decode_episode(encoded.payload, "file"))
    assert encode_episode(episode).payload == encoded.payload
    counts = {function: (steps, calls) for function, steps, _, calls in encoded.calls}
    for function, (steps, calls) in counts.items():
        traces = [episode.trace(step) for step in range(episode.steps)]
        assert steps == sum(function in trace for trace in traces)
        assert calls == sum(int((trace.ids == function).sum()) for trace in traces)
    assert set(counts) == set(episode.trace_ids.tolist())


def test_the_content_hash_sees_every_field(play_tiny):
    episode = play_tiny([0], tiny_game.CRASHING)[0]
    other = {
        "key": replace(episode.key, world=9),
        "world_fingerprint": "x",
        "actions": episode.actions ^ 1,
        "rewards": episode.rewards + 1,
        "trace_ids": episode.trace_ids[::-1].copy(),
        "reset_trace": CallTrace([1, 2]),
        "terminated": not episode.terminated,
        "truncated": not episode.truncated,
        "observations": episode.observations ^ 1,
        "step_info": {**episode.step_info, "energy": episode.step_info["energy"] + 1},
        "summary": {"eaten": 99},
        "fault": Fault("exception", "E", "m", "a:1:f", ""),
    }
    hashes = {encode_episode(episode).row["content_sha256"]}
    hashes |= {
        encode_episode(replace(episode, **{name: value})).row["content_sha256"]
        for name, value in other.items()
    }
    assert len(hashes) == len(other) + 1


@pytest.mark.parametrize("mode", ["stored", "replayed"])
@pytest.mark.parametrize("game", [tiny_game.GAME, tiny_game.CRASHING])
def test_a_store_gives_back_what_was_added(tmp_path, play_tiny, same_episode, mode, game):
    played = play_tiny(range(6), game)
    recipe = {"observations": mode}
    with EpisodeStore.create(
        tmp_path / "s", game=game, catalogue=tiny_game.catalogue(), recipe=recipe
    ) as store:
        for episode in reversed(played):
            assert store.add(episode)
    store = EpisodeStore.open(tmp_path / "s")
    assert len(store) == 6
    for episode, found in zip(played, store.episodes(), strict=True):
        same_episode(episode, found)
        bare = store.read(episode.key.episode_id, observations=False)
        same_episode(episode, bare, observations=False)
    assert store.catalogue == tiny_game.catalogue()
    assert store.manifest["totals"]["steps"] == sum(item.steps for item in played)


def test_replayed_observations_take_less_room_and_same_content(tmp_path, play_tiny):
    stores = {}
    for mode in ("stored", "replayed"):
        with EpisodeStore.create(
            tmp_path / mode,
            game=tiny_game.GAME,
            catalogue=tiny_game.catalogue(),
            recipe={"observations": mode},
        ) as store:
            for episode in play_tiny(range(3)):
                store.add(episode)
        stores[mode] = store
    sizes = {mode: store.manifest["totals"]["bytes"] for mode, store in stores.items()}
    assert sizes["replayed"] < sizes["stored"]
    rows = [[row["content_sha256"] for row in store.rows()] for store in stores.values()]
    assert rows[0] == rows[1]


def test_a_replay_that_shows_something_else_is_refused(tmp_path, play_tiny, monkeypatch):
    from lanista.data import replay

    with EpisodeStore.create(
        tmp_path / "s",
        game=tiny_game.GAME,
        catalogue=tiny_game.catalogue(),
        recipe={"observations": "replayed"},
    ) as store:
        store.add(play_tiny([0])[0])
    replay.environment_for.cache_clear()
    monkeypatch.setattr(
        tiny_game.Corridor, "picture", lambda self: np.zeros((8, 8, 3), dtype=np.uint8)
    )
    with pytest.raises(InputError, match="the game now shows something else"):
        next(store.episodes())
    replay.environment_for.cache_clear()


def create(path, recipe=None):
    return EpisodeStore.create(
        path, game=tiny_game.GAME, catalogue=tiny_game.catalogue(), recipe=recipe
    )


def test_the_same_key_twice_is_refused_unless_identical(tmp_path, play_tiny):
    episode = play_tiny([0])[0]
    store = create(tmp_path / "s")
    assert store.add(episode)
    before = store.manifest_sha256
    assert not store.add(episode)
    with pytest.raises(InputError, match="another episode"):
        store.add(replace(episode, rewards=episode.rewards + 1))
    assert store.manifest_sha256 == before


def test_the_manifest_hash_covers_content_not_path_or_order(tmp_path, play_tiny):
    played = play_tiny(range(4))
    hashes = []
    for name, order in (("one", played), ("two", played[::-1])):
        with create(tmp_path / name) as store:
            for episode in order:
                store.add(episode)
        hashes.append(store.manifest_sha256)
        one = (tmp_path / name / "manifest.json").read_bytes()
    assert hashes[0] == hashes[1]
    assert one == (tmp_path / "one" / "manifest.json").read_bytes()
    with create(tmp_path / "three") as store:
        for episode in played[:3]:
            store.add(episode)
    assert store.manifest_sha256 != hashes[0]


def test_an_interrupted_recording_is_taken_up(tmp_path, play_tiny):
    played = play_tiny(range(4))
    with create(tmp_path / "whole") as whole:
        for episode in played:
            whole.add(episode)
    store = create(tmp_path / "s")
    store.add(played[0])
    store.save()
    for episode in played[1:]:
        store.add(episode)
    again = EpisodeStore.open(tmp_path / "s")
    assert len(again) == 4
    assert again.manifest_sha256 == whole.manifest_sha256


def test_goals_follow_the_stated_rule(tmp_path, play_tiny):
    played = play_tiny(range(6), tiny_game.CRASHING)
    with EpisodeStore.create(
        tmp_path / "s", game=tiny_game.CRASHING, catalogue=tiny_game.catalogue()
    ) as store:
        for episode in played:
            store.add(episode)
    recorded, always = set(), set(range(len(tiny_game.NAMES)))
    for episode in played:
        for step in range(episode.steps):
            called = set(episode.trace(step).ids.tolist())
            recorded |= called
            if episode.fault is None or step < episode.steps - 1:
                always &= called
    assert store.goals() == tuple(sorted(recorded - always))
    names = store.manifest["goals"]["recorded_minus_always"]["names"]
    assert "tiny_game:Corridor.crash" in names
    assert "tiny_game:Corridor.tick" not in names
    assert "tiny_game:Corridor.start" not in names
    with pytest.raises(InputError, match="no goal rule"):
        store.goals("all")
    with pytest.raises(InputError, match="lanista data goals"):
        store.goals("action_dependent")


def test_a_split_takes_whole_plays(tmp_path, play_tiny):
    with create(tmp_path / "s") as store:
        for episode in play_tiny(range(30), cap=3):
            store.add(episode)
    sides = {
        side: {item.key.episode_id for item in store.episodes(side, observations=False)}
        for side in ("train", "validation", "test")
    }
    assert sum(map(len, sides.values())) == len(set.union(*sides.values())) == 30
    assert {side: len(ids) for side, ids in sides.items()} == store.manifest["totals"]["split"]
    with pytest.raises(InputError, match="no split 'dev'"):
        next(store.episodes("dev"))


def test_other_games_engines_and_catalogues_are_refused(tmp_path, play_tiny):
    episode = play_tiny([0])[0]
    store = create(tmp_path / "s")
    for name, value in (
        ("game", "crafter"),
        ("engine_version", "2"),
        ("engine_sha256", "00"),
        ("catalogue_sha256", "00"),
    ):
        with pytest.raises(InputError, match="the store of"):
            store.add(replace(episode, key=replace(episode.key, **{name: value})))
    with pytest.raises(InputError, match="no observations"):
        store.add(replace(episode, observations=None))
    with pytest.raises(InputError, match="rewards"):
        store.add(replace(episode, rewards=episode.rewards[1:]))
    with pytest.raises(InputError, match="trace offsets"):
        store.add(replace(episode, trace_offsets=episode.trace_offsets + 1))
    assert len(store) == 0


def test_another_recipe_in_the_same_folder_is_refused(tmp_path):
    create(tmp_path / "s", {"seed": 0, "episodes": 3})
    assert len(create(tmp_path / "s", {"seed": 0, "episodes": 3})) == 0
    with pytest.raises(InputError, match=r"another recipe \(seed\)"):
        create(tmp_path / "s", {"seed": 1, "episodes": 3})
    with pytest.raises(InputError, match="another catalogue"):
        EpisodeStore.create(
            tmp_path / "s", game=tiny_game.GAME, catalogue=Catalogue((), "class"), recipe={}
        )
    with pytest.raises(InputError, match="stored or replayed"):
        create(tmp_path / "t", {"observations": "painted"})


def test_folders_that_are_no_stores_are_refused(tmp_path):
    with pytest.raises(InputError, match="no episode store"):
        EpisodeStore.open(tmp_path)
    (tmp_path / "letters").write_text("dear")
    with pytest.raises(InputError, match="something that is no episode store"):
        create(tmp_path)
    with pytest.raises(InputError, match="something that is no episode store"):
        create(tmp_path / "letters")
    with pytest.raises(InputError, match="cannot be written"):
        create("/proc/nowhere/store")


def test_reading_what_is_not_there_names_it(tmp_path, play_tiny):
    with create(tmp_path / "s") as store:
        store.add(play_tiny([0])[0])
    with pytest.raises(InputError, match="no episode 'abc' with seat 1"):
        store.read("abc", 1)
    file = tmp_path / "s" / store.rows()[0]["file"]
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    with pytest.raises(InputError, match=file.name):
        list(store.episodes())
    file.unlink()
    with pytest.raises(InputError, match=f"{file.name} is missing"):
        list(store.episodes())


def test_a_replay_that_breaks_leaves_the_next_one_a_whole_game(tmp_path, play_tiny, monkeypatch):
    from lanista.data import replay

    played = play_tiny(range(6), tiny_game.CRASHING)
    with EpisodeStore.create(
        tmp_path / "s",
        game=tiny_game.CRASHING,
        catalogue=tiny_game.catalogue(),
        recipe={"observations": "replayed"},
    ) as store:
        for episode in played:
            store.add(episode)
    begin = tiny_game.CrashingEnv.reset

    def reset(self, **arguments):
        if self.corridor.time == self.corridor.crash_at:
            raise OSError("the game is gone")
        return begin(self, **arguments)

    monkeypatch.setattr(tiny_game.CrashingEnv, "reset", reset)
    replay.environment_for.cache_clear()
    assert [item.fault is None for item in store.episodes()] == [True, True, False] * 2
