"""The page from a sweep's folder: what it shows, and that it needs nothing else."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sweep_folder import make_sweep

from lanista.envs.errors import InputError
from lanista.evaluation.report.charts import learning_curves, legend
from lanista.evaluation.report.collect import collect_report_input
from lanista.evaluation.report.coverage_map import coverage_map
from lanista.evaluation.report.inputs import ReportInput
from lanista.evaluation.report.page import render_report, write_report
from lanista.evaluation.report.tables import difference_rows, group_rows


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sweep(tmp_path_factory.mktemp("runs") / "vault")


@pytest.fixture(scope="module")
def content(sweep: Path) -> ReportInput:
    return collect_report_input(sweep, videos=2)


class Outside(HTMLParser):
    """Gathers every address that a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"src", "href", "srcset", "data", "poster", "xlink:href"}:
                self.found.append(value or "")


def test_everything_in_the_folder_is_read(content: ReportInput) -> None:
    assert [agent.label for agent in content.agents][:3] == [
        "gc-bc-simple-0",
        "gc-bc-simple-1",
        "gc-bc-ca2-0",
    ]
    assert content.failed == {"gc-dt-ca2-9": "the loss is NaN at update 12"}
    assert [finding.fault.exception for finding in content.findings] == ["ZeroDivisionError"]
    assert len(content.videos) == 2
    assert "vault_game:Vault.grab" in {path.function for path in content.paths}


def test_the_folder_keeps_paths_findings_and_videos(sweep: Path, content: ReportInput) -> None:
    assert len(list((sweep / "paths").glob("*.json"))) == len(content.paths)
    assert len(list((sweep / "findings").glob("*.json"))) == 1
    assert all(clip.file.stat().st_size > 1000 for clip in content.videos)
    before = [clip.file.stat().st_mtime_ns for clip in content.videos]
    again = collect_report_input(sweep, videos=2)
    assert [clip.file.stat().st_mtime_ns for clip in again.videos] == before


def test_a_video_of_an_earlier_path_is_made_anew(tmp_path: Path, sweep: Path) -> None:
    folder = tmp_path / "vault"
    shutil.copytree(sweep, folder)
    [clip, other] = collect_report_input(folder, videos=2).videos
    file = folder / "paths" / f"{clip.file.stem}.json"
    longer = json.loads(file.read_text())
    longer["tape"]["actions"].insert(0, 0)
    longer["tape"]["digests"].insert(0, "0" * 10)
    file.write_text(json.dumps(longer))
    before = [item.file.stat().st_mtime_ns for item in (clip, other)]
    collect_report_input(folder, videos=2)
    after = [item.file.stat().st_mtime_ns for item in (clip, other)]
    assert (after[0] > before[0], after[1] == before[1]) == (True, True)


def test_the_page_needs_nothing_from_outside(tmp_path: Path, content: ReportInput) -> None:
    file = write_report(content, tmp_path / "deep" / "report.html")
    text = file.read_text()
    reader = Outside()
    reader.feed(text)
    assert [url[:30] for url in reader.found if not url.startswith(("#", "data:"))] == []
    assert not re.search(r"url\((?!#)|@import|<script", text)


def test_the_page_says_what_was_measured(content: ReportInput) -> None:
    text = render_report(content)
    for row in group_rows(content.agents):
        assert row.name in text
        assert f"{100 * row.success.value:.1f} %" in text
    for words in (
        "6 of 94 goals",
        "ZeroDivisionError",
        "Vault.never",
        "the loss is NaN",
        "lanista sweep vault.yaml",
        "validation/loss",
    ):
        assert words in text


def test_text_from_outside_is_escaped(content: ReportInput) -> None:
    from dataclasses import replace

    text = render_report(replace(content, title="<script>alert(1)</script>"))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_same_input_gives_the_same_page(content: ReportInput) -> None:
    assert render_report(content) == render_report(content)


def test_differences_are_paired_by_world(content: ReportInput) -> None:
    rows = difference_rows(content.agents)
    assert [row.name for row in rows] == [
        "GC-BC CA2 (MHSA) − GC-BC Simple",
        "GC-DT CA2 (MHSA) − GC-DT Simple",
    ]
    groups = {row.name: row for row in group_rows(content.agents)}
    expected = groups["GC-DT CA2 (MHSA)"].success.value - groups["GC-DT Simple"].success.value
    assert rows[1].success.value == pytest.approx(expected)
    assert rows[1].seeds == (0, 1)
    assert rows[1].seed_success.samples == 2


def test_agents_that_played_other_worlds_are_not_paired(content: ReportInput) -> None:
    from dataclasses import replace

    def moved(agent):  # type: ignore[no-untyped-def]
        if agent.variant == "simple":
            return agent
        found = agent.evaluation
        protocol = replace(found.protocol, worlds=tuple(w + 50 for w in found.protocol.worlds))
        return replace(agent, evaluation=replace(found, protocol=protocol))

    other = replace(content, agents=tuple(map(moved, content.agents)))
    assert difference_rows(other.agents) == []
    assert "not all agents were judged under this protocol" in render_report(other)


