"""Finding a cluster: one that does not answer is refused in seconds, workers find their code."""

import socket
import time

import pytest

from lanista.envs.errors import InputError
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
