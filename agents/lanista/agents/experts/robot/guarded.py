"""Level 8: rows of coins that enemies guard, and when it is safe to go into one."""

import math

from lanista.agents.experts.robot.situation import Enemy, Situation
from lanista.agents.experts.robot.steering import ACCELERATION, FRICTION, STEP_S, Target

ENEMY_SPEED = 5.0
ENEMY_REACH = 8.1
"""How far an enemy goes to each side before it turns."""
TOUCH = 2.4
"""An enemy is met where both distances, along x and z, are below this."""
SECONDS_TO_TAKE = 1.5
_MARGIN = 0.35
_SIDEWAYS_SPEED = 4.0  # metres per second from one coin of a row to the next, stops counted
_WAIT = 2.8  # how far from a row's middle the robot waits
_DIP = 1.9  # and how far from it takes a coin


def enemy_x(enemy: Enemy, seconds: float) -> float:
    """Return where an enemy will be after some seconds."""
    path = enemy.x if enemy.direction > 0 else 2 * ENEMY_REACH - enemy.x
    path = (path + ENEMY_REACH + ENEMY_SPEED * seconds) % (4 * ENEMY_REACH) - ENEMY_REACH
    return path if path <= ENEMY_REACH else 2 * ENEMY_REACH - path


def is_clear(enemy: Enemy, x: float, seconds: float, after: float = 0.0) -> bool:
    """Say whether an enemy stays away from a place in its row for some seconds, from later on."""
    times = [after + seconds * part / 8 for part in range(9)]
    return all(abs(enemy_x(enemy, time) - x) > TOUCH + _MARGIN for time in times)


def guarded_rows(now: Situation, left: list[tuple[float, float]]) -> Target:
    """Return where to go in level 8: row by row, waiting before each until it is safe."""
    for enemy in sorted(now.enemies, key=lambda other: -other.z):
        here = [place for place in left if abs(place[1] - enemy.z) < 1.0]
        if now.z < enemy.z - TOUCH and not here:
            continue  # this row is behind
        return _at_row(now, enemy, here)
    return Target(now.goal_x, now.goal_z)


def _seconds_to_cross(now: Situation, enemy: Enemy) -> float:
    """Say how long the robot takes to the row's far side, speeding up all the way."""
    gain = ACCELERATION - FRICTION
    speed = max(0.0, -now.velocity_z)
    distance = max(0.0, now.z - (enemy.z - TOUCH))
    return (math.sqrt(speed * speed + 2 * gain * distance) - speed) / gain + STEP_S


def _next_coin(now: Situation, enemy: Enemy, places: list[float]) -> float:
    """Choose the nearest coin of a row that will be safe to take once the robot is before it."""
    places = sorted(places, key=lambda x: abs(x - now.x))
    if abs(now.z - enemy.z) < TOUCH + 0.1:
        return places[0]  # no change of mind inside the row
    for x in places:
        arrival = abs(x - now.x) / _SIDEWAYS_SPEED
        if is_clear(enemy, x, SECONDS_TO_TAKE, after=arrival):
            return x
    return places[0]


def _at_row(now: Situation, enemy: Enemy, here: list[tuple[float, float]]) -> Target:
    """Take the coins of a row from its near side, or from its far side after a slip; then cross."""
    behind = now.z < enemy.z
    wait_z = enemy.z + (-_WAIT if behind else _WAIT)
    inside = abs(now.z - enemy.z) < TOUCH
    if here:
        x = _next_coin(now, enemy, [place[0] for place in here])
        if abs(now.x - x) < 0.9 and is_clear(enemy, x, SECONDS_TO_TAKE / (2 if inside else 1)):
            return Target(x, enemy.z + (-_DIP if behind else _DIP), stop=True)
        return Target(now.x if inside else x, wait_z, stop=True)
    cross_x = 0.0 if enemy.z > -15.0 else now.goal_x
    far_z = enemy.z - _WAIT - 1.0
    if abs(now.x - cross_x) < 0.9:
        committed = abs(now.z - enemy.z) < 1.0  # as far back as it is on
        if committed or is_clear(enemy, cross_x, _seconds_to_cross(now, enemy)):
            return Target(cross_x, far_z)
    return Target(now.x if inside else cross_x, wait_z, stop=True)
