"""A Godot game as a Gymnasium environment: one agent, its traces, a world for each play."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lanista.envs.errors import InputError
from lanista.envs.godot.client import GodotClient
from lanista.envs.godot.engine import Engine
from lanista.envs.godot.faults import GameFault, GameProtocolError, GameScriptError
from lanista.envs.godot.frames import Frame
from lanista.envs.godot.spaces import layouts
from lanista.envs.tracing.catalogue import Catalogue
from lanista.envs.tracing.trace import CallTrace

Fresh = Literal["reset", "reload", "restart"]
"""How a play begins: the agent's own reset, the scene loaded afresh, or the engine anew."""

_MOST_NUMBERS = 16


@dataclass(frozen=True)
class Launch:
    """How a game is started; the same launch starts the same game on every machine.

    Attributes:
        engine: The engine; ``None`` for an exported program.
        project: Folder of the project (an instrumented copy, to be traced), or the program.
        options: Options that every play has, for the game to read.
        action_repeat: Physics ticks per step; ``None`` for the game's own.
        scene: Scene to play instead of the main one.
        timeout_s: Seconds that every answer may take before the game counts as hung.
        start_timeout_s: Seconds that it may take to come up.
        memory_limit_mb: Resident megabytes at which it is ended; ``None`` for no limit.
        headless: Whether it has no window (and then no pixels).
    """

    engine: Engine | None
    project: Path
    options: Mapping[str, str] = field(default_factory=dict)
    action_repeat: int | None = None
    scene: str | None = None
    timeout_s: float = 60.0
    start_timeout_s: float = 60.0
    memory_limit_mb: int | None = None
    headless: bool = True

    def start(self, seed: int = 0, options: Mapping[str, str] | None = None) -> GodotClient:
        """Start the game; raises as :meth:`GodotClient.start`."""
        return GodotClient.start(
            self.engine,
            self.project,
            seed=seed,
            options={**self.options, **(options or {})},
            action_repeat=self.action_repeat,
            scene=self.scene,
            timeout_s=self.timeout_s,
            start_timeout_s=self.start_timeout_s,
            memory_limit_mb=self.memory_limit_mb,
            headless=self.headless,
        )


class GodotEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """One agent of a Godot game. The engine starts with the first play and is kept for the next.

    ``reset(options={"world": w, …})`` begins a play: the world seeds the game's random numbers,
    and all other options are offered to the game. ``info`` holds ``call_trace`` (a ``CallTrace``:
    of the reset, or of the action just taken), ``step_info`` (the numbers in the game's own info),
    ``summary`` (the counts in its ``summary``, if it gives any), ``game_info`` (the game's info as
    it is) and at a reset ``world_fingerprint``.

    Where the scene has several agents, one is played; the others do nothing, though their calls
    are in the trace, since one engine runs them all. To play all of them take ``GodotVectorEnv``.

    A game that is not instrumented has empty traces; it takes no seed with a reset, so its engine
    starts anew for each play.

    Attributes:
        catalogue: What the ids of the traces mean.
        last_trace: The trace of the last reset or step, of one that raised a script error too.
        last_observation: What was seen last.
        last_step_info: ``step_info`` of the last reset or step, for testers that read the game.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self,
        launch: Launch,
        catalogue: Catalogue | None = None,
        *,
        agent: int = 0,
        fresh: Fresh = "reload",
        script_errors: Literal["report", "raise"] = "raise",
    ) -> None:
        """Start the game once to learn what its agent sees and does.

        Args:
            launch: How the game is started.
            catalogue: The catalogue of the instrumented copy that is launched.
            agent: Number of the agent to play, from 0.
            fresh: How a play begins. ``reload`` leaves nothing of earlier plays in the scene;
                ``reset`` is faster, and right for games whose own reset does that.
            script_errors: ``raise`` makes an error in a script of the game a finding that ends
                the play; ``report`` plays on, with the texts in ``info["script_errors"]``.

        Raises:
            InputError: If there is no such agent, or it sees or does what no array can hold.
            RunError: If the game does not come up.
        """
        self.launch = launch
        self.catalogue = catalogue if catalogue is not None else Catalogue((), "class")
        self.last_trace = CallTrace()
        self.last_observation: NDArray[Any] | None = None
        self.last_step_info: dict[str, Any] = {}
        self._agent = agent
        self._fresh = fresh
        self._script_errors = script_errors
        self._errors_seen = 0
        self._client: GodotClient | None = launch.start()
        try:
            agents = self._client.n_agents
            if not 0 <= agent < agents:
                raise InputError(
                    f"{launch.project} has {agents} agents; there is no number {agent}."
                )
            self._seen, self._done = layouts(self._client.spaces[agent])
            self._plain = not self._client.bridged
            self._idle = [layouts(spaces)[1].neutral() for spaces in self._client.spaces]
        except BaseException:
            self.close()
            raise
        self._used = False
        self.observation_space = self._seen.space
        self.action_space = self._done.space
        self.action_names = self._done.names

    @property
    def client(self) -> GodotClient | None:
        """The running game, ``None`` before the next play after it broke."""
        return self._client

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin a play in world ``options["world"]``, else with ``seed``, else in a drawn world.

        Raises:
            GameFault: Whatever the game did wrong.
        """
        super().reset(seed=seed)
        passed = {str(name): value for name, value in (options or {}).items()}
        world = passed.pop("world", seed)
        if world is None:
            world = int(self.np_random.integers(2**31))
        texts = {name: _text(value) for name, value in passed.items()}
        try:
            frame = self._begin(int(world), texts)
        except GameFault as fault:
            raise self._broken(fault) from None
        info = self._look(frame, frame.obs[self._agent])
        digest = hashlib.sha256(f"{world}\0{json.dumps(texts, sort_keys=True)}\0".encode())
        digest.update(np.ascontiguousarray(self.last_observation).tobytes())
        return self._shown(), {**info, "world_fingerprint": digest.hexdigest()}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take one action.

        Raises:
            ValueError: If it does not fit the action space.
            GameFault: Whatever the game did wrong.
        """
        if self._client is None:
            raise gymnasium.error.ResetNeeded("The game is not running: reset it first.")
        actions = list(self._idle)
        actions[self._agent] = self._done.split(action)
        try:
            frame = self._client.step(actions)
        except GameFault as fault:
            raise self._broken(fault) from None
        final = frame.final_obs[self._agent]
        info = self._look(frame, frame.obs[self._agent] if final is None else final)
        return (
            self._shown(),
            float(frame.reward[self._agent]),
            bool(frame.terminated[self._agent]),
            bool(frame.truncated[self._agent]),
            info,
        )

    def close(self) -> None:
        """End the game."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _begin(self, world: int, options: dict[str, str]) -> Frame:
        if self._plain or (self._fresh == "restart" and self._used):
            self.close()
        if self._client is None:
            # Options of one play must not be those of the next, unless each has its own engine.
            self._client = self.launch.start(world, options if self._plain else None)
            self._errors_seen = 0
        self._used = True
        if self._plain:
            return self._client.reset()
        return self._client.reset(
            seed=world,
            options={**self.launch.options, **options},
            reload=self._fresh == "reload",
        )

    def _look(self, frame: Frame, seen: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        trace = frame.traces[self._agent]
        # The trace first: a script error that is raised below still has the calls before it.
        self.last_trace = CallTrace() if trace is None else CallTrace(trace)
        self.last_observation = self._seen.join(seen)
        told = frame.info[self._agent]
        self.last_step_info = numbers_of(told)
        info = {
            "call_trace": self.last_trace,
            "step_info": self.last_step_info,
            "summary": _counts(told.get("summary")),
            "game_info": told,
        }
        errors = self._new_errors(frame)
        if errors and self._script_errors == "raise":
            assert self._client is not None
            raise GameScriptError(errors[0], self._client.output)
        if errors:
            info["script_errors"] = errors
        return info

    def _new_errors(self, frame: Frame) -> tuple[str, ...]:
        assert self._client is not None
        count = self._client.script_error_count
        new, self._errors_seen = count - self._errors_seen, count
        if frame.script_errors:
            return frame.script_errors
        # Engines before 4.5 tell of them only by what they print, as games without the bridge do.
        return tuple(self._client.script_error_lines(new)) if new else ()

    def _shown(self) -> NDArray[Any]:
        assert self.last_observation is not None
        return self.last_observation.copy()

    def _broken(self, fault: GameFault) -> GameFault:
        """Give the game up, so that the next play starts a new one."""
        self.last_trace = CallTrace()
        if isinstance(fault, GameProtocolError) and self._client is not None:
            # What a script that broke returns is nothing; the script is what is at fault.
            new = self._client.script_error_count - self._errors_seen
            if lines := self._client.script_error_lines(new):
                fault = GameScriptError(lines[0], fault.last_output)
        with contextlib.suppress(Exception):
            self.close()
        return fault


def numbers_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers in a game's info by name; those of short lists as ``name.0``, …."""
    found: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, bool | int | float):
            found[name] = value
        elif isinstance(value, list) and len(value) <= _MOST_NUMBERS:
            for place, item in enumerate(value):
                if isinstance(item, bool | int | float):
                    found[f"{name}.{place}"] = item
    return found


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): int(count) for name, count in value.items() if _is_number(count)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) < 2**53


def _text(value: object) -> str:
    """Write an option as the game reads it: words as they are, numbers and lists as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return json.dumps(value)
