"""A sweep as a Ray job, against a head and an MLflow server that run elsewhere."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
GAMES = Path(__file__).parents[1] / "data" / "games"
TOKEN = "f00d" * 16
SWEEP = """
name: job
data:
  path: datasets/tiny
  collect:
    game: "tiny_game:GAME"
    episodes: 8
    step_cap: 20
    testers: [{name: random}]
agents:
  Simple:
    {algorithm: gcbc, dimension: 8, image_channels: [4], image_kernels: [3], image_strides: [2],
     state_dimension: 8, mlp_hidden: [8]}
train: {steps: 20, batch_size: 4}
evaluate: {goals: {subset: 2}, episodes: 2, step_cap: 15}
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


def wait_for(url: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=3):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


@pytest.fixture
def tracking(tmp_path: Path, migrated_database: Path) -> Iterator[str]:
    """An MLflow server as a process of its own."""
    [port] = free_ports(1)
    database = tmp_path / "server.db"
    shutil.copy(migrated_database, database)
    command = [str(BIN / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{database}"]
    command += ["--artifacts-destination", str(tmp_path / "artifacts")]
    with (tmp_path / "mlflow.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture
def head(tmp_path: Path, tracking: str) -> Iterator[dict[str, str]]:
    """A Ray head that wants a token, with a root outside of what jobs upload."""
    port, dashboard, client, agent, metrics, environments = free_ports(6)
    # Sockets below the folder must have short names.
    temporary = Path(f"/tmp/lanista-head-{os.getpid()}")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RAY_", "LANISTA_", "MLFLOW_"))
    } | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_USAGE_STATS_ENABLED": "0",
        "LANISTA_ROOT": str(tmp_path / "root"),
        "MLFLOW_TRACKING_URI": tracking,
        "PYTHONPATH": str(GAMES),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    command = [str(BIN / "ray"), "start", "--head", "--block", "--num-cpus=2"]
    command += [f"--port={port}", f"--dashboard-port={dashboard}", "--disable-usage-stats"]
    command += [f"--ray-client-server-port={client}", f"--temp-dir={temporary}"]
    # Its agent takes jobs in, and would not start on a port that another Ray here holds.
    command += [f"--dashboard-agent-listen-port={agent}", f"--metrics-export-port={metrics}"]
    command += [f"--runtime-env-agent-port={environments}"]
    command += ["--node-ip-address=127.0.0.1", "--object-store-memory=200000000"]
    with (tmp_path / "head.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for(f"http://127.0.0.1:{dashboard}/api/gcs_healthz")
        yield environment | {"RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}"}
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(temporary, ignore_errors=True)


def submit(
    words: list[str], folder: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Submit a job and wait for its end; a head that has just come up says: try again later."""
    deadline = time.monotonic() + 120
    while True:
        done = subprocess.run(
            [str(BIN / "ray"), "job", "submit", "--working-dir", ".", "--", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
        )
        if "try again later" not in done.stderr or time.monotonic() > deadline:
            return done
        time.sleep(3)


@pytest.mark.slow
def test_a_sweep_runs_as_a_job(head: dict[str, str], tracking: str, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    shutil.copytree(REPOSITORY / "experiments", upload / "experiments")
    (upload / "job.yaml").write_text(SWEEP)
    done = submit(["lanista", "sweep", "job.yaml", "--json"], upload, head)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    root = tmp_path / "root"
    result = json.loads((root / "runs" / "job" / "result.json").read_text())
    assert (result["finished"], result["failed"]) == (1, 0)
    assert Path(result["report"]).is_relative_to(root)
    client = MlflowClient(tracking)
    experiment = client.get_experiment_by_name("job")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.status for run in runs) == ["FINISHED", "FINISHED"]
    assert {item.path for item in client.list_artifacts(result["parent_run_id"])} >= {"report"}

    # Without the token nothing is taken in.
    refused = submit(["true"], upload, head | {"RAY_AUTH_TOKEN": "0" * 64})
    assert refused.returncode != 0
