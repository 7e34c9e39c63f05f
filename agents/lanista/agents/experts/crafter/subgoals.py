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
    "wake_up",
    "collect_coal",
    "place_furnace",
    "defeat_zombie",
    "collect_iron",
    "make_iron_pickaxe",
    "make_iron_sword",
    "collect_diamond",
    "defeat_skeleton",
    "eat_plant",
)
"""All 22, easiest first; the later ones take the earlier ones as prerequisites where needed."""
