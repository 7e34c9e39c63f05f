"""godot-rl's own environment drives these games, with the bridge in them and without."""

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def drive(games: Any, capsys: Any) -> Iterator[Any]:
    """Starts a project under godot-rl's own environment, as its users do."""
    from godot_rl.core.godot_env import GodotEnv

    made = []

    def start(project: Path) -> Any:
        program = project / "game.x86_64"
        command = shlex.join([*games.engine.command, "--path", str(project)])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        env = GodotEnv(env_path=str(program), port=port, seed=4, framerate=60, action_repeat=4)
        made.append(env)
        return env

    yield start
    for env in made:
        env.close()
        env.proc.wait(10)


@pytest.mark.parametrize("bridge", [True, False], ids=["bridged", "plain"])
def test_its_environment_plays_them(games: Any, drive: Any, bridge: bool) -> None:
    env = drive(games.project(runners=2, bridge=bridge, trace=bridge))
    assert env.num_envs == 2
    assert env.observation_space["obs"].shape == (4,)
    obs, _ = env.reset()
    assert len(obs) == 2
    names = list(env.action_spaces[0].keys())
    acts = [np.ones((2, 1), np.float32) if name == "move" else np.ones(2, int) for name in names]
    rewards, dones, infos = np.zeros(2), 0, []
    for _ in range(24):
        obs, reward, done, _, info = env.step(acts)
        rewards += reward
        dones += sum(done)
        infos += [told for told, ended in zip(info, done, strict=True) if ended]
    assert dones == rewards.sum() >= 4
    assert len(obs[0]["obs"]) == 4
    assert env.call("ticks_a_second")[0][0] == 60
    if bridge:
        assert all(told["terminal_observation"]["obs"][0] > 3.0 for told in infos)
        assert not any(told["TimeLimit.truncated"] for told in infos)
        assert all(3 in told["call_trace"] for told in infos)
