extends "res://scripts/levels/level.gd"
## Level 5: a ramp up to a gap that only a run-up clears, and a coin over it.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 5.0)
	add_floor(-10.0, -5.0, 8.0, 15.0)
	add_floor(2.0, -5.0, 8.0, 15.0)
	add_ramp(AABB(Vector3(-2.0, 0.0, -20.0), Vector3(4.0, 3.0, 15.0)))
	add_floor(-10.0, -27.0, 20.0, 10.0)
	add_coin(Vector3(0.0, 4.6, -23.5))
	add_starts_and_goals(-2.5, -33.0)
