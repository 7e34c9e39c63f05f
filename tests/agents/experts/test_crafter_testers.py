import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafter import objects

from lanista.agents.experts import make_tester
from lanista.agents.experts.crafter import farming, shelter
from lanista.agents.experts.crafter.expert import pursue
from lanista.agents.experts.crafter.subgoals import SUBGOALS
from lanista.agents.experts.crafter.turn import Memory, Turn
from lanista.agents.experts.crafter.worldmap import Situation, crafter_game
from lanista.envs.errors import InputError
from lanista.envs.game import load_game

MakeGame = Callable[[int], Any]
ALL = {"expert": {}, "noisy": {"epsilon": 0.3}, "subgoal": {}, "shuffled": {}, "random": {}}


def play(
    game: Any, name: str, steps: int, parameters: dict[str, Any] | None = None, seed: int = 0
) -> list[int]:
    rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    tester = make_tester("crafter", name, parameters or {}, rng)
    actions: list[int] = []
    for _ in range(steps):
        actions.append(tester.act(game, rng))
        if game.step(actions[-1])[2]:
            break
    return actions


def unlocked(game: Any) -> set[str]:
    return {name for name, count in game._player.achievements.items() if count}


def state_hash(game: Any) -> str:
    world = game._world
    digest = hashlib.sha256(world._mat_map.tobytes())
    for thing in world.objects:
        digest.update(f"{type(thing).__name__} {thing.pos.tolist()} {thing.health}".encode())
    digest.update(repr(sorted(game._player.inventory.items())).encode())
    return digest.hexdigest()


def test_subgoals_are_the_games_achievements(make_game: MakeGame) -> None:
    assert sorted(SUBGOALS) == sorted(make_game(0)._player.achievements)


@pytest.mark.parametrize("world", [10_000, 10_001])
def test_the_expert_gets_on_quickly(make_game: MakeGame, world: int) -> None:
    game = make_game(world)
    play(game, "expert", 250)
    assert len(unlocked(game)) >= 8


def test_noise_costs_achievements_and_random_play_has_fewest(make_game: MakeGame) -> None:
    reached = {}
    for name, parameters in (("expert", {}), ("noisy", {"epsilon": 0.6}), ("random", {})):
        reached[name] = 0
        for world in (1, 2, 3):
            game = make_game(world)
            play(game, name, 200, parameters)
            reached[name] += len(unlocked(game))
    assert reached["expert"] > reached["noisy"] > reached["random"]


def test_a_subgoal_tester_goes_for_what_it_was_given_and_its_prerequisites(
    make_game: MakeGame,
) -> None:
    game = make_game(4)
    play(game, "subgoal", 150, {"subgoals": ["make_wood_sword"]})
    assert {"collect_wood", "place_table", "make_wood_sword"} <= unlocked(game)
    assert not unlocked(game) & {"place_plant", "make_wood_pickaxe", "collect_stone"}


def test_shuffled_testers_differ_in_what_they_do_first(make_game: MakeGame) -> None:
    plays = {tuple(play(make_game(5), "shuffled", 60, seed=seed)) for seed in range(4)}
    assert len(plays) >= 3


def play_all(make: MakeGame) -> list[str]:
    """Play each tester in one world; return its actions and what it left, as text."""
    plays = []
    for name, parameters in ALL.items():
        game = make(7)
        plays.append(f"{name} {play(game, name, 150, parameters)} {state_hash(game)}")
    return plays


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_the_same_world_and_seed_give_the_same_play_in_any_process(
    make_game: MakeGame, hash_seed: str
) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from conftest import stock_game; from test_crafter_testers import play_all;"
        "print(*play_all(stock_game), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.stdout.splitlines() == play_all(make_game)


