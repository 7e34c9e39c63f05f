"""The way through each level: from where the robot is to the target that comes next.

Each route looks at the situation alone and remembers nothing, so that it goes on from wherever
noise has put the robot.
"""

import math
from collections.abc import Callable

from lanista.agents.experts.robot.guarded import guarded_rows
from lanista.agents.experts.robot.situation import Situation
from lanista.agents.experts.robot.steering import Target

COINS: dict[int, tuple[tuple[float, float], ...]] = {
    5: ((0.0, -23.5),),
    6: tuple((x, z) for z in (-11.0, -17.0, -23.0) for x in (-6.0, 0.0, 6.0)),
    7: ((-3.0, -17.0), (3.0, -17.0)),
    8: tuple((x, z) for z in (-9.0, -20.0) for x in (-5.0, 0.0, 5.0)),
}
"""Where the coins of each level are: x and z, as the level lists them."""

LENGTHS = {1: 20.0, 2: 20.0, 3: 32.0, 4: 36.0, 5: 37.0, 6: 34.0, 7: 34.0, 8: 28.0}
"""How long each level is."""

_GAP_X = 4.0  # middle of the gaps between the cubes of level 2
_OUTER_X = 8.0  # middle of the outer columns of level 4
_LANE_X = (-7.7, 7.9)  # middle of the lanes beside the walls of level 7


def next_target(now: Situation) -> Target:
    """Return where the robot should go now to pass its level."""
    return _ROUTES[now.level](now)


def coins_left(now: Situation) -> list[tuple[float, float]]:
    """Return the places of the coins that are still to be taken."""
    places = COINS.get(now.level, ())
    return [place for place, left in zip(places, now.coins, strict=True) if left]


def nearest(now: Situation, places: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the place that is nearest to the robot."""
    return min(places, key=lambda place: math.hypot(place[0] - now.x, place[1] - now.z))


def _goal(now: Situation) -> Target:
    return Target(now.goal_x, now.goal_z)


def _side(x: float, otherwise: float) -> float:
    return math.copysign(1.0, x if abs(x) > 0.5 else otherwise)


def _between_cubes(now: Situation) -> Target:
    if now.z < -13.3:
        return _goal(now)
    side = _side(now.x, now.goal_x) if abs(now.x) > 1.0 or now.z < -6.0 else _side(now.goal_x, 1.0)
    gap = side * _GAP_X
    if abs(now.x - gap) > 0.7:
        # Never through a cube: sideways in front of them, or straight on once between them.
        return Target(gap, max(now.z, -5.8), stop=True)
    return Target(gap, -15.0)


def _over_tiles(now: Situation) -> Target:
    if now.z < -32.0:
        return _goal(now)
    side = _side(now.x, now.goal_x) if now.z < -7.0 else _side(now.goal_x, now.x or 1.0)
    column = side * _OUTER_X
    if abs(now.x - column) < 1.2:
        return Target(column, -34.0)
    if now.z > -7.0:
        return Target(column, -5.0, stop=True)
    # Off its column behind a row of gaps: the next row without gaps leads back to it.
    row = -14.0 if now.z > -17.0 else -22.0 if now.z > -25.0 else now.z
    if abs(now.z - row) > 1.2:
        return Target(now.x, row, stop=True)
    return Target(column, row, stop=True)


def _over_the_gap(now: Situation) -> Target:
    if now.z < -26.8:
        return _goal(now)
    running = now.z < -4.5 and abs(now.x) < 2.0
    if running or (abs(now.x) < 0.5 and abs(now.velocity_x) < 1.0):
        # A point ahead at the ramp's middle, near enough to correct the way to it.
        return Target(0.0, now.z - 6.0)
    if now.z < -4.5:
        return Target(now.x, -2.4, stop=True)
    return Target(0.0, -2.4, stop=True)


def _over_open_floor(now: Situation) -> Target:
    left = coins_left(now)
    return Target(*nearest(now, left)) if left else _goal(now)


def _round_walls(now: Situation) -> Target:
    left = coins_left(now)
    lane = _LANE_X[int(now.x > 0.0)]
    in_lane = abs(now.x - lane) < 0.9
    inside = -18.2 < now.z < -15.8
    if not left:
        if now.z < -22.6:
            return _goal(now)
        if inside and not in_lane:
            away = _LANE_X[int(_side(now.x, now.goal_x) > 0.0)]
            return Target(away, -17.0, stop=True)
        return Target(lane, -24.0) if in_lane else Target(lane, now.z, stop=True)
    if inside:
        return Target(*nearest(now, left), stop=True)
    if in_lane:
        return Target(lane, -17.0, stop=True)
    return Target(lane, -10.0 if now.z > -17.0 else -23.5, stop=True)


def _past_enemies(now: Situation) -> Target:
    return guarded_rows(now, coins_left(now))


_ROUTES: dict[int, Callable[[Situation], Target]] = {
    1: _goal,
    2: _between_cubes,
    3: _goal,
    4: _over_tiles,
    5: _over_the_gap,
    6: _over_open_floor,
    7: _round_walls,
    8: _past_enemies,
}
