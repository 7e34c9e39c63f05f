"""Corrupt, altered, missing and strange files are named; setting them aside mends the store."""

import json
import shutil
from pathlib import Path

import pytest
import tiny_game

from lanista.data.store import EpisodeStore
from lanista.data.verify import quarantine, verify
from lanista.envs.errors import InputError, RunError


@pytest.fixture
def store(tmp_path, play_tiny):
    with EpisodeStore.create(
        tmp_path / "s", game=tiny_game.GAME, catalogue=tiny_game.catalogue()
    ) as made:
        for episode in play_tiny(range(5)):
            made.add(episode)
    return made


def snapshot(path):
    return {
        item.relative_to(path).as_posix(): (item.read_bytes(), item.stat().st_mtime_ns)
        for item in path.rglob("*")
        if item.is_file()
    }


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    path.write_bytes(content)


def edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def first_file(store):
    return store.path / store.rows()[0]["file"]


def copy_foreign(store):
    """An episode of the same game that the manifest does not list, or under a wrong name."""
    source = first_file(store)
    shutil.copy(source, source.with_name("0123456789abcdef01234567-0.parquet"))


DAMAGES = {
    "truncated": (
        lambda s: first_file(s).write_bytes(first_file(s).read_bytes()[:-100]),
        "episodes/",
        "corrupt: cut from",
    ),
    "emptied": (lambda s: first_file(s).write_bytes(b""), "episodes/", "corrupt: cut from"),
    "byte in the middle": (lambda s: flip(first_file(s), 700), "episodes/", "altered"),
    "byte at the end": (lambda s: flip(first_file(s), -20), "episodes/", "altered"),
    "deleted": (lambda s: first_file(s).unlink(), "episodes/", "missing"),
    "strange": (
        lambda s: (s.path / "episodes" / "notes.txt").write_text("?"),
        "episodes/notes.txt",
        "unknown",
    ),
    "strange parquet": (
        lambda s: (s.path / "episodes" / "x.parquet").write_bytes(b"PAR1"),
        "episodes/x.parquet",
        "corrupt",
    ),
    "misnamed": (
        copy_foreign,
        "episodes/0123456789abcdef01234567-0.parquet",
        "altered: it holds",
    ),
    "half written": (
        lambda s: (s.path / "episodes" / ".tmp-77").write_bytes(b"PA"),
        "episodes/.tmp-77",
        "unknown: left half written",
    ),
    "header gone": (lambda s: (s.path / "store.json").unlink(), "store.json", "missing"),
    "header broken": (
        lambda s: (s.path / "store.json").write_text("{"),
        "store.json",
        "corrupt",
    ),
    "header altered": (
        lambda s: edit(s.path / "store.json", lambda v: v["catalogue"]["functions"].pop()),
        "store.json",
        "altered",
    ),
    "header of another engine": (
        lambda s: edit(s.path / "store.json", lambda v: v["engine"].update(version="9")),
        "store.json",
        "altered",
    ),
    "header of another form": (
        lambda s: edit(s.path / "store.json", lambda v: v.update(engine="old", recipe=[])),
        "store.json",
        "corrupt",
    ),
    "manifest gone": (lambda s: (s.path / "manifest.json").unlink(), "manifest.json", "missing"),
    "manifest cut": (
        lambda s: (s.path / "manifest.json").write_text("{"),
        "manifest.json",
        "corrupt",
    ),
    "manifest altered": (
        lambda s: edit(s.path / "manifest.json", lambda v: v["totals"].update(steps=9)),
        "manifest.json",
        "altered",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_named_and_mended(store, name):
    damage, file, what = DAMAGES[name]
    assert verify(store.path).ok
    damage(store)
    before = snapshot(store.path)
    found = verify(store.path)
    assert not found.ok
    assert len(found.problems) == 1
    assert found.problems[0].file.startswith(file)
    assert found.problems[0].what.startswith(what)
    assert snapshot(store.path) == before
    assert quarantine(store.path).problems == found.problems
    assert verify(store.path).ok
    mended = EpisodeStore.open(store.path)
    lost = what.startswith(("corrupt: cut", "missing", "altered")) and "episodes/" in file
    lost = lost and name != "misnamed"
    assert len(mended) == (4 if lost else 5)
    assert len(list(mended.episodes())) == len(mended)
    if not lost:
        assert mended.manifest_sha256 == store.manifest_sha256
    noted = json.loads((store.path / "quarantine.json").read_text())
    assert [item["file"] for item in noted] == [found.problems[0].file]
    moved = noted[0]["moved_to"]
    if what == "missing":
        assert moved is None
    else:
        assert (store.path / moved).read_bytes() == before[found.problems[0].file][0]


def test_several_problems_are_all_named(store):
    files = [store.path / row["file"] for row in store.rows()]
    files[0].unlink()
    flip(files[1], 500)
    files[2].write_bytes(files[2].read_bytes()[:200])
    (store.path / "stray").write_text("")
    assert [item.what.partition(":")[0] for item in verify(store.path).problems].count(
        "altered"
    ) == 1
    assert len(verify(store.path).problems) == 4
    quarantine(store.path)
    assert len(EpisodeStore.open(store.path)) == 2


def test_a_tampered_file_with_a_matching_hash_is_still_found(store):
    """Whoever alters a file and fits the file's hash to it is betrayed by the content's hash."""
    import hashlib

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    path = first_file(store)
    table = pq.read_table(path)
    index = table.schema.get_field_index("reward")
    changed = pc.add(table.column("reward"), pa.scalar(1, pa.float32()))
    table = table.set_column(index, table.schema.field("reward"), changed)
    pq.write_table(table, path)

    def fit(manifest):
        manifest["episodes"][0]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest["episodes"][0]["bytes"] = path.stat().st_size

    edit(store.path / "manifest.json", fit)
    assert [item.what for item in verify(store.path).problems] == [
        "altered: its content does not match its own hash"
    ]


def test_an_episode_that_the_manifest_does_not_list_is_strange(store, play_tiny, tmp_path):
    with EpisodeStore.create(
        tmp_path / "other", game=tiny_game.GAME, catalogue=tiny_game.catalogue()
    ) as other:
        other.add(play_tiny([77])[0])
    shutil.copy(first_file(other), store.path / "episodes")
    assert [item.what for item in verify(store.path).problems] == [
        "unknown: the manifest does not list it"
    ]
    assert len(EpisodeStore.open(store.path)) == 5


def test_an_interrupted_recording_is_no_problem(store, play_tiny):
    again = EpisodeStore.open(store.path)
    again.add(play_tiny([30])[0])
    found = verify(store.path)
    assert found.ok
    assert len(found.sound) == 6


def test_what_is_no_store_or_beyond_mending_is_refused(store, tmp_path):
    with pytest.raises(InputError, match="no episode store"):
        verify(tmp_path)
    for name in ("store.json", "manifest.json"):
        (store.path / name).write_text("?")
    assert len(verify(store.path).problems) == 2
    with pytest.raises(InputError, match="cannot be mended"):
        quarantine(store.path)


def test_what_is_set_aside_is_on_record_before_it_moves(store, monkeypatch):
    from lanista.data import verify as checks

    file = store.rows()[0]["file"]
    (store.path / file).write_bytes(b"?")

    def full(path, value):
        raise RunError(f"{path} cannot be written.")

    with monkeypatch.context() as patch:
        patch.setattr(checks, "write_json", full)
        with pytest.raises(RunError, match="cannot be written"):
            quarantine(store.path)
    assert (store.path / file).read_bytes() == b"?"
    (store.path / "quarantine.json").write_text("{}")
    with pytest.raises(InputError, match="is corrupt: it holds no list"):
        quarantine(store.path)
    assert (store.path / file).exists()


def test_an_altered_header_is_named_when_the_store_is_opened(store):
    edit(store.path / "store.json", lambda value: value["engine"].update(version="9"))
    with pytest.raises(InputError, match=r"store\.json is altered"):
        EpisodeStore.open(store.path)


def test_header_and_manifest_that_are_both_none_are_refused(store):
    edit(store.path / "store.json", lambda value: value.update(engine="old"))
    (store.path / "manifest.json").write_text("[]")
    found = verify(store.path)
    assert {problem.file for problem in found.problems} == {"manifest.json", "store.json"}
    with pytest.raises(InputError, match="cannot be mended"):
        quarantine(store.path)


def test_a_manifest_cannot_have_files_outside_the_store_moved(store, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("not a part of the store")
    outside = Path("..") / mine.relative_to(store.path.parent)
    edit(
        store.path / "manifest.json",
        lambda value: value["episodes"][0].update(file=outside.as_posix()),
    )
    with pytest.raises(InputError, match="is altered"):
        EpisodeStore.open(store.path)
    [problem] = quarantine(store.path).problems
    assert (problem.file, mine.exists()) == ("manifest.json", True)
    assert verify(store.path).ok
