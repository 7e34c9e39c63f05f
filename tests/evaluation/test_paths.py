"""The shortest recorded way to each function, and that it can be played again."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vault_game import NAMES, catalogue, make_robber

from lanista.data.episode import Episode, EpisodeKey
from lanista.data.executor import SerialExecutor
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.paths import (
    first_calls,
    merge_paths,
    save_paths,
    shortest_paths,
    unreached,
)
from lanista.evaluation.protocol import default_worlds, evaluate
from lanista.evaluation.replay import load_recording, replay

ENGINE = {"name": "vault", "version": "1.0", "sha256": "va" * 32}


def episode(traces: list[list[int]], world: int = 0) -> Episode:
    key = EpisodeKey(
        "vault_game:GAME", "1.0", "va" * 32, catalogue().sha256, world, 0, "p", None, 50
    )
    offsets = np.cumsum([0, *map(len, traces)])
    return Episode(
        key=key,
        world_fingerprint=f"vault {world}",
        actions=np.arange(len(traces)),
        rewards=np.zeros(len(traces), dtype=np.float32),
        trace_ids=CallTrace([call for trace in traces for call in trace]).ids,
        trace_offsets=offsets.astype(np.int64),
        reset_trace=CallTrace([NAMES.index("setup")]),
        terminated=False,
        truncated=True,
    )


TRACES = st.lists(st.lists(st.integers(0, len(NAMES) - 1), max_size=4), max_size=8)


@given(TRACES)
def test_first_calls_are_those_of_a_plain_search(traces: list[list[int]]) -> None:
    expected = [
        next((step for step, trace in enumerate(traces) if function in trace), -1)
        for function in range(len(NAMES))
    ]
    assert first_calls(episode(traces), len(NAMES)).tolist() == expected


@given(st.lists(TRACES, min_size=1, max_size=4))
def test_shortest_paths_are_those_of_a_plain_search(plays: list[list[list[int]]]) -> None:
    episodes = [episode(traces, world) for world, traces in enumerate(plays)]
    found = {path.function: path for path in shortest_paths(episodes, catalogue(), ENGINE)}
    for function, name in enumerate(NAMES):
        lengths = [
            step + 1 for traces in plays for step, trace in enumerate(traces) if function in trace
        ]
        path = found.get(f"vault_game:Vault.{name}")
        assert (path.steps if path else None) == min(lengths, default=None)
    backwards = shortest_paths(episodes[::-1], catalogue(), ENGINE)
    assert {path.function: path for path in backwards} == found


def test_merging_does_not_depend_on_order() -> None:
    plays = [[[0], [1]], [[1], [2]], [[2], [0], [3]]]
    groups = [
        shortest_paths([episode(traces, world)], catalogue(), ENGINE)
        for world, traces in enumerate(plays)
    ]
    merged = merge_paths(groups)
    assert all(merge_paths(order) == merged for order in itertools.permutations(groups))
    assert [path.steps for path in merged] == [1, 1, 1, 3]
    assert unreached(merged, catalogue()) == tuple(f"vault_game:Vault.{name}" for name in NAMES[4:])


def test_other_catalogues_are_refused() -> None:
    with pytest.raises(InputError, match="records other functions"):
        shortest_paths([episode([[0]])], catalogue("definition"), ENGINE)


@pytest.fixture(scope="module")
def judged() -> Evaluation:
    protocol = GoalProtocol(
        "vault_game:GAME", ("grab", "wait", "creak"), 3, default_worlds(3), step_cap=10, seed=0
    )
    return evaluate(protocol, make_robber, "robber", SerialExecutor())


def test_every_path_of_an_evaluation_comes_again(tmp_path: Path, judged: Evaluation) -> None:
    files = save_paths(judged.paths, tmp_path)
    assert len(files) == judged.coverage
    for file in files:
        recording = load_recording(file)
        result = replay(recording)
        assert result.reproduced, (file.name, result)
        assert result.reached
        assert result.first_difference is None
        assert result.steps == len(recording.tape.actions)


def test_a_path_that_leads_elsewhere_is_not_reproduced(judged: Evaluation) -> None:
    (path,) = [path for path in judged.paths if path.function.endswith("grab")]
    wrong = replace(path, tape=replace(path.tape, actions=(1, 1, 3, 4)))
    result = replay(wrong)
    assert not result.reproduced
    assert not result.reached
    assert result.first_difference is not None
    assert (result.first_difference.step, result.first_difference.field) == (2, "trace")
    blind = replay(replace(wrong, tape=replace(wrong.tape, digests=())))
    assert blind.first_difference is not None
    assert (blind.first_difference.field, blind.first_difference.replayed) == (
        "function",
        "never called",
    )
