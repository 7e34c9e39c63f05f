"""Making a Lanista game of any Gymnasium environment and the Python package that it comes from."""

import functools
import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from lanista.envs.errors import InputError
from lanista.envs.game import Game
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.envs.tracing.environment import TracedEnv
from lanista.envs.tracing.modules import find_modules
from lanista.envs.tracing.scope import Scope
from lanista.envs.tracing.tracer import Tracer, build_catalogue

MakeEnv = Callable[[], "gymnasium.Env[Any, Any]"]


def gymnasium_game(
    game_id: str,
    env: str | MakeEnv,
    scope: Scope,
    *,
    title: str = "",
    actions: Sequence[str] | None = None,
    step_cap: int = 1000,
) -> Game:
    """Make a game of a Gymnasium environment, with its function calls recorded.

    Put the result into a module of your own, and ``module:attribute`` names it to every command::

        MAZE = gymnasium_game("maze:MAZE", Maze, Scope(("maze",)))

    A world becomes the seed of ``reset``. If the environment has ``save()`` and
    ``restore(state)``, the game says so.

    Args:
        game_id: What a person types.
        env: A registered Gymnasium id, or what makes an environment when called.
        scope: Which functions are recorded; its packages count as the engine.
        title: One line about the game.
        actions: Names of the discrete actions; their numbers by default.
        step_cap: Steps after which a play is cut.

    Raises:
        InputError: If there is no such environment, it does not start, its observations are no
            arrays, or its actions are neither Discrete nor a Box; names that do not fit the
            actions.
    """
    make_env = functools.partial(_make_registered, env) if isinstance(env, str) else env
    try:
        probe = make_env()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"Game {game_id!r} does not start: {error}") from error
    try:
        shape, dtype = probe.observation_space.shape, probe.observation_space.dtype
        space = probe.action_space
        count = int(space.n) if isinstance(space, gymnasium.spaces.Discrete) else 0
        box = space if _is_numbers(space) else None
        save_restore = _has_save_restore(probe)
    finally:
        probe.close()
    if shape is None or dtype is None:
        raise InputError(f"Game {game_id!r}: its observations are no arrays; flatten them first.")
    if not count and box is None:
        raise InputError(
            f"Game {game_id!r} takes actions of {space}; players choose out of a Discrete space or "
            "give the floating-point numbers of a Box."
        )
    if count and int(space.start):
        raise InputError(
            f"Game {game_id!r} counts its actions from {space.start}; wrap it so that they count "
            "from 0."
        )
    if actions is not None and len(actions) != count:
        raise InputError(
            f"Game {game_id!r} has {count} discrete actions and {len(actions)} names for them."
        )

    def make(scheme: Scheme = "class", patterns: Sequence[str] | None = None) -> TracedEnv:
        chosen = scope if patterns is None else _limited(scope, tuple(patterns))
        return TracedEnv(WorldEnv(make_env()), Tracer(chosen, scheme))

    def catalogue(scheme: Scheme = "class") -> Catalogue:
        return build_catalogue(scope, scheme)

    return Game(
        id=game_id,
        title=title or game_id,
        seats=("player",),
        actions=tuple(actions) if actions is not None else tuple(map(str, range(count))),
        observation_shape=tuple(shape),
        observation_dtype=str(np.dtype(dtype)),
        step_cap=step_cap,
        make=make,
        catalogue=catalogue,
        engine=lambda: engine_of(scope),
        save_restore=save_restore,
        action_shape=() if box is None else tuple(box.shape),
        action_low=() if box is None else tuple(box.low.ravel().tolist()),
        action_high=() if box is None else tuple(box.high.ravel().tolist()),
    )


def engine_of(scope: Scope) -> dict[str, str]:
    """Return name, version and source hash of the packages that a scope names.

    The hash covers the source (or bytecode) of every module of them, recorded or not. The version
    is that of the first package's distribution, ``0`` where it belongs to none.
    """
    digest = hashlib.sha256()
    for root in scope.roots:
        for name, module in sorted(find_modules(root).items()):
            if module.source is not None:
                text = module.source.encode()
            else:
                text = b"" if module.code is None else module.code.co_code
            digest.update(f"{name}\0{hashlib.sha256(text).hexdigest()}\n".encode())
    root = scope.roots[0]
    distributions = importlib.metadata.packages_distributions().get(root, [])
    version = importlib.metadata.version(distributions[0]) if distributions else "0"
    return {"name": root, "version": version, "sha256": digest.hexdigest()}


class WorldEnv(gymnasium.Wrapper[Any, Any, Any, Any]):  # type: ignore[misc]
    """Gives a plain Gymnasium environment what a Lanista game needs around its plays.

    ``reset(options={"world": w})`` seeds the play with ``w`` and tells the world's fingerprint, a
    hash of the world number and the first observation. ``step_info`` holds the numbers that the
    environment's own ``info`` has by name; ``summary`` is empty unless it gives one.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a play in world ``options["world"]``, else with ``seed``."""
        options = dict(options or {})
        world = options.pop("world", None)
        seed = seed if world is None else int(world)
        observation, info = self.env.reset(seed=seed, options=options or None)
        digest = hashlib.sha256(f"{seed}\0".encode())
        digest.update(np.ascontiguousarray(observation).tobytes())
        return observation, {**self._told(info), "world_fingerprint": digest.hexdigest()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, self._told(info)

    @staticmethod
    def _told(info: dict[str, Any]) -> dict[str, Any]:
        numbers = {
            name: value
            for name, value in info.items()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        }
        return {"step_info": numbers, "summary": {}, **info}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.env.get_wrapper_attr(name)


def _make_registered(env_id: str) -> "gymnasium.Env[Any, Any]":
    try:
        return gymnasium.make(env_id, disable_env_checker=True)
    except gymnasium.error.Error as error:
        raise InputError(f"No Gymnasium environment {env_id!r} can be made: {error}") from error


def _limited(scope: Scope, patterns: tuple[str, ...]) -> Scope:
    return Scope(scope.include, scope.exclude, patterns)


def _is_numbers(space: Any) -> bool:
    box = isinstance(space, gymnasium.spaces.Box) and bool(space.shape)
    return box and bool(np.issubdtype(space.dtype, np.floating))


def _has_save_restore(env: Any) -> bool:
    return all(callable(getattr(env.unwrapped, name, None)) for name in ("save", "restore"))
