"""The project as it is, played by godot_rl's own environment."""

import contextlib
import io
import shlex
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from lanista.envs.godot.engine import Engine
from lanista.envs.godot.robot import PROJECT


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("agents", [1, 3])
def test_godot_rl_plays_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int
) -> None:
    from godot_rl.core.godot_env import GodotEnv

    copy = tmp_path / "project"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns(".godot"))
    program = tmp_path / "game.x86_64"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.join(engine.command)} --path {copy} "$@" >/dev/null 2>&1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    with contextlib.redirect_stdout(io.StringIO()):
        env = GodotEnv(
            env_path=str(program), port=free_port(), seed=4, speedup=16, framerate=30,
            action_repeat=8, agents=agents, level=1, mode="single",
        )  # fmt: skip
    try:
        assert env.num_envs == agents
        observed, _ = env.reset()
        assert [len(one["obs"]) for one in observed] == [65] * agents
        assert [one["obs"][0] for one in observed] == [0.0] * agents
        ended = np.zeros(agents, bool)
        for number in range(20):
            action = [np.tile([0.0, -1.0], (agents, 1))]
            observed, reward, done, _, info = env.step(np.stack(action))
            if number == 0:
                # One step is 8 ticks, the first one too.
                assert [one["obs"][0] for one in observed] == pytest.approx([8 / 3500] * agents)
            ended |= np.array(done)
            assert len(reward) == len(info) == agents
        assert ended.all()  # at the goal, or over the far edge
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            env.close()
        env.proc.wait(20)
