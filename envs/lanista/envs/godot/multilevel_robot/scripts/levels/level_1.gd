extends "res://scripts/levels/level.gd"
## Level 1: a flat square.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 20.0)
	add_starts_and_goals(-6.0, -14.0)
