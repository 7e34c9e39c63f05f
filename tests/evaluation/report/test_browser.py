"""The report in a real browser: everything in it loads, and the console stays silent."""

import json
import re
import shutil
import struct
import subprocess
from html import unescape
from pathlib import Path

import pytest
from sweep_folder import make_sweep

from lanista.evaluation.report.collect import collect_report_input
from lanista.evaluation.report.page import write_report

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--enable-logging=stderr",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=8000",
    "--window-size=1200,1600",
]
# Runs in a copy of the page, and leaves what it saw where --dump-dom prints it.
PROBE = """
<script>
const seen = {errors: []};
addEventListener("error", event => seen.errors.push(String(event.message || event.target)), true);
addEventListener("load", () => setTimeout(() => {
  seen.rows = document.querySelectorAll("#summary tbody tr").length;
  seen.videos = [...document.querySelectorAll("video")].map(
    video => [video.readyState, video.videoWidth, video.duration]);
  seen.chart = document.querySelector(".curves svg").getBoundingClientRect().height;
  seen.wide = document.documentElement.scrollWidth - innerWidth;
  const note = document.createElement("pre");
  note.id = "probe";
  note.textContent = JSON.stringify(seen);
  document.body.append(note);
}, 3000));
</script>
"""


def chromium(*arguments: str, profile: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("No Chromium to open the report in: apt-get install chromium")
    command = [program, *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)


@pytest.mark.slow
def test_the_report_opens_in_chromium(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "vault")
    content = collect_report_input(sweep, videos=2)
    page = write_report(content, tmp_path / "report.html")
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text().replace("</head>", PROBE + "</head>"))

    done = chromium("--dump-dom", probed.as_uri(), profile=tmp_path / "one")
    note = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout)
    assert note is not None, done.stderr[-2000:]
    seen = json.loads(unescape(note[1]))
    assert seen["errors"] == []
    assert seen["rows"] == 4 + 2
    assert len(seen["videos"]) == 2
    for ready, width, duration in seen["videos"]:
        assert ready >= 1
        assert width == 848
        assert duration > 0.5
    assert seen["chart"] > 150
    assert seen["wide"] <= 0
    assert "CONSOLE" not in done.stderr

    picture = tmp_path / "report.png"
    done = chromium(f"--screenshot={picture}", page.as_uri(), profile=tmp_path / "two")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (1200, 1600)
    assert picture.stat().st_size > 40_000
    assert "CONSOLE" not in done.stderr
