"""The client: starts a game, and plays all its agents in lock step.

It plays unmodified godot-rl games and exported programs over the plain protocol, and instrumented
copies through Lanista's bridge, which adds what the plain protocol cannot say: a seed and options
for each reset, the terminal observation, termination apart from truncation, and the call trace.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot.agent_spaces import (
    Action,
    AgentSpaces,
    Observation,
    read_spaces,
    refuse_pixels,
)
from lanista.envs.godot.connection import Connection, DisconnectedError, ProtocolError
from lanista.envs.godot.faults import (
    GameFault,
    GameHung,
    GameProtocolError,
    GameScriptError,
)
from lanista.envs.godot.frames import Frame, StepFrame, Told
from lanista.envs.godot.launching import (
    EngineCommand,
    accept,
    check_start,
    command_line,
    failed_start,
    listen,
)
from lanista.envs.godot.packed import (
    EXTENSION_VERSION,
    FrameReader,
    PackedFrame,
    is_json,
    pack_actions,
)
from lanista.envs.godot.process import EngineProcess
from lanista.envs.godot.protocol import (
    MAJOR_VERSION,
    MINOR_VERSION,
    plain_actions,
    read_json,
    read_plain_observations,
)


class GodotClient:
    """One game process and the agents in it. Make it with ``GodotClient.start``.

    Attributes:
        spaces: What each agent sees and does.
        bridged: Whether Lanista's bridge answers; a plain game takes no seed, options or single
            agents on a reset, and gives no trace and no terminal observation.
        action_repeat: Physics ticks per step; ``None`` where a plain game decides.
        ticks_per_second: The game's physics ticks per second of game time, where known.
        startup_trace: Ids of the functions called before the first reset; ``None`` as for traces.
        timeout_s: Seconds that every answer may take.
    """

    def __init__(
        self,
        process: EngineProcess,
        connection: Connection,
        *,
        timeout_s: float,
        script_errors: Literal["report", "raise"],
    ) -> None:
        self.timeout_s = timeout_s
        self.spaces: tuple[AgentSpaces, ...] = ()
        self.bridged = False
        self.action_repeat: int | None = None
        self.ticks_per_second: int | None = None
        self.startup_trace: NDArray[np.int32] | None = None
        self._process = process
        self._connection = connection
        self._script_errors = script_errors
        self._reader = FrameReader(())
        self._errors_seen = 0
        self._fault: GameFault | None = None
        self._closed = False

    @classmethod
    def start(
        cls,
        engine: EngineCommand | None,
        project: Path | str,
        *,
        seed: int = 0,
        action_repeat: int | None = None,
        speedup: float = 1,
        options: Mapping[str, str] | None = None,
        headless: bool = True,
        fixed_fps: int | None = None,
        timeout_s: float = 60.0,
        start_timeout_s: float = 60.0,
        memory_limit_mb: int | None = None,
        scene: str | None = None,
        port: int | None = None,
        script_errors: Literal["report", "raise"] = "report",
        plain: bool = False,
    ) -> Self:
        """Start a game and learn what its agents see and do.

        Args:
            engine: The engine; ``None`` only where ``project`` is an exported program.
            project: Folder of a Godot project, or an exported program.
            seed: Seed of the game's random numbers, set before its first scene where the bridge
                answers.
            action_repeat: Physics ticks per step; ``None`` for the game's own.
            speedup: Physics ticks per main-loop iteration of a *plain* game, which scales its
                clock; a bridged one always runs at its own.
            options: Options that the game may read (level, difficulty): given as ``--name=value``
                and, where the bridge answers, to the game's ``lanista_reset``.
            headless: Whether to run without a window; there are no pixels then.
            fixed_fps: Main-loop iterations per second of game time; ``None`` for the project's
                physics ticks, 0 for real time.
            timeout_s: Seconds that every later answer may take.
            start_timeout_s: Seconds until the game must have told its spaces.
            memory_limit_mb: Resident megabytes at which the game is ended; ``None`` for no limit.
            scene: Scene to play (``res://…``) instead of the project's main scene.
            port: TCP port to listen on; ``None`` lets the system choose a free one.
            script_errors: ``raise`` makes a script error a ``GameScriptError``; ``report`` only
                tells of it.
            plain: Speak the plain protocol even to a bridge.

        Raises:
            InputError: If something asked for makes no sense or cannot be had (no such project,
                port in use, engine missing, pixels without a window).
            RunError: If the game does not come up: it ended, or told no spaces in time.
            GameCrashed: If a signal ended it while it came up.
        """
        target = Path(project)
        check_start(engine, target, action_repeat, timeout_s, start_timeout_s, options, speedup)
        listener = listen(port)
        try:
            command = command_line(
                engine,
                target,
                port=int(listener.getsockname()[1]),
                seed=seed,
                action_repeat=action_repeat,
                speedup=speedup,
                options=options or {},
                headless=headless,
                fixed_fps=fixed_fps,
                scene=scene,
            )
            process = EngineProcess(command, memory_limit_mb=memory_limit_mb)
            try:
                deadline = time.monotonic() + start_timeout_s
                connection = accept(listener, process, deadline)
                client = cls(process, connection, timeout_s=timeout_s, script_errors=script_errors)
                client._introduce(seed, options or {}, action_repeat, deadline, plain=plain)
                if headless:
                    refuse_pixels(client.spaces[0], target)
            except BaseException:
                process.close(grace_s=0.0)
                raise
        finally:
            listener.close()
        return client

    @property
    def n_agents(self) -> int:
        """Number of agents in the process."""
        return len(self.spaces)

    @property
    def pid(self) -> int:
        """Process id of the engine."""
        return self._process.pid

    @property
    def output(self) -> str:
        """The last lines that the engine printed."""
        return self._process.output()

    @property
    def script_error_count(self) -> int:
        """Number of script errors that the engine has printed so far."""
        return self._process.script_errors

    def script_error_lines(self, last: int) -> list[str]:
        """Return the last script errors that the engine has printed, a text each."""
        return self._process.script_error_lines(last)

    def _introduce(
        self,
        seed: int,
        options: Mapping[str, str],
        action_repeat: int | None,
        deadline: float,
        *,
        plain: bool,
    ) -> None:
        handshake: dict[str, Any] = {
            "type": "handshake",
            "major_version": MAJOR_VERSION,
            "minor_version": MINOR_VERSION,
        }
        if not plain:
            # A game without the bridge reads the two versions and nothing else.
            handshake["lanista"] = {
                "version": EXTENSION_VERSION,
                "seed": str(seed),  # as a text: the game reads numbers as floats
                "options": dict(options),
                "action_repeat": action_repeat,
            }
        try:
            self._connection.send_json(handshake)
            self._connection.send_json({"type": "env_info"})
            left = max(0.1, deadline - time.monotonic())
            message = read_json(self._connection.receive(left), "env_info")
            self.spaces = read_spaces(message)
        except (DisconnectedError, TimeoutError, ProtocolError) as error:
            raise failed_start(self._process, error) from error
        self._reader = FrameReader(self.spaces)
        self.action_repeat = action_repeat
        told = message.get("lanista")
        if isinstance(told, dict):
            if told.get("version") != EXTENSION_VERSION:
                raise InputError(
                    f"The copy carries bridge version {told.get('version')!r}, this Lanista speaks "
                    f"{EXTENSION_VERSION}: instrument the project again."
                )
            self.bridged = True
            self.action_repeat = int(told["action_repeat"])
            self.ticks_per_second = int(told["ticks_per_second"])
            if told.get("startup_trace") is not None:
                self.startup_trace = np.asarray(told["startup_trace"], np.int32)

    def reset(
        self,
        seed: int | None = None,
        options: Mapping[str, str] | None = None,
        agents: Sequence[int] | None = None,
        *,
        reload: bool = False,
    ) -> Frame:
        """Begin episodes.

        Args:
            seed: Seed of the game's random numbers from here on; ``None`` leaves them running.
            options: Options offered to the game for the new episodes.
            agents: The agents to reset; ``None`` for all.
            reload: Load the scene afresh first, so that nothing of earlier episodes is left in it.

        Raises:
            InputError: If a plain game is asked for what only the bridge can do.
            GameFault: Whatever the game did wrong; see ``lanista.envs.godot.faults``.
        """
        if not self.bridged:
            if seed is not None or options or agents is not None or reload:
                raise InputError(
                    "A plain godot-rl game takes no seed, options or single agents on a reset: "
                    "instrument the project, or set them at the start."
                )
            message = self._ask({"type": "reset"}, "reset")
            return Frame(self._observed(message), self._infos(message), (None,) * self.n_agents)
        frame = self._frame(
            {
                "type": "reset",
                "seed": None if seed is None else str(seed),
                "options": dict(options or {}),
                "agents": None if agents is None else list(agents),
                "reload": reload,
            }
        )
        result = Frame(*self._told(frame))
        self._check_script_errors(result.script_errors)
        return result

    def step(self, actions: Sequence[Action]) -> StepFrame:
        """Act once with every agent.

        Args:
            actions: One per agent: from the part's name to an array or list (continuous, clipped
                by the game) or a whole number (discrete).

        Raises:
            ValueError: If an action does not fit the agent's space.
            GameFault: Whatever the game did wrong; see ``lanista.envs.godot.faults``.
        """
        if len(actions) != self.n_agents:
            raise ValueError(f"{len(actions)} actions were given for {self.n_agents} agents")
        if self.bridged:
            return self._bridged_step(actions)
        sent = {"type": "action", "action": plain_actions(actions, self.spaces)}
        message = self._ask(sent, "step")
        done = np.asarray([bool(value) for value in self._column(message, "done")], np.bool_)
        try:
            reward = np.asarray(self._column(message, "reward"), np.float64)
        except (TypeError, ValueError) as error:
            raise self._wrong(f"its reward is {message.get('reward')!r}") from error
        count = self.n_agents
        result = StepFrame(
            self._observed(message),
            self._infos(message),
            (None,) * self.n_agents,
            reward=reward,
            terminated=done,
            truncated=np.zeros(count, np.bool_),
            final_obs=(None,) * count,
            final_exact=np.zeros(count, np.bool_),
        )
        self._check_script_errors(())
        return result

    def _bridged_step(self, actions: Sequence[Action]) -> StepFrame:
        frame = self._frame(pack_actions(actions, self.spaces))
        result = StepFrame(
            *self._told(frame),
            reward=frame.rewards,
            terminated=frame.terminated,
            truncated=frame.truncated,
            final_obs=frame.final_observations,
            final_exact=frame.final_exact,
        )
        self._check_script_errors(result.script_errors)
        return result

    def call(self, method: str) -> list[Any]:
        """Call a method without arguments on every agent.

        Returns:
            What each returned, as JSON holds it.
        """
        message = self._ask({"type": "call", "method": method}, "call")
        returns = message.get("returns")
        if message.get("error"):
            raise InputError(f"The agents cannot be asked for {method!r}: {message['error']}.")
        if not isinstance(returns, list):
            raise self._wrong(f"its answer to {method} is {returns!r}")
        return returns

    def close(self) -> None:
        """Ask the game to end, end it if it does not, and clean up. May be called twice."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(DisconnectedError, TimeoutError):
            self._connection.send_json({"type": "close"})
        self._connection.close()
        self._process.close(grace_s=1.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        *_: object,
    ) -> None:
        self.close()

    def _frame(self, message: bytes | dict[str, Any]) -> PackedFrame:
        payload = self._exchange(message)
        try:
            if is_json(payload):
                told = read_json(payload)
                raise self._wrong(str(told.get("error", "it sent JSON where a frame was due")))
            return self._reader.read(payload)
        except ProtocolError as error:
            raise self._wrong(str(error)) from error

    def _ask(self, message: dict[str, Any], kind: str) -> dict[str, Any]:
        try:
            return read_json(self._exchange(message), kind)
        except ProtocolError as error:
            raise self._wrong(str(error)) from error

    def _exchange(self, message: bytes | dict[str, Any]) -> bytearray:
        if self._fault is not None:
            raise self._fault
        if self._closed:
            raise RunError("The game has been closed; start it again.")
        try:
            if isinstance(message, bytes):
                self._connection.send(message)
            else:
                self._connection.send_json(message)
            return self._connection.receive(self.timeout_s)
        except DisconnectedError as error:
            raise self._failed(self._process.wait_for_end()) from error
        except TimeoutError as error:
            if self._process.poll() is not None:
                raise self._failed(self._process.wait_for_end()) from error
            self._process.kill()
            hung = GameHung(
                f"the game gave no answer in {self.timeout_s:g} s and was ended",
                self._process.output(),
            )
            raise self._failed(hung) from error
        except ProtocolError as error:
            raise self._wrong(str(error)) from error

    def _failed(self, fault: GameFault) -> GameFault:
        """Remember a fault after which the process is of no more use."""
        self._fault = fault
        self._connection.close()
        self._process.kill()
        return fault

    def _wrong(self, what: str) -> GameFault:
        return self._failed(
            GameProtocolError(f"the game broke the protocol: {what}", self._process.output())
        )

    def _observed(self, message: Mapping[str, Any]) -> tuple[Observation, ...]:
        try:
            return read_plain_observations(message.get("obs"), self.spaces)
        except ProtocolError as error:
            raise self._wrong(str(error)) from error

    def _column(self, message: Mapping[str, Any], name: str) -> list[Any]:
        values = message.get(name)
        if not isinstance(values, list) or len(values) != self.n_agents:
            raise self._wrong(f"its {name} is {values!r}")
        return values

    def _infos(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        infos = message.get("info")
        if not isinstance(infos, list) or len(infos) != self.n_agents:
            return tuple({} for _ in range(self.n_agents))
        return tuple(info if isinstance(info, dict) else {} for info in infos)

    def _told(self, frame: PackedFrame) -> Told:
        """Return what a reset and a step both show, in the order of ``Frame``."""
        return (
            frame.observations,
            self._infos(frame.extra),
            (frame.trace,) * self.n_agents,
            frame.trace_truncated,
            frame.ticks,
            tuple(str(error) for error in frame.extra.get("errors", ())),
        )

    def _check_script_errors(self, raised: tuple[str, ...]) -> None:
        if self._script_errors != "raise":
            return
        count = self._process.script_errors
        texts = list(raised) or self._process.script_error_lines(count - self._errors_seen)
        self._errors_seen = count
        if texts:
            raise GameScriptError(texts[0], self._process.output())