def test_the_map_counts_agents_and_plays(content: ReportInput) -> None:
    (file,) = coverage_map(content.agents)
    cells = {cell.label: cell for cell in file.cells}
    assert cells["Vault.turn"].agents == len(content.agents)
    assert cells["Vault.turn"].plays == sum(a.evaluation.played.sum() for a in content.agents)
    assert cells["Vault.never"].agents == 0
    assert cells["Vault.grab"].goal
    assert not cells["Vault.turn"].goal
    assert [cell.line for cell in file.cells] == sorted(cell.line for cell in file.cells)


def test_losses_come_before_speeds_where_there_is_no_room_for_all(content: ReportInput) -> None:
    from dataclasses import replace

    names = [f"train/speed_{index}" for index in range(6)] + ["train/loss", "validation/loss"]
    curves = {name: [(0.0, 1.0), (1.0, 0.5)] for name in names}
    chart = learning_curves([replace(agent, curves=curves) for agent in content.agents])
    assert chart.index("train/loss") < chart.index("validation/loss") < chart.index("speed_0")
    assert "speed_5" not in chart
    assert learning_curves([replace(agent, curves={}) for agent in content.agents]) == ""


def test_every_group_looks_different(content: ReportInput) -> None:
    entries = legend(content.agents)
    assert len({(entry.colour, entry.dashed) for entry in entries}) == len(entries) == 4
    assert entries[0].colour == entries[1].colour


def test_agents_of_a_grid_are_kept_apart(tmp_path: Path, sweep: Path) -> None:
    from shutil import copytree

    for context in (10, 20):
        for variant in ("simple", "ca2"):
            folder = tmp_path / "trials" / f"{variant}-{context}"
            copytree(sweep / "trials" / f"gc-dt-{variant}-0", folder)
            trial = json.loads((folder / "trial.json").read_text())
            trial |= {"label": folder.name, "options": f"context={context}"}
            (folder / "trial.json").write_text(json.dumps(trial))
    (tmp_path / "sweep.json").write_text("{}")
    content = collect_report_input(tmp_path, videos=0)
    assert [row.name for row in difference_rows(content.agents)] == [
        "GC-DT CA2 (MHSA) context=10 − GC-DT Simple context=10",
        "GC-DT CA2 (MHSA) context=20 − GC-DT Simple context=20",
    ]
    entries = legend(content.agents)
    assert len({(entry.colour, entry.dashed) for entry in entries}) == len(entries) == 4
    for folder in (tmp_path / "trials").iterdir():
        trial = json.loads((folder / "trial.json").read_text())
        (folder / "trial.json").write_text(json.dumps(trial | {"options": ""}))
    names = [row.name for row in group_rows(collect_report_input(tmp_path, videos=0).agents)]
    assert len(set(names)) == 4


def test_broken_folders_are_refused(tmp_path: Path, sweep: Path) -> None:
    with pytest.raises(InputError, match="no sweep's folder"):
        collect_report_input(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(InputError, match="No trial"):
        collect_report_input(tmp_path)
    trial = tmp_path / "trials" / "one"
    trial.mkdir(parents=True)
    trial_json = json.loads((sweep / "trials" / "gc-bc-ca2-0" / "trial.json").read_text())
    (trial / "trial.json").write_text(json.dumps(trial_json | {"variant": "both"}))
    (trial / "evaluation.json").write_text("{}")
    with pytest.raises(InputError, match="neither simple nor ca2"):
        collect_report_input(tmp_path)
    (trial / "trial.json").write_text("{broken")
    with pytest.raises(InputError, match="no JSON"):
        collect_report_input(tmp_path)
    with pytest.raises(InputError, match="at least one agent"):
        render_report(ReportInput("nothing", ()))


def test_what_only_the_recorded_plays_reached_is_told_apart(tmp_path: Path, sweep: Path) -> None:
    import shutil

    folder, store = tmp_path / "vault", tmp_path / "store"
    shutil.copytree(sweep, folder)
    store.mkdir()
    catalogue = collect_report_input(folder, videos=0).agents[0].evaluation.catalogue
    names = {name.rpartition(".")[2]: name for name in (f.name for f in catalogue.functions)}
    manifest = {
        "manifest_sha256": "ab12",
        "catalogue_sha256": catalogue.sha256,
        "functions": [{"name": names["never"], "steps": 3}, {"name": names["rust"], "steps": 0}],
    }
    (store / "manifest.json").write_text(json.dumps(manifest))
    page = json.loads((folder / "sweep.json").read_text())
    page["corpus"] = {"folder": str(store), "manifest": "ab12"}
    (folder / "sweep.json").write_text(json.dumps(page))
    content = collect_report_input(folder, videos=0)
    assert content.recorded == {names["never"]}
    cells = {c.name: c for f in coverage_map(content.agents, content.recorded) for c in f.cells}
    assert (cells[names["never"]].recorded, cells[names["rust"]].recorded) == (True, False)
    text = render_report(content)
    assert "1 of them were reached in the recorded plays" in text
    assert f"lanista replay {folder}/findings/" in text

    # A store that has changed since says nothing about what was learned from.
    (store / "manifest.json").write_text(json.dumps(manifest | {"manifest_sha256": "other"}))
    assert collect_report_input(folder, videos=0).recorded is None
