"""What goes wrong: in the game, in its start, and in what is asked for."""

import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine
from lanista.envs.godot.faults import (
    GameCrashed,
    GameFault,
    GameHung,
    GameOutOfMemory,
    GameProtocolError,
    GameScriptError,
)

Go = Callable[..., list[dict[str, Any]]]

both = pytest.mark.parametrize("bridge", [True, False], ids=["bridged", "plain"])


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def gone(pid: int, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@both
def test_a_killed_engine_is_noticed_at_once(games: Any, go: Go, bridge: bool) -> None:
    client = games.play(bridge=bridge)
    client.reset()
    client.step(go(0.0))
    os.kill(client.pid, signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(GameCrashed, match="SIGKILL") as caught:
        client.step(go(0.0))
    assert time.monotonic() - began < 3
    assert "Godot Engine" in caught.value.last_output
    with pytest.raises(GameCrashed, match="SIGKILL"):
        client.reset()
    assert not alive(client.pid)


def test_a_game_that_quits_by_itself_is_a_crash(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=1)
    client.call("leave")
    with pytest.raises(GameCrashed, match="exit code 7"):
        client.step(go(0.0))


@both
def test_a_game_without_an_answer_is_ended(games: Any, bridge: bool) -> None:
    client = games.start(games.project(bridge=bridge), timeout_s=0.5)
    client.reset()
    began = time.monotonic()
    with pytest.raises(GameHung, match=r"0\.5 s") as caught:
        client.call("freeze")
    assert 0.4 < time.monotonic() - began < 5
    assert "Godot Engine" in caught.value.last_output
    assert not alive(client.pid)


def test_a_game_over_its_memory_is_ended(games: Any) -> None:
    client = games.start(games.project(), memory_limit_mb=400)
    client.reset(seed=1)
    with pytest.raises(GameOutOfMemory, match="400 MB"):
        client.call("gorge")
    assert not alive(client.pid)


def test_script_errors_can_be_faults(games: Any, go: Go) -> None:
    client = games.start(games.project(), script_errors="raise")
    client.reset(seed=1)
    client.call("stumble")
    with pytest.raises(GameScriptError, match="nowhere") as caught:
        client.step(go(0.0))
    assert "SCRIPT ERROR" in caught.value.last_output
    assert client.step(go(0.0)).ticks == 8  # it can be played on


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("send_little", "'?obs'? has 1 numbers, and is declared with 4"),
        ("send_vectors", "is no number"),
        ("send_nothing", "no dictionary"),
        ("vanish", "freed its controller"),
    ],
)
def test_a_game_that_breaks_its_word_is_named(games: Any, go: Go, method: str, text: str) -> None:
    client = games.play()
    if method != "send_vectors":
        client.reset(seed=1)
    client.call(method)
    with pytest.raises(GameProtocolError, match=text):
        client.reset(seed=1)
    assert not alive(client.pid)


def test_an_unknown_method_is_refused_and_the_game_goes_on(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=1)
    with pytest.raises(InputError, match="no method fly"):
        client.call("fly")
    assert client.step(go(0.0)).ticks == 8


def test_closing_reaps_the_engine_and_its_home(games: Any) -> None:
    client = games.play()
    home = client._process._home
    assert home.is_dir()
    client.close()
    client.close()
    assert not alive(client.pid)
    assert not home.exists()
    with pytest.raises(RunError, match="closed"):
        client.reset()


def test_a_client_that_is_let_go_is_reaped(games: Any) -> None:
    project = games.project()
    client = games.start(project)
    pid, home = client.pid, client._process._home
    games.started.clear()
    del client
    gc.collect()
    assert gone(pid)
    assert not home.exists()


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_the_engine_to_its_parent(games: Any, go: Go) -> None:
    client = games.play()
    client.reset(seed=1)
    child = os.fork()
    if child == 0:
        client._process._tidy()
        os._exit(0)
    os.waitpid(child, 0)
    assert client.step(go(0.0)).ticks == 8


SCRIPT = """
import sys, threading, time
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import find_engine

clients = []
def start():
    clients.append(GodotClient.start(find_engine(), sys.argv[1]))
thread = threading.Thread(target=start)
thread.start()
thread.join()
clients[0].reset()
print(clients[0].pid, clients[0]._process._home, flush=True)
{then}
"""


@pytest.mark.parametrize("ending", ["killed while the game hangs", "no close"])
def test_no_engine_outlives_its_python(games: Any, ending: str) -> None:
    project = games.project()
    killed = ending != "no close"
    then = "clients[0].call('freeze')" if killed else "assert clients[0].reset().ticks == 1"
    script = textwrap.dedent(SCRIPT).format(then=then)
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(project)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    pid, home = child.stdout.readline().split()
    assert Path(home).is_dir()
    if killed:
        assert alive(int(pid))
        child.kill()
    child.wait(20)
    child.stdout.close()
    assert gone(int(pid))
    if not killed:
        assert child.returncode == 0
        assert not Path(home).exists()


def test_a_start_that_fails_says_why(games: Any) -> None:
    broken = games.project(name="broken", sync=None)
    (broken / "runner_controller.gd").write_text("extends Nothing\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"(?s)did not come up.*is unknown.*Nothing"):
        games.start(broken, start_timeout_s=2.0)
    nothing = games.project(name="nothing", settings="config_version=5\n[application]\n")
    with pytest.raises(RunError, match="names no main scene"):
        games.start(nothing, start_timeout_s=10.0)
    lonely = games.project(name="lonely", sync=None, bridge=False)
    with pytest.raises(RunError, match="no Sync node"):
        games.start(lonely, start_timeout_s=1.0)


def test_what_makes_no_sense_is_refused_before_a_start(
    games: Any, engine: Engine, tmp_path: Path
) -> None:
    project = games.project()
    with pytest.raises(InputError, match="no such project"):
        games.start(tmp_path / "missing")
    with pytest.raises(InputError, match=r"no project\.godot"):
        games.start(tmp_path)
    with pytest.raises(InputError, match="at least once"):
        games.start(project, action_repeat=0)
    with pytest.raises(InputError, match="plain word"):
        games.start(project, options={"two words": "1"})
    with pytest.raises(InputError, match="needs an engine"):
        GodotClient.start(None, project)
    with pytest.raises(InputError, match="lanista godot install"):
        GodotClient.start(Engine(("/nowhere/godot",), "4.6.3.stable"), project)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="leave it out"):
            games.start(project, port=taken.getsockname()[1])


def test_a_fixed_port_can_be_used_again(games: Any, go: Go) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    project = games.project()
    for _ in range(2):
        client = games.start(project, port=port)
        client.reset(seed=1)
        client.close()


def test_pictures_are_refused_without_a_window(games: Any) -> None:
    project = games.project()
    controller = project / "runner_controller.gd"
    text = controller.read_text(encoding="utf-8")
    controller.write_text(
        text + '\n\nfunc get_obs_space():\n\treturn {"view_2d": {"size": [3, 8, 8]}}\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"view_2d.*without a window"):
        games.start(project)


def test_a_fault_keeps_its_words_between_processes() -> None:
    fault = GameOutOfMemory("too much", "the last line")
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is GameOutOfMemory
    assert isinstance(again, GameFault)
    assert (str(again), again.last_output) == ("too much", "the last line")
