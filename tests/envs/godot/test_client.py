"""Games without the bridge, over the plain protocol of several plugin versions."""

import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lanista.envs.errors import InputError
from lanista.envs.godot.agent_spaces import ActionPart, ObservationPart
from lanista.envs.godot.client import GodotClient

Go = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("sync", "policy", "runners"),
    [("sync_three", "shared_policy", 1), ("sync_seven", "runners", 2)],
)
def test_a_game_of_any_version_is_played(
    games: Any, go: Go, sync: str, policy: str, runners: int
) -> None:
    client = games.play(sync, bridge=False, runners=runners, name="plain game é")
    assert not client.bridged
    assert client.n_agents == runners
    space = client.spaces[0]
    assert space.observation == (ObservationPart("obs", (4,)),)
    assert set(space.action) == {ActionPart("move", 1, False), ActionPart("look", 3, True)}
    assert space.policy == policy
    start = client.reset()
    assert start.obs[0]["obs"].dtype == np.float32
    assert start.obs[0]["obs"].shape == (4,)
    assert start.obs[0]["obs"][3] == 1.0  # the controller was told that a model plays
    frames = [client.step(go(1.0, runners)) for _ in range(8)]
    ended = [frame for frame in frames if frame.terminated.any()]
    assert len(ended) >= 1
    assert ended[0].reward[0] == 1.0 or runners > 1
    assert all(frame.traces == (None,) * runners for frame in frames)
    assert client.call("ticks_a_second") == [[60, 1]] * runners
    if sync == "sync_seven":
        assert frames[0].info == ({},) * runners


def test_a_plain_game_is_not_asked_for_what_it_cannot_do(games: Any, go: Go) -> None:
    client = games.play("sync_seven", bridge=False)
    for wish in ({"seed": 1}, {"options": {"level": "2"}}, {"agents": [0]}, {"reload": True}):
        with pytest.raises(InputError, match="instrument the project"):
            client.reset(**wish)
    assert client.reset().obs[0]["obs"].shape == (4,)
    with pytest.raises(ValueError, match="0 to 2"):
        client.step([{"move": [0.0], "look": 3}])
    with pytest.raises(ValueError, match="lacks 'look'"):
        client.step([{"move": [0.0]}])
    with pytest.raises(ValueError, match="2 values"):
        client.step([{"move": [0.0, 1.0], "look": 0}])
    with pytest.raises(ValueError, match="nan"):
        client.step([{"move": [float("nan")], "look": 0}])
    assert client.step(go(0.0)).obs[0]["obs"].shape == (4,)


def test_an_exported_program_is_played(games: Any, go: Go) -> None:
    project = games.project("sync_seven", bridge=False, name="exported")
    program = games.folder / "my game.x86_64"
    command = shlex.join([*games.engine.command, "--path", str(project)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    client = GodotClient.start(None, program, action_repeat=2, start_timeout_s=30)
    games.started.append(client)
    client.reset()
    before = client.step(go(0.0)).obs[0]["obs"][1]
    assert client.step(go(0.0)).obs[0]["obs"][1] - before == 2
