"""``lanista evaluate``, ``replay`` and ``report`` as a person types them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanista.agents.checkpoint import latest_checkpoint
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.training import train
from lanista.data.dataset import GoalDataset
from lanista.data.episode import EpisodeKey
from lanista.data.executor import SerialExecutor
from lanista.data.rollout import Play, rollout
from lanista.envs.errors import InputError
from lanista.envs.game import load_game
from lanista.evaluation.evaluation import GoalProtocol
from lanista.evaluation.findings import save_findings
from lanista.evaluation.protocol import evaluate
from lanista.platform.checkpoint_judging import scratch_folder
from lanista.platform.cli.app import main


class Wanderer:
    """A tester that draws its actions."""

    def act(self, env: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(env.action_space.n))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that learned from a few steps of real Crafter."""
    game = load_game("crafter")
    catalogue, engine = game.catalogue("class"), game.engine()
    env = game.make("class", None)
    plays = [
        Play(
            EpisodeKey(
                "crafter", engine["version"], engine["sha256"], catalogue.sha256, world, 0, "w",
                None, 40,
            ),
            None,
            (world,),
        )
        for world in range(2)
    ]  # fmt: skip
    episodes = [rollout([env], [play], testers=[Wanderer()])[0] for play in plays]
    env.close()
    goals = [catalogue.resolve("Player._do_object"), catalogue.resolve("Cow.move")]
    dataset = GoalDataset.from_episodes(episodes, goals, catalogue, action_count=len(game.actions))
    folder = tmp_path_factory.mktemp("training")
    agent = AgentConfig(
        algorithm="gcbc", call_stack="emb", dimension=16, state_dimension=16, mlp_hidden=(16,)
    )
    settings = TrainConfig(steps=3, batch_size=4, checkpoint_every=3, metrics_every=3)
    train(agent, settings, dataset, folder, engine=engine)
    found = latest_checkpoint(folder)
    assert found is not None
    return found


def test_judge_then_replay_a_path_and_notice_a_change(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "judged"
    command = ["evaluate", checkpoint, "--goals", "Cow.move", "--episodes", 2, "--step-cap", 15]
    code, printed, _ = run(capsys, *command, "--workers", 0, "--out", out, "--json")
    assert code == 0
    value = json.loads(printed)
    assert [goal["name"] for goal in value["goals"]] == ["crafter.objects:Cow.move"]
    for name in ("success_rate", "episode_return", "function_coverage"):
        assert set(value[name]) >= {"value", "low", "high"}
    assert value["findings"] == []
    assert value["worlds"] == [10000, 10001]

    path = out / "paths" / "crafter.engine-World.move.json"
    code, printed, _ = run(capsys, "replay", path, "--json", "--video", tmp_path / "walk.mp4")
    found = json.loads(printed)
    assert (code, found["reproduced"], found["reached"]) == (0, True, True)
    assert (tmp_path / "walk.mp4").read_bytes()[4:8] == b"ftyp"

    changed = json.loads(path.read_text())
    changed["tape"]["digests"][0] = "0" * len(changed["tape"]["digests"][0])
    path.write_text(json.dumps(changed))
    code, printed, _ = run(capsys, "replay", path, "--json")
    assert (code, json.loads(printed)["reproduced"]) == (1, False)


def test_a_crash_at_the_reset_is_played_again_without_a_video(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from vault_game import make_robber

    protocol = GoalProtocol("vault_game:JAMMED", ("grab",), 1, (10000,), step_cap=5, seed=0)
    judged = evaluate(protocol, make_robber, "robber", SerialExecutor())
    (file,) = save_findings(judged.findings, tmp_path)
    film = tmp_path / "film.mp4"
    code, printed, said = run(capsys, "replay", file, "--json", "--video", film)
    value = json.loads(printed)
    assert (code, value["reproduced"], value["steps"]) == (0, True, 0)
    assert (value["video"], film.exists()) == (None, False)
    assert "No video: the game broke at its reset." in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--goals", "Unicorn.fly"], "Unicorn.fly"),
        (["--goals", "Zombie.move"], "not trained to reach"),
        (["--episodes", "0"], "episodes"),
        (["--episodes", "3", "--worlds", "10000-10001"], "worlds"),
        (["--worlds", "later"], "Worlds"),
        (["--game", "chess"], "chess"),
        (["--out", "/proc/judged"], "/proc/judged"),
    ],
)
def test_bad_requests_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, arguments: list[str], expected: str
) -> None:
    code, out, err = run(capsys, "evaluate", checkpoint, "--workers", 0, *arguments)
    assert (code, out) == (2, "")
    assert expected in err
    assert len([line for line in err.splitlines() if line.startswith("error:")]) == 1
    assert "Traceback" not in err


def test_bad_files_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    shutil.copytree(checkpoint, foreign)
    description = json.loads((foreign / "checkpoint.json").read_text())
    for function in description["catalogue"]["functions"]:
        function["name"] = f"elsewhere:{function['name'].partition(':')[2]}2"
    description["goals"] = [f"elsewhere:{name.partition(':')[2]}2" for name in description["goals"]]
    (foreign / "checkpoint.json").write_text(json.dumps(description))
    torn = tmp_path / "torn"
    shutil.copytree(checkpoint, torn)
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    noise = tmp_path / "noise.json"
    noise.write_text("{")
    for arguments, expected in (
        (["evaluate", tmp_path / "nowhere"], "nowhere"),
        (["evaluate", foreign, "--workers", 0], "elsewhere:"),
        (["evaluate", torn, "--workers", 0], "model.safetensors"),
        (["replay", noise], "noise.json"),
        (["replay", tmp_path / "none.json"], "none.json"),
        (["report", "nosuch", "--root", tmp_path], "nosuch"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, ""), arguments
        assert expected in err, arguments
        assert "Traceback" not in err, arguments


def test_what_breaks_while_plays_are_made_is_not_blamed_on_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the network went"), scratch_folder(tmp_path / "out"):
        raise ConnectionError("the network went")
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="file cannot be written to"),
        scratch_folder(tmp_path / "file"),
    ):
        pass
