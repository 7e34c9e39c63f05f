"""A game that hangs on a Ray worker costs one play, which can be played again."""

from pathlib import Path

import pytest
from vault_game import make_robber

from lanista.evaluation.evaluation import GoalProtocol
from lanista.evaluation.findings import save_findings
from lanista.evaluation.protocol import default_worlds, evaluate
from lanista.evaluation.replay import load_recording, replay
from lanista.platform.executor import RayExecutor


@pytest.mark.slow
@pytest.mark.parametrize(("game", "kind"), [("HANGING", "hang"), ("EXITING", "crash")])
def test_a_game_that_takes_its_worker_with_it(
    tmp_path: Path, ray_cluster: None, game: str, kind: str
) -> None:
    protocol = GoalProtocol(
        f"vault_game:{game}", ("close", "wait"), 2, default_worlds(2), step_cap=10, seed=0
    )
    executor = RayExecutor(2, hang_timeout_s=6.0, max_tries=1)
    found = evaluate(protocol, make_robber, "robber", executor, scratch=tmp_path / "scratch")

    # Only the two plays that slam the vault are lost, though all four shared a unit at first.
    assert found.played.tolist() == [[False, False], [True, True]]
    assert {finding.fault.kind for finding in found.findings} == {kind}
    assert [finding.tape.actions for finding in found.findings] == [(1, 2, 3, 0)] * 2
    assert executor.restarted > 0
    file = save_findings(found.findings, tmp_path / "findings")[0]
    result = replay(load_recording(file), hang_after_s=6.0)
    assert result.reproduced
    assert result.steps == 4
