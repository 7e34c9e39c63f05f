"""Finding a cluster: one that does not answer is refused in seconds, workers find their code."""

import socket
import time

import pytest

from lanista.envs.errors import InputError, RunError
from lanista.platform import cluster


def test_a_cluster_that_does_not_answer_is_refused_quickly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster._check_reachable(f"127.0.0.1:{port}")
        cluster._check_reachable("auto")
    began = time.monotonic()
    with pytest.raises(InputError, match=f"RAY_ADDRESS=127.0.0.1:{port}"):
        cluster._check_reachable(f"127.0.0.1:{port}")
    assert time.monotonic() - began < 10


def test_a_local_cluster_is_started_again_and_given_up_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    fails = [True, True, False]

    def init(**settings: object) -> None:
        assert settings["num_cpus"] == 2
        if fails.pop(0):
            raise Exception("The current node timed out.\nMore of it.")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", init)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    with cluster.ray_session(cpus=2):
        assert fails == []
    fails = [True] * 9
    with (
        pytest.raises(RunError, match=r"^Ray did not come up in 3 tries: The current node timed"),
        cluster.ray_session(cpus=2),
    ):
        pass
    assert len(fails) == 6


def test_workers_are_told_where_the_sources_are_only_if_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cluster._runtime_env() == {}

    def missing(name: str) -> None:
        raise cluster.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(cluster.metadata, "distribution", missing)
    entries = cluster._runtime_env()["env_vars"]["PYTHONPATH"].split(":")
    assert {entry.rpartition("/")[2] for entry in entries} == {
        "agents",
        "balance",
        "data",
        "envs",
        "evaluation",
        "league",
        "platform",
    }


@pytest.mark.usefixtures("ray_cluster")
def test_a_cluster_that_is_up_is_used_and_left_running() -> None:
    import ray

    with cluster.ray_session(cpus=64):
        assert ray.cluster_resources()["CPU"] == 2
    assert ray.is_initialized()
    assert "2 CPU" in cluster.describe_resources()
