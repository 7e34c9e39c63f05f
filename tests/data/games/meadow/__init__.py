"""A meadow: a point that is pushed about, pads to step on, two levels. Actions are two numbers.

The rules are instrumented as any Python game is; nothing is recorded by hand.
"""

from lanista.agents.experts.parameters import Fraction
from lanista.agents.experts.registry import Kind, register
from lanista.envs.gymnasium_game import gymnasium_game
from lanista.envs.tracing.scope import Scope
from meadow.rules import CAP, MeadowEnv

GAME = gymnasium_game(
    "meadow:GAME",
    MeadowEnv,
    Scope(("meadow.rules",), exclude=("meadow.rules:MeadowEnv.*",)),
    title="A meadow",
    step_cap=CAP,
)
register(
    Kind(
        game="meadow:GAME",
        name="walker",
        summary="Walks to one pad after the other, in an order of its own.",
        factory="meadow.walker:make_walker",
        parameters={"noise": Fraction(0.1)},
        modules=("meadow.walker",),
    )
)
