"""The fast Crafter against stock Crafter with nothing but the determinism fixes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import crafter
import numpy as np
import pytest
from crafter import objects
from hypothesis import given, settings
from hypothesis import strategies as st

from lanista.envs.crafter import Crafter
from lanista.envs.crafter.game import CRAFTER
from lanista.envs.tracing.catalogue import Scheme

PACKAGE = str(Path(crafter.__file__).parent) + os.sep


@pytest.fixture(scope="module")
def pair() -> tuple[Crafter, Crafter]:
    return Crafter(), Crafter(fast=False)


def calls_of(work: Callable[[], object]) -> list[str]:
    """Oracle: the game-logic functions that ``work`` calls, by the interpreter's own events."""
    called: list[str] = []

    def on_start(code: CodeType, offset: int) -> object:
        file, name = code.co_filename, code.co_qualname
        module = file.removeprefix(PACKAGE)
        if module in ("env.py", "objects.py") or (
            module == "engine.py" and name.startswith("World")
        ):
            called.append(f"{module}:{name}")
            return None
        return sys.monitoring.DISABLE

    tool, start = 4, sys.monitoring.events.PY_START
    sys.monitoring.use_tool_id(tool, "oracle")
    try:
        sys.monitoring.register_callback(tool, start, on_start)
        sys.monitoring.set_events(tool, start)
        sys.monitoring.restart_events()
        work()
    finally:
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)
    return called


@pytest.mark.parametrize("world", [0, 11])
def test_a_play_is_the_same_call_by_call(world: int, pair: tuple[Crafter, Crafter]) -> None:
    fast, stock = pair
    results: dict[str, object] = {}

    def both(name: str, action: int | None) -> None:
        calls = []
        for which, env in (("fast", fast), ("stock", stock)):

            def work(which: str = which, env: Crafter = env) -> None:
                if action is None:
                    results[which] = env.reset(options={"world": world})
                else:
                    results[which] = env.step(action)

            calls.append(calls_of(work))
        assert calls[0], name
        assert calls[0] == calls[1], name
        first, second = results["fast"], results["stock"]
        assert np.array_equal(first[0], second[0]), name
        assert first[1:] == second[1:], name

    both("reset", None)
    for env in pair:
        env.game._player.inventory["energy"] = 2
    chance = np.random.default_rng(world)
    for step in range(240):
        both(f"step {step}", 6 if step > 170 else int(chance.integers(17)))
        for env in pair:
            env.game._player.inventory["health"] = 9
    assert fast.game._world.daylight < 0.5, "the play did not last into the night"
    assert fast.game._player.achievements["wake_up"] or fast.game._player.sleeping


@pytest.mark.parametrize("scheme", ["definition", "class"])
def test_the_recorded_traces_are_the_same(scheme: Scheme) -> None:
    fast, stock = CRAFTER.make(scheme, None), CRAFTER.make(scheme, None, fast=False)
    try:
        one, two = fast.reset(options={"world": 8}), stock.reset(options={"world": 8})
        assert one[1] == two[1]
        chance = np.random.default_rng(8)
        for _ in range(180):
            action = int(chance.integers(17))
            one, two = fast.step(action), stock.step(action)
            assert one[1:] == two[1:]
            assert len(one[4]["call_trace"]) > 63
            for env in (fast, stock):
                env.game._player.inventory["health"] = 9
    finally:
        fast.close()
        stock.close()


@pytest.mark.parametrize("world", range(20, 50))
def test_worlds_are_drawn_alike(world: int, pair: tuple[Crafter, Crafter]) -> None:
    games = [env.game for env in pair]
    for env in pair:
        env.reset(options={"world": world})
    fast, stock = (game._world for game in games)
    assert np.array_equal(fast._mat_map, stock._mat_map)
    assert np.array_equal(fast._obj_map, stock._obj_map)
    assert [type(item) for item in fast._objects] == [type(item) for item in stock._objects]
    assert fast.random.get_state()[2:] == stock.random.get_state()[2:]
    assert np.array_equal(fast.random.get_state()[1], stock.random.get_state()[1])


def test_the_world_is_that_of_an_untouched_crafter() -> None:
    untouched = crafter.Env(seed=12)
    picture = untouched.reset()
    env = Crafter()
    observation, _ = env.reset(options={"world": 12})
    assert np.array_equal(observation, picture)
    assert np.array_equal(env.game._world._mat_map, untouched._world._mat_map)
    assert np.array_equal(env.semantic(), untouched._sem_view())


KINDS = ("cow", "zombie", "skeleton", "arrow", "plant", "ripe", "fence")


def put(game: "crafter.Env", kind: str, x: int, y: int, facing: tuple[int, int]) -> None:
    world, player = game._world, game._player
    if world._obj_map[x, y]:
        return
    match kind:
        case "cow":
            item = objects.Cow(world, (x, y))
        case "zombie":
            item = objects.Zombie(world, (x, y), player)
        case "skeleton":
            item = objects.Skeleton(world, (x, y), player)
        case "arrow":
            item = objects.Arrow(world, (x, y), facing)
        case "plant" | "ripe":
            item = objects.Plant(world, (x, y))
            item.grown = 0 if kind == "plant" else 301
        case _:
            item = objects.Fence(world, (x, y))
    world.add(item)


FACINGS = st.sampled_from([(-1, 0), (1, 0), (0, -1), (0, 1)])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    place=st.tuples(st.integers(0, 63), st.integers(0, 63)),
    facing=FACINGS,
    things=st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(-5, 5), st.integers(-4, 4), FACINGS),
        max_size=12,
    ),
    daylight=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.499, 0.5, 1.0])),
    sleeping=st.booleans(),
    amounts=st.lists(st.integers(0, 12), min_size=16, max_size=16),
    size=st.sampled_from([(64, 64), (18, 26), (90, 64), (150, 201)]),
    step=st.integers(0, 10_000),
)
def test_any_picture_is_drawn_alike(
    pair: tuple[Crafter, Crafter],
    seed: int,
    place: tuple[int, int],
    facing: tuple[int, int],
    things: list[tuple[str, int, int, tuple[int, int]]],
    daylight: float,
    sleeping: bool,
    amounts: list[int],
    size: tuple[int, int],
    step: int,
) -> None:
    materials = np.random.default_rng(seed).integers(0, 13, (64, 64), np.uint8)
    pictures = []
    for env in pair:
        game = env.game
        if game._step is None:
            env.reset(options={"world": 1})
        world, player = game._world, game._player
        for item in world.objects:
            if item is not player:
                world.remove(item)
                item.removed = True
        if tuple(player.pos) != place:
            world.move(player, place)
        world._mat_map[:] = materials
        for kind, x, y, direction in things:
            x, y = place[0] + x, place[1] + y
            if 0 <= x < 64 and 0 <= y < 64:
                put(game, kind, x, y, direction)
        player.facing, player.sleeping = facing, sleeping
        player.inventory.update(zip(player.inventory, amounts, strict=True))
        world.daylight, game._step = np.float64(daylight), step
        pictures.append(env.render(size))
    assert np.array_equal(pictures[0], pictures[1])
