"""Crafter as a Gymnasium environment: repeatable, fast, with save and restore."""

import hashlib
from typing import Any, ClassVar

import crafter
import gymnasium
import numpy as np
from crafter import constants
from numpy.typing import NDArray

from lanista.envs.crafter.determinism import make_deterministic, reset_world
from lanista.envs.crafter.state import CrafterState, put_state, take_state
from lanista.envs.crafter.terrain import use_fast_terrain
from lanista.envs.crafter.view import use_fast_views
from lanista.envs.errors import InputError
from lanista.envs.tracing.trace import CallTrace

WORLDS = 2**31
"""Worlds are numbered from 0 to ``WORLDS - 1``."""

_SMALLEST = 18
"""Fewest pixels each way: two a cell, which leaves one for the digits of the inventory."""


class Crafter(gymnasium.Env[NDArray[np.uint8], np.int64]):  # type: ignore[misc]
    """One-player Crafter 1.8.3 with pictures of ``uint8[64, 64, 3]`` and 17 actions.

    ``reset(seed=, options={"world": int})`` chooses the world; without the option it is drawn
    from ``seed``. A play is terminated by death and truncated by its length. ``info`` holds

    * ``achievements``: how often each was reached in this play, by name;
    * ``step_info``: integers of this step: ``health``, ``food``, ``drink``, ``energy``,
      ``sleeping``, ``unlocked`` (distinct achievements so far), ``x``, ``y``;
    * ``summary``: the same counts as ``achievements``;
    * ``inventory``: what the player carries, by name;
    * ``call_trace``: empty here, filled by the tracing wrapper;
    * ``world`` and ``world_fingerprint`` (reset only): the world's number and a hash of its map,
      objects and player as they were drawn.

    Attributes:
        game: The stock ``crafter.Env``, for testers, who may read its underscored state.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        length: int = 10_000,
        size: tuple[int, int] = (64, 64),
        render_size: tuple[int, int] | None = None,
        fast: bool = True,
    ) -> None:
        """Make the game; no world is drawn before :meth:`reset`.

        Args:
            render_mode: ``rgb_array``, or ``None`` to do without :meth:`render`.
            length: Steps after which a play is truncated; Crafter's own are 10 000.
            size: Width and height of an observation in pixels, at least 18 each.
            render_size: The same for :meth:`render`; ``None`` for that of the observation.
            fast: ``False`` for stock drawing and world generation with nothing but the
                determinism fixes; same results, much slower.

        Raises:
            InputError: If a length or size is out of range or the render mode unknown.
        """
        problems = []
        if length < 1:
            problems.append(f"A play of Crafter has at least 1 step, not length={length}.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            problems.append(f"Crafter has no render mode {render_mode!r}, only rgb_array.")
        for name, value in (("size", size), ("render_size", render_size or size)):
            if len(value) != 2 or min(value) < _SMALLEST:
                problems.append(
                    f"Crafter's {name} is two numbers from {_SMALLEST} on, not {value!r}."
                )
        if problems:
            raise InputError(*problems)
        self.render_mode = render_mode
        self._render_size = render_size or size
        self.observation_space = gymnasium.spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(constants.actions))
        self.game = crafter.Env(size=size, length=length, seed=0)
        make_deterministic(self.game)
        if fast:
            use_fast_views(self.game)
            use_fast_terrain(self.game)
        self._ended = True

    @property
    def world(self) -> int:
        """Number of the world played."""
        return int(self.game._seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a play.

        Args:
            seed: Decides the world where ``options`` do not.
            options: ``{"world": int}``, from 0 to 2**31 - 1.

        Raises:
            InputError: If the world is not such a number.
        """
        super().reset(seed=seed)
        world = (options or {}).get("world")
        if world is None:
            world = int(self.np_random.integers(WORLDS))
        elif (
            isinstance(world, bool)
            or not isinstance(world, (int, np.integer))
            or not 0 <= world < WORLDS
        ):
            raise InputError(f"A Crafter world is a number from 0 to 2**31 - 1, not {world!r}.")
        observation = reset_world(self.game, int(world))
        self._ended = False
        info = self._info()
        info["world"] = int(world)
        info["world_fingerprint"] = self._fingerprint()
        return observation, info

    def step(
        self, action: np.int64 | int
    ) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Play one action; ``terminated`` means death, ``truncated`` the end of the length.

        Raises:
            InputError: Before the first reset, after the end, or for an unknown action.
        """
        if self._ended:
            raise InputError("This play of Crafter is over or has not begun: call reset first.")
        if not 0 <= action < len(constants.actions):
            raise InputError(f"Crafter has actions 0 to 16, not {action!r}.")
        observation, reward, done, details = self.game.step(int(action))
        terminated = details["discount"] == 0
        self._ended = bool(done)
        return observation, float(reward), terminated, self._ended and not terminated, self._info()

    def render(self, size: tuple[int, int] | None = None) -> NDArray[np.uint8] | None:
        """Draw the play as it stands, ``uint8[height, width, 3]``, without changing the game.

        Args:
            size: Width and height in pixels; ``None`` for the environment's ``render_size``.

        Raises:
            InputError: Before the first reset.
        """
        if self.render_mode is None and size is None:
            return None
        if self.game._step is None:
            raise InputError("Crafter has nothing to draw before the first reset.")
        observation_size, self.game._size = self.game._size, np.array(size or self._render_size)
        try:
            picture: NDArray[np.uint8] = self.game.render()
        finally:
            self.game._size = observation_size
        return picture

    def semantic(self) -> NDArray[np.uint8]:
        """Return the map with material and object ids as stock Crafter's ``info["semantic"]``."""
        view = crafter.engine.SemanticView(
            self.game._world,
            [
                getattr(crafter.objects, kind)
                for kind in ("Player", "Cow", "Zombie", "Skeleton", "Arrow", "Plant")
            ],
        )
        semantic: NDArray[np.uint8] = view()
        return semantic

    def save(self) -> CrafterState:
        """Copy the whole state of the play.

        Raises:
            InputError: Before the first reset.
        """
        if self.game._step is None:
            raise InputError("Crafter has no state to save before the first reset.")
        return take_state(self.game, self._ended)

    def restore(self, state: CrafterState) -> NDArray[np.uint8]:
        """Go on from a saved state, also one of another game; returns its observation."""
        put_state(self.game, state)
        self._ended = state.ended
        observation: NDArray[np.uint8] = self.game._obs()
        return observation

    def _info(self) -> dict[str, Any]:
        player = self.game._player
        inventory, achievements = player.inventory, player.achievements
        x, y = player.pos.tolist()
        return {
            "call_trace": CallTrace(),
            "achievements": achievements.copy(),
            "summary": achievements.copy(),
            "inventory": inventory.copy(),
            "step_info": {
                "health": inventory["health"],
                "food": inventory["food"],
                "drink": inventory["drink"],
                "energy": inventory["energy"],
                "sleeping": int(player.sleeping),
                "unlocked": sum(count > 0 for count in achievements.values()),
                "x": x,
                "y": y,
            },
        }

    def _fingerprint(self) -> str:
        world = self.game._world
        drawn = hashlib.sha256(world._mat_map.tobytes())
        for item in world._objects[1:]:
            drawn.update(f"{type(item).__name__}{item.pos.tolist()}".encode())
        return drawn.hexdigest()[:24]
