"""Crafter's achievements as subgoals, in the order in which the expert goes for them."""

SUBGOALS: tuple[str, ...] = (
    "collect_sapling",
    "place_plant",
    "collect_wood",
    "place_table",
    "make_wood_pickaxe",
    "make_wood_sword",
    "collect_drink",
    "eat_cow",
    "collect_stone",
    "place_stone",
    "make_stone_pickaxe",
    "make_stone_sword",
    "eat_plant",
    "wake_up",
    "collect_coal",
    "place_furnace",
    "defeat_zombie",
    "collect_iron",
    "make_iron_pickaxe",
    "make_iron_sword",
    "collect_diamond",
    "defeat_skeleton",
)
"""All 22, roughly the easiest first.

Prerequisites that an order leaves out are met where something needs them. A plant takes long to
ripen, so it is fenced early, and eaten whenever it is ripe.
"""
