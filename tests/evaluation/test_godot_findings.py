"""What a Godot game does wrong is a finding, and playing its tape again finds the same."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanista.agents import experts
from lanista.data.collect import CollectRecipe, RecipeTester, collect, findings
from lanista.data.executor import SerialExecutor
from lanista.data.store import EpisodeStore
from lanista.envs.game import load_game
from lanista.envs.godot.engine import find_engine
from lanista.evaluation.findings import Finding, engine_of, save_findings
from lanista.evaluation.replay import load_recording, replay

MAKER = Path(__file__).parents[1] / "envs" / "godot" / "conftest.py"

FAULTS = {
    "crash": ("OS.kill(OS.get_process_id())", "", ("crash", "GameCrashed", "engine")),
    "quit": ("get_tree().quit(3)\n\tOS.delay_msec(200)", "", ("crash", "GameCrashed", "engine")),
    "hang": (
        "while true:\n\t\tOS.delay_msec(20)",
        "timeout_s=3.0",
        ("hang", "GameHung", "engine"),
    ),
    "memory": (
        (
            "var eaten := []\n\twhile true:\n\t\tvar meal := PackedByteArray()\n"
            "\t\tmeal.resize(8 << 20)\n\t\tmeal.fill(1)\n\t\teaten.append(meal)"
        ),
        "memory_limit_mb=500",
        ("crash", "GameOutOfMemory", "engine"),
    ),
    "script": (
        "var nothing: Variant = null\n\tnothing.explode()",
        "",
        ("exception", "GameScriptError", "runner.gd:"),
    ),
}


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A module with one game for each fault, which a runner meets when it reaches an end."""
    folder = tmp_path_factory.mktemp("faults")
    spec = importlib.util.spec_from_file_location("godot_games", MAKER)
    assert spec is not None
    assert spec.loader is not None
    maker = sys.modules["godot_games"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    lines = ["from lanista.envs.godot.game import godot_game"]
    for name, (code, settings, _) in FAULTS.items():
        project: Path = maker.GameMaker(find_engine(), folder).project(
            "sync_seven", bridge=False, name=name, limit=100_000
        )
        runner = project / "runner.gd"
        head, body = runner.read_text().split("func finish(prize: float):\n", 1)
        runner.write_text(f"{head}func finish(prize: float):\n\t{code}\n{body}")
        arguments = ", ".join(
            filter(None, [repr(str(project)), f"game_id='faulty_halls:{name.upper()}'", settings])
        )
        lines.append(f"{name.upper()} = godot_game({arguments})")
    (folder / "faulty_halls.py").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield "faulty_halls"
        sys.modules.pop("faulty_halls", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_found_again(games: str, tmp_path: Path, name: str) -> None:
    game_id = f"{games}:{name.upper()}"
    recipe = CollectRecipe(
        game=game_id,
        episodes=3,
        testers=(RecipeTester("random", 1.0, {"repeat": 0.8}),),
        step_cap=120,
    )
    done = collect(
        tmp_path / "store", recipe, SerialExecutor(), experts.make_tester, experts.tester_hash
    )
    assert done.episodes == 3
    kind, exception, where = FAULTS[name][2]
    store = EpisodeStore.open(tmp_path / "store")
    (found,) = findings(store)
    assert (found["kind"], found["exception"]) == (kind, exception)
    assert found["where"].startswith(where)
    assert found["count"] >= 1

    game = load_game(game_id)
    broken = next(episode for episode in store.episodes() if episode.fault is not None)
    finding = Finding.of(broken, game.catalogue("class"), engine_of(game))
    assert finding is not None
    save_findings([finding], tmp_path / "findings")
    (file,) = (tmp_path / "findings").glob("*.json")
    again = replay(load_recording(file))
    assert again.reproduced, again.first_difference
    assert again.steps == broken.steps
    assert again.exception is not None
    assert again.exception.startswith(exception)
