"""A planted bug that only one sequence of actions meets becomes one finding, and comes again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vault_game import SECRET, catalogue, make_robber

from lanista.data.episode import Fault
from lanista.data.executor import SerialExecutor
from lanista.envs.errors import InputError
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.findings import Finding, Tape, merge_findings, save_findings
from lanista.evaluation.protocol import default_worlds, evaluate
from lanista.evaluation.replay import load_recording, replay


@pytest.fixture(scope="module")
def judged() -> Evaluation:
    protocol = GoalProtocol(
        "vault_game:GAME", ("close", "wait", "grab"), 3, default_worlds(3), step_cap=12, seed=0
    )
    return evaluate(protocol, make_robber, "robber", SerialExecutor())


def test_the_crash_is_one_finding_and_the_rest_goes_on(judged: Evaluation) -> None:
    (finding,) = judged.findings
    assert finding.occurrences == 3
    assert finding.fault.exception == "ZeroDivisionError"
    assert finding.fault.where.endswith("VaultEnv.slam")
    assert "slammed in world 10000" in finding.fault.traceback
    assert finding.tape.actions == (*SECRET, 0)
    assert finding.tape.world == 10000
    assert finding.tape.goal == "vault_game:Vault.close"
    assert finding.last_calls[-2][-1] == "vault_game:Vault.open"
    # The broken plays count with what they did; the others were played to their ends.
    assert judged.played.all()
    assert judged.steps.tolist() == [[4] * 3, [12] * 3, [12] * 3]
    assert judged.returns[0].tolist() == [1.0] * 3


def test_it_is_saved_and_comes_again(tmp_path: Path, judged: Evaluation) -> None:
    (file,) = save_findings(judged.findings, tmp_path)
    recording = load_recording(file)
    assert recording == judged.findings[0]
    result = replay(recording)
    assert result.reproduced
    assert (result.steps, result.reached) == (4, False)
    assert result.exception == "ZeroDivisionError: slammed in world 10000"
    assert result.first_difference is None
    assert "episode" not in result.to_json()


def test_another_sequence_does_not_reproduce_it(judged: Evaluation) -> None:
    finding = judged.findings[0]
    harmless = replace(finding, tape=replace(finding.tape, actions=(1, 2, 1, 0), digests=()))
    result = replay(harmless)
    assert not result.reproduced
    assert result.exception is None
    assert result.first_difference is not None
    assert result.first_difference.field == "fault"
    assert result.first_difference.replayed == "nothing broke"


def test_a_difference_on_the_way_is_named(judged: Evaluation) -> None:
    finding = judged.findings[0]
    digests = (*finding.tape.digests[:2], "0" * 10, finding.tape.digests[3])
    result = replay(replace(finding, tape=replace(finding.tape, digests=digests)))
    assert not result.reproduced
    assert result.first_difference is not None
    assert (result.first_difference.step, result.first_difference.field) == (2, "trace")
    moved = replay(replace(finding, tape=replace(finding.tape, world_fingerprint="elsewhere")))
    assert moved.first_difference is not None
    assert moved.first_difference.field == "world"


def test_another_engine_is_named_but_does_not_speak_against_it(judged: Evaluation) -> None:
    finding = judged.findings[0]
    tape = replace(finding.tape, engine={**finding.tape.engine, "sha256": "other"})
    result = replay(replace(finding, tape=tape))
    assert result.reproduced
    assert result.first_difference is not None
    assert result.first_difference.field == "engine"


def test_merging_keeps_the_shortest_and_does_not_depend_on_order(judged: Evaluation) -> None:
    finding = judged.findings[0]
    finding = replace(finding, fault=replace(finding.fault, kind="hang", exception=""))
    longer = replace(finding, tape=replace(finding.tape, actions=(0,) * 9), occurrences=2)
    lost = replace(finding, tape=replace(finding.tape, actions=()), occurrences=1)
    other = replace(finding, fault=replace(finding.fault, where="elsewhere:1:f"))
    for order in ([finding, longer, lost, other], [other, lost, longer, finding]):
        merged = merge_findings(order)
        assert len(merged) == 2
        (same,) = [item for item in merged if item.fault.where == finding.fault.where]
        assert same.tape == finding.tape
        assert same.occurrences == 6
    assert finding.file_name != other.file_name


def test_a_game_that_breaks_at_its_reset_does_so_again(tmp_path: Path) -> None:
    protocol = GoalProtocol("vault_game:JAMMED", ("grab",), 2, default_worlds(2), 12, seed=0)
    judged = evaluate(protocol, make_robber, "robber", SerialExecutor())
    (finding,) = judged.findings
    assert (finding.tape.actions, finding.occurrences) == ((), 2)
    (file,) = save_findings([finding], tmp_path)
    result = replay(load_recording(file))
    assert (result.reproduced, result.steps) == (True, 0)
    assert result.exception == "ArithmeticError: the door is jammed"
    later = replace(finding, tape=replace(finding.tape, actions=(0,)))
    assert merge_findings([later, finding])[0].tape == finding.tape


def lost_finding(game: str, kind: str, actions: tuple[int, ...]) -> Finding:
    tape = Tape(
        game=game,
        engine={"name": "vault", "version": "1.0", "sha256": "va" * 32},
        scheme="class",
        catalogue_sha256=catalogue().sha256,
        world=10000,
        world_fingerprint="",
        player="robber",
        goal="vault_game:Vault.close",
        actions=actions,
    )
    return Finding(Fault(kind, "", "no result in time", "world 10000", ""), tape)


@pytest.mark.parametrize(("game", "kind"), [("HANGING", "hang"), ("EXITING", "crash")])
def test_hangs_and_crashes_are_played_in_a_process_of_their_own(game: str, kind: str) -> None:
    finding = lost_finding(f"vault_game:{game}", kind, (*SECRET, 0))
    result = replay(finding, hang_after_s=6.0)
    assert result.reproduced
    assert (result.steps, result.episode) == (4, None)


def test_a_hang_that_does_not_come_again_is_not_reproduced() -> None:
    result = replay(lost_finding("vault_game:HANGING", "hang", (1, 1, 1)), hang_after_s=6.0)
    assert not result.reproduced
    assert result.first_difference is not None
    assert result.first_difference.replayed == "nothing broke"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ('{"format": "lanista-tea"}', "is no recorded path or finding"),
        ('{"format": "lanista-finding"}', "not a finding"),
        (
            '{"format": "lanista-path", "function": "f", "tape": {}}',
            "corrupt: This is not a recorded path",
        ),
        (
            '{"format":"lanista-path","function":"f","tape":{"actions":[],"scheme":"edge","engine":1}}',
            "corrupt: This is not a recorded path",
        ),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    with pytest.raises(InputError, match=words):
        load_recording(file)


def test_missing_files_and_lost_actions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_recording(tmp_path / "none.json")
    (file,) = save_findings([lost_finding("vault_game:GAME", "hang", ())], tmp_path)
    with pytest.raises(InputError, match="holds no actions"):
        load_recording(file)


def test_json_round_trip_keeps_continuous_actions(judged: Evaluation) -> None:
    finding = judged.findings[0]
    tape = replace(finding.tape, actions=((0.5, -1.0), (0.0, 2.0)), digests=())
    value: Any = json.loads(json.dumps(replace(finding, tape=tape).to_json()))
    assert Finding.from_json(value).tape.actions == ((0.5, -1.0), (0.0, 2.0))


def test_a_findings_file_stays_in_its_folder(tmp_path: Path, judged: Evaluation) -> None:
    finding = judged.findings[0]
    fault = replace(finding.fault, exception="../../Error", kind="a/b")
    (file,) = save_findings([replace(finding, fault=fault)], tmp_path / "findings")
    assert file.parent.resolve() == tmp_path / "findings"
    assert file.name.startswith("a-b-..-..-Error-")