@pytest.mark.parametrize("world", range(3))
def test_the_expert_goes_on_from_whatever_state_random_play_leaves(
    make_game: MakeGame, world: int
) -> None:
    game = make_game(world)
    rng = np.random.default_rng(np.random.SeedSequence([world, 9]))
    testers = [make_tester("crafter", name, ALL[name], rng) for name in ALL]
    for step in range(400):
        tester = testers[(step // 20) % len(testers)]
        action = tester.act(game, rng) if rng.random() < 0.7 else int(rng.integers(17))
        assert isinstance(action, int)
        assert 0 <= action < 17
        game.step(action)  # beyond the player's death as well: a tester never breaks


def surround(game: Any, material: str) -> None:
    x, y = game._player.pos
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            if (dx, dy) != (0, 0):
                cell = (int(x + dx), int(y + dy))
                if thing := game._world[cell][1]:
                    game._world.remove(thing)
                game._world[cell] = material


@pytest.mark.parametrize("material", ["water", "lava", "stone", "diamond", "table"])
def test_a_player_that_is_walled_in_stays_alive(make_game: MakeGame, material: str) -> None:
    game = make_game(11)
    surround(game, material)
    play(game, "expert", 60)
    assert game._player.health > 0


@pytest.mark.parametrize("corner", [(0, 0), (63, 63), (0, 63), (63, 0)])
def test_the_worlds_corners_are_no_trouble(make_game: MakeGame, corner: tuple[int, int]) -> None:
    game = make_game(12)
    if thing := game._world[corner][1]:
        game._world.remove(thing)
    game._world[corner] = "grass"
    game._world.move(game._player, corner)
    assert len(play(game, "expert", 40)) == 40


@pytest.mark.parametrize("material", ["grass", "water", "path"])
def test_a_world_of_one_material_is_no_trouble(make_game: MakeGame, material: str) -> None:
    game = make_game(13)
    game._world._mat_map[:] = game._world._mat_ids[material]
    assert len(play(game, "shuffled", 80)) > 20


@pytest.mark.parametrize("subgoal", SUBGOALS)
def test_every_subgoal_answers_or_declines(make_game: MakeGame, subgoal: str) -> None:
    game = make_game(14)
    turn = Turn(Situation(game), Memory(), np.random.default_rng(0))
    action = pursue(turn, subgoal)
    assert action is None or action in game.action_names


def test_the_dead_and_the_sleeping_do_nothing(make_game: MakeGame) -> None:
    rng = np.random.default_rng(0)
    for change in ("sleep", "die"):
        game = make_game(15)
        if change == "sleep":
            game._player.sleeping = True
        else:
            game._player.health = 0
        assert make_tester("crafter", "expert", {}, rng).act(game, rng) == 0


def test_what_is_no_crafter_is_refused() -> None:
    with pytest.raises(InputError, match="not a object"):
        crafter_game(object())


def act_until(game: Any, decide: Callable[[Turn], str | None], steps: int) -> int | None:
    """Follow one part of the expert; return after how many steps it has nothing more to do."""
    memory = Memory()
    for step in range(steps):
        turn = Turn(Situation(game), memory, np.random.default_rng(step))
        action = decide(turn)
        if action is None:
            return step
        game.step(game.action_names.index(action))
    return None


def mountain(game: Any) -> None:
    """Turn the world into rock with a meadow around the player, and nothing alive."""
    for thing in game._world.objects:
        if thing is not game._player:
            game._world.remove(thing)
    game._world._mat_map[:] = game._world._mat_ids["stone"]
    game._world._mat_map[28:37, 28:37] = game._world._mat_ids["grass"]
    game._player.inventory.update(wood_pickaxe=1, stone_sword=1, stone=5, sapling=1)


def test_hiding_ends_in_a_closed_room(make_game: MakeGame) -> None:
    game = make_game(16)
    mountain(game)
    assert not shelter.is_enclosed(Situation(game))
    assert act_until(game, shelter.hide, 30) is not None
    assert shelter.is_enclosed(Situation(game))


def test_a_room_with_a_zombie_in_it_is_no_hiding_place(make_game: MakeGame) -> None:
    game = make_game(16)
    mountain(game)
    act_until(game, shelter.hide, 30)
    x, y = game._player.pos
    free = [
        (x + dx, y + dy)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        if Situation(game).is_free((int(x + dx), int(y + dy)))
    ]
    game._world.add(objects.Zombie(game._world, free[0], game._player))
    assert not shelter.is_enclosed(Situation(game))


def test_a_sapling_is_planted_fenced_and_eaten_when_ripe(make_game: MakeGame) -> None:
    game = make_game(17)
    mountain(game)
    act_until(game, lambda turn: None if turn.now.plants else farming.plant(turn), 40)
    [(cell, plant)] = Situation(game).plants.items()
    assert act_until(game, farming.fence, 80) is not None
    assert farming.open_sides(Turn(Situation(game), Memory(), np.random.default_rng(0)), cell) == []
    assert act_until(game, farming.eat, 5) == 0
    plant.grown = 301
    assert act_until(game, farming.eat, 40) is not None
    assert game._player.achievements["eat_plant"] == 1


def test_an_environment_is_played_like_the_game_inside_it() -> None:
    """A tester sees one game, whether it is handed over traced and wrapped or bare."""
    plays = []
    for bare in (True, False):
        env = load_game("crafter").make("class", None)
        env.reset(options={"world": 3})
        rng = np.random.default_rng(4)
        tester = make_tester("crafter", "noisy", {}, rng)
        actions = []
        for _ in range(60):
            actions.append(tester.act(env.unwrapped.game if bare else env, rng))
            env.step(actions[-1])
        plays.append(actions)
    assert plays[0] == plays[1]


@pytest.mark.slow
def test_the_expert_reaches_eighteen_achievements_in_unseen_worlds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = load_game("crafter").make("class", None)
    reached, lengths, seconds = [], [], 0.0
    for world in range(20_000, 20_020):
        env.reset(options={"world": world})
        rng = np.random.default_rng(np.random.SeedSequence([world, 3]))
        tester = make_tester("crafter", "expert", {}, rng)
        names, steps, terminated = set(), 0, False
        while not terminated and steps < 4000 and len(names) < len(SUBGOALS):
            begin = time.process_time()
            action = tester.act(env, rng)
            seconds += time.process_time() - begin
            _, _, terminated, _, info = env.step(action)
            names = {name for name, count in info["achievements"].items() if count}
            steps += 1
        reached.append(names)
        lengths.append(steps)
    counts = [len(names) for names in reached]
    lines = [f"{name:20} {np.mean([name in names for names in reached]):.2f}" for name in SUBGOALS]
    lines.append(f"mean {np.mean(counts):.2f}, median {np.median(counts):.0f}, least {min(counts)}")
    lines.append(
        f"{np.mean(lengths):.0f} steps a play, {1000 * seconds / sum(lengths):.2f} ms a step"
    )
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert np.mean(counts) >= 18
    assert {name for names in reached for name in names} == set(SUBGOALS)
