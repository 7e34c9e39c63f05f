"""The multi-level robot: our own Godot project as the game ``robot``."""

from pathlib import Path

from lanista.envs.game import Game
from lanista.envs.godot.game import Facts, godot_game

PROJECT = Path(__file__).with_name("multilevel_robot")
"""The project's folder, part of the package."""

OBSERVATION_SIZE = 65
ACTION_REPEAT = 8
TICKS_PER_SECOND = 30
TIME_LIMIT_TICKS = 3500
LEVELS = 8

NO_GAMEPLAY = (
    "scripts.display",
    "scripts.main",
    "scripts.levels:*.build",
    "scripts.levels:*.add_*",
    "scripts.levels:*._*",
)
"""What is not recorded: what a person sees of it, and the building of the ground at the start."""

STEP_CAP = 440
"""One more than the game's own limit of time in steps: the game ends its episodes itself."""


def _facts() -> Facts:
    return Facts(
        observation_shape=(OBSERVATION_SIZE,),
        observation_dtype="float32",
        actions=(),
        action_shape=(2,),
    )


ROBOT: Game = godot_game(
    PROJECT,
    game_id="robot",
    title="Drive a robot through eight levels (Godot)",
    step_cap=STEP_CAP,
    exclude=NO_GAMEPLAY,
    facts=_facts,
    action_repeat=ACTION_REPEAT,
    # Its own reset leaves nothing of the episode before.
    fresh="reset",
)
