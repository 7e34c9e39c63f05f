"""Agents whose actions are made of numbers: what they reach, and paths that play them again."""

import json
from pathlib import Path
from typing import Any

import meadow
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lanista.agents import experts
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.policies import RandomPolicy
from lanista.agents.training import train
from lanista.data.collect import CollectRecipe, RecipeTester, collect
from lanista.data.dataset import GoalDataset
from lanista.data.executor import SerialExecutor
from lanista.data.store import EpisodeStore
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.findings import Tape, tape_from_json
from lanista.evaluation.paths import save_paths
from lanista.evaluation.players import CheckpointMaker
from lanista.evaluation.protocol import evaluate
from lanista.evaluation.replay import load_recording, replay

GOALS = tuple(
    f"meadow.rules:Meadow.{name}" for name in ("touch_bell", "touch_lamp", "touch_gate", "win")
)
SMALL = {"dimension": 32, "vector_hidden": 64, "state_dimension": 64, "mlp_hidden": (64,)}
AGENTS = [
    AgentConfig(algorithm="gcbc", **SMALL),
    AgentConfig(algorithm="gcbc", call_stack="mhsa", **SMALL),
    AgentConfig(algorithm="gcdt", context=4, **SMALL),
    AgentConfig(algorithm="gcdt", call_stack="mhsa", context=4, **SMALL),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> GoalDataset:
    """200 plays, each by a walker with one thing in mind."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("meadow") / "store"
    recipe = CollectRecipe(
        "meadow:GAME", 200, (RecipeTester("walker", 1.0, {"stop_steps": (9, 13)}),)
    )
    collect(path, recipe, SerialExecutor(), experts.make_tester, experts.tester_hash)
    store = EpisodeStore.open(path)
    return GoalDataset.from_episodes(
        store.episodes(),
        store.goals("recorded_minus_always"),
        store.catalogue,
        action_bounds=meadow.GAME.action_bounds,
    )


def judge(make_policy: Any, episodes: int = 6) -> Evaluation:
    worlds = tuple(range(10_000, 10_000 + episodes))
    protocol = GoalProtocol(meadow.GAME.id, GOALS, episodes, worlds, meadow.GAME.step_cap, 0)
    return evaluate(protocol, make_policy, "player", SerialExecutor())


@pytest.fixture(scope="module")
def at_random() -> Evaluation:
    return judge(lambda catalogue: RandomPolicy.of(meadow.GAME))


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_agents_reach_what_they_are_told_to_and_random_play_does_not(
    dataset: GoalDataset, at_random: Evaluation, tmp_path: Path, agent: AgentConfig
) -> None:
    config = TrainConfig(steps=200, batch_size=64, learning_rate=3e-3, threads=1, device="cpu")
    done = train(agent, config, dataset, tmp_path)
    found = judge(CheckpointMaker(done.checkpoint))
    assert at_random.success_rate.value <= 0.2
    assert found.success_rate.value >= 0.8
    assert not found.findings
    # The same plays once more: loss (2) leaves nothing to chance.
    again = judge(CheckpointMaker(done.checkpoint, greedy=True))
    assert np.array_equal(again.reached_at, found.reached_at)


def test_recorded_paths_play_again_from_their_files(at_random: Evaluation, tmp_path: Path) -> None:
    written = Evaluation.from_json(json.loads(json.dumps(at_random.to_json())))
    assert written.paths == at_random.paths
    files = save_paths(at_random.paths, tmp_path)
    assert len(files) > 5
    for file, path in zip(files, at_random.paths, strict=True):
        recording = load_recording(file)
        assert recording == path
        result = replay(recording)
        assert result.reproduced, result.first_difference
        assert result.first_difference is None


@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3)))
def test_a_tape_keeps_every_bit_of_its_actions(rows: list[tuple[float, ...]]) -> None:
    actions = np.array(rows, dtype=np.float32).reshape(-1, 3)
    plain = tuple(tuple(float(number) for number in row) for row in actions)
    tape = Tape("g", {}, "class", "", 0, "", "", None, plain)
    text = json.dumps({**vars(tape)})
    back = np.array(tape_from_json(json.loads(text)).actions, dtype=np.float32).reshape(-1, 3)
    assert back.tobytes() == actions.tobytes()
