"""The testers that come with Lanista; light, since the testers themselves load when made."""

from lanista.agents.experts.crafter.subgoals import SUBGOALS
from lanista.agents.experts.parameters import Count, Fraction, Names
from lanista.agents.experts.registry import ANY_GAME, Kind

_CRAFTER = "lanista.agents.experts.crafter.testers"
_ROBOT = "lanista.agents.experts.robot.testers"

KINDS = (
    Kind(
        game=ANY_GAME,
        name="random",
        summary="Draws each action uniformly; repeats the last one with probability repeat.",
        factory="lanista.agents.experts.random_play:make_random",
        parameters={"repeat": Fraction(0.0, high=0.99)},
    ),
    Kind(
        game="crafter",
        name="expert",
        summary="Goes for every achievement in the order that takes the fewest steps.",
        factory=f"{_CRAFTER}:make_expert",
    ),
    Kind(
        game="crafter",
        name="noisy",
        summary="The expert, with a share epsilon of its actions drawn at random.",
        factory=f"{_CRAFTER}:make_noisy",
        parameters={"epsilon": Fraction(0.1)},
    ),
    Kind(
        game="crafter",
        name="subgoal",
        summary="Goes for a few subgoals only, given or drawn, and wanders once they are reached.",
        factory=f"{_CRAFTER}:make_subgoal",
        parameters={
            "subgoals": Names(SUBGOALS),
            "count": Count(None, 1, len(SUBGOALS)),
            "epsilon": Fraction(0.0),
        },
    ),
    Kind(
        game="crafter",
        name="shuffled",
        summary="Goes for every achievement in an order drawn anew for each play.",
        factory=f"{_CRAFTER}:make_shuffled",
        parameters={"epsilon": Fraction(0.0)},
    ),
    Kind(
        game="robot",
        name="expert",
        summary="Passes one level after the other.",
        factory=f"{_ROBOT}:make_expert",
    ),
    Kind(
        game="robot",
        name="noisy",
        summary="The expert with an unsteady hand (spread), at times at random (epsilon).",
        factory=f"{_ROBOT}:make_noisy",
        parameters={"epsilon": Fraction(0.1), "spread": Fraction(0.1)},
    ),
    Kind(
        game="robot",
        name="slow",
        summary="The expert at a share of the robot's top speed (pace).",
        factory=f"{_ROBOT}:make_slow",
        parameters={
            "pace": Fraction(0.5, low=0.1),
            "epsilon": Fraction(0.0),
            "spread": Fraction(0.0),
        },
    ),
    Kind(
        game="robot",
        name="wanderer",
        summary="Goes to drawn places, count of them, then plays as the expert.",
        factory=f"{_ROBOT}:make_wanderer",
        parameters={
            "count": Count(None, 1, 1000),
            "epsilon": Fraction(0.0),
            "spread": Fraction(0.0),
        },
    ),
    Kind(
        game="robot",
        name="hasty",
        summary="Runs straight at the goal, past coins, into whatever is in the way.",
        factory=f"{_ROBOT}:make_hasty",
        parameters={"epsilon": Fraction(0.0), "spread": Fraction(0.0)},
    ),
    Kind(
        game="robot",
        name="idle",
        summary="Stands about until time is out, moving in a share of its steps.",
        factory=f"{_ROBOT}:make_idle",
        parameters={"share": Fraction(0.1)},
    ),
)
