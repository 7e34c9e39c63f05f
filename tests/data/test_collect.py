"""A recording is what its recipe says, whoever works on it and however often it is interrupted."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_game

from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor, WorkerFailure
from lanista.data.files import only_writer
from lanista.data.store import EpisodeStore
from lanista.data.verify import quarantine, verify
from lanista.envs.errors import InputError

RECIPE = CollectRecipe(
    game="tiny_game:GAME",
    episodes=9,
    testers=(
        RecipeTester("bold", 2.0),
        RecipeTester("shy", 1.0, {"actions": 2, "stop_steps": (3, 9)}),
    ),
    seed=5,
)


class ShufflingExecutor:
    """Several workers, made from pickles, whose results come in any order."""

    def __init__(self, workers, seed):
        self.workers, self.random, self.restarted = workers, random.Random(seed), 0

    def run(self, make_worker, units):
        workers = [pickle.loads(pickle.dumps(make_worker))() for _ in range(self.workers)]
        order = list(enumerate(units))
        self.random.shuffle(order)
        for index, unit in order:
            worker = self.random.choice(workers)
            yield index, pickle.loads(pickle.dumps(worker(pickle.loads(pickle.dumps(unit)))))


class FailingExecutor(SerialExecutor):
    """Its worker dies at some units each time."""

    restarted = 2

    def __init__(self, fails):
        self.fails = fails

    def run(self, make_worker, units):
        for index, result in super().run(make_worker, units):
            failed = units[index][0].play.key.world in self.fails
            yield index, WorkerFailure("hang", "no answer", 3) if failed else result


class Interrupt(Exception):
    pass


def record(path, recipe=RECIPE, executor=None, **options):
    return collect(
        path,
        recipe,
        executor or SerialExecutor(),
        tiny_game.make_tester,
        tiny_game.tester_hash,
        **options,
    )


def test_the_result_does_not_depend_on_the_workers(tmp_path):
    serial = record(tmp_path / "serial")
    assert serial.episodes == 9
    assert verify(tmp_path / "serial").ok
    for workers, games, seed in ((1, 1, 0), (3, 1, 1), (2, 4, 2)):
        path = tmp_path / f"{workers}-{games}"
        shuffled = record(path, executor=ShufflingExecutor(workers, seed), games_per_worker=games)
        assert shuffled == serial
        assert (path / "manifest.json").read_bytes() == (
            tmp_path / "serial" / "manifest.json"
        ).read_bytes()


def test_every_play_follows_the_recipe(tmp_path):
    record(tmp_path / "s")
    store = EpisodeStore.open(tmp_path / "s")
    rows = store.rows()
    assert [row["key"]["world"] for row in rows] == list(range(9))
    players = {row["key"]["player"] for row in rows}
    assert players == {
        tiny_game.tester_hash("", share.name, share.parameters) for share in RECIPE.testers
    }
    for episode in store.episodes():
        if episode.key.player.startswith("shy"):
            assert 3 <= episode.steps <= 9
            assert set(episode.actions.tolist()) <= {0, 1}
    assert store.recipe["testers"][1]["sha256"].startswith("shy")
    assert store.recipe["step_cap"] == 50


def test_seed_and_worlds_change_the_recording(tmp_path):
    hashes = {record(tmp_path / "a").manifest_sha256}
    hashes.add(record(tmp_path / "b", replace(RECIPE, seed=6)).manifest_sha256)
    hashes.add(record(tmp_path / "c", replace(RECIPE, first_world=1)).manifest_sha256)
    assert len(hashes) == 3


def test_a_second_call_returns_the_finished_result(tmp_path):
    first = record(tmp_path / "s")
    seen = []

    class Never(SerialExecutor):
        def run(self, make_worker, units):
            raise AssertionError("nothing is left to do")

    again = record(tmp_path / "s", executor=Never(), on_episode=seen.append)
    assert again == first
    assert len(seen) == 9


def test_an_interrupted_recording_goes_on(tmp_path):
    whole = record(tmp_path / "whole")
    done = []

    def stop_after_four(row):
        done.append(row["episode_id"])
        if len(done) == 4:
            raise Interrupt

    with pytest.raises(Interrupt):
        record(tmp_path / "s", executor=ShufflingExecutor(2, 1), on_episode=stop_after_four)
    played = []

    class Counting(SerialExecutor):
        def run(self, make_worker, units):
            played.extend(item.play.key.episode_id for unit in units for item in unit)
            return super().run(make_worker, units)

    assert record(tmp_path / "s", executor=Counting()) == whole
    assert len(played) == 5
    assert not set(played) & set(done)


def test_another_recipe_is_refused_and_changes_nothing(tmp_path):
    before = record(tmp_path / "s")
    with pytest.raises(InputError, match=r"another recipe \(episodes, seed\)"):
        record(tmp_path / "s", replace(RECIPE, episodes=10, seed=1))
    assert record(tmp_path / "s") == before


def test_faults_are_kept_and_equal_ones_are_one_finding(tmp_path):
    recipe = replace(RECIPE, game="tiny_game:CRASHING", testers=(RecipeTester("bold"),))
    result = record(tmp_path / "s", recipe)
    assert result.episodes == 9
    assert len(result.findings) == 1
    finding = result.findings[0]
    assert (finding["count"], finding["world"], finding["exception"]) == (3, 2, "RuntimeError")
    assert finding["where"].startswith("tiny_game.py:")
    broken = EpisodeStore.open(tmp_path / "s").read(finding["episode_id"])
    assert broken.fault is not None
    assert "in crash" in broken.fault.traceback


def test_plays_whose_worker_dies_are_told_and_tried_again(tmp_path):
    whole = record(tmp_path / "whole")
    result = record(tmp_path / "s", executor=FailingExecutor({2, 5}))
    assert (result.episodes, result.restarted) == (7, 2)
    assert [(item["world"], item["kind"]) for item in result.failures] == [(2, "hang"), (5, "hang")]
    again = record(tmp_path / "s")
    assert again.failures == []
    assert again.manifest_sha256 == whole.manifest_sha256


def test_lost_files_are_recorded_again_after_quarantine(tmp_path):
    whole = record(tmp_path / "s")
    victim = tmp_path / "s" / EpisodeStore.open(tmp_path / "s").rows()[3]["file"]
    victim.write_bytes(victim.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{victim.name} is truncated"):
        record(tmp_path / "s")
    quarantine(tmp_path / "s")
    assert record(tmp_path / "s") == whole
    assert verify(tmp_path / "s").ok


def test_only_some_functions_may_be_recorded(tmp_path):
    result = record(tmp_path / "s", replace(RECIPE, only=("tiny_game:*",)))
    assert result.episodes == 9
    assert EpisodeStore.open(tmp_path / "s").recipe["only"] == ["tiny_game:*"]


def test_recipes_that_make_no_sense_are_refused_with_all_that_is_wrong(tmp_path):
    bad = CollectRecipe(
        "tiny_game:GAME", 0, (RecipeTester("a", 0.0),), first_world=-1, step_cap=0, seed=-1
    )
    with pytest.raises(InputError) as error:
        record(tmp_path / "s", bad)
    assert len(error.value.problems) == 5
    assert not (tmp_path / "s").exists()
    with pytest.raises(InputError, match="testers is empty"):
        record(tmp_path / "s", replace(RECIPE, testers=()))
    with pytest.raises(InputError, match="stop_steps"):
        record(tmp_path / "s", replace(RECIPE, testers=(RecipeTester("a", 1, {"stop_steps": 4}),)))
    with pytest.raises(InputError, match="No game is named"):
        record(tmp_path / "s", replace(RECIPE, game="nonesuch"))
    with pytest.raises(InputError, match="cannot be written"):
        record("/proc/nowhere/s")


def test_two_recordings_do_not_write_one_folder(tmp_path):
    with only_writer(tmp_path / "s"), pytest.raises(InputError, match="another process"):
        record(tmp_path / "s")
    assert record(tmp_path / "s").episodes == 9


SCRIPT = """
import sys
sys.path.insert(0, {games!r})
import tiny_game
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.executor import SerialExecutor
recipe = CollectRecipe(game="tiny_game:GAME", episodes=40, testers=(RecipeTester("bold"),))
print("ready", flush=True)
collect({path!r}, recipe, SerialExecutor(), tiny_game.make_tester, tiny_game.tester_hash)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_killing_the_recording_at_any_moment_loses_and_doubles_nothing(tmp_path, kills):
    recipe = CollectRecipe("tiny_game:GAME", 40, (RecipeTester("bold"),))
    whole = record(tmp_path / "whole", recipe)
    path = tmp_path / "s"
    games = str(Path(tiny_game.__file__).parent)
    script = SCRIPT.format(games=games, path=str(path))
    chance = random.Random(3)
    held = 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        goal = held + chance.randint(1, 4)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(path.glob("episodes/*.parquet"))) >= goal:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = verify(path)
        assert {item.what for item in found.problems} <= {
            "unknown: left half written by a recording that was killed"
        }
        assert len(found.sound) >= max(held, 1)
        held = len(found.sound)
        assert len(EpisodeStore.open(path)) == held
    assert 0 < held < 40
    assert record(path, recipe) == whole
    assert verify(path).ok
    manifest = json.loads((path / "manifest.json").read_text())
    assert len(manifest["episodes"]) == len(list(path.glob("episodes/*"))) == 40
