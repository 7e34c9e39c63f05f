extends "res://scripts/levels/level.gd"
## Level 2: three cubes half-way, with gaps between them.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 20.0)
	for x: float in [-8.0, 0.0, 8.0]:
		add_wall(x, -10.0, Vector3(4.0, 4.0, 4.0))
	add_starts_and_goals(-4.0, -16.0)
