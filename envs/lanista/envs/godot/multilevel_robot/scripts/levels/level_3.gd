extends "res://scripts/levels/level.gd"
## Level 3: three conveyor belts, each of which pushes to a side that is drawn.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 7.9)
	add_belt(-7.9, 4.2)
	add_floor(-10.0, -12.1, 20.0, 1.8)
	add_belt(-13.9, 4.2)
	add_floor(-10.0, -18.1, 20.0, 1.8)
	add_belt(-19.9, 4.2)
	add_floor(-10.0, -24.1, 20.0, 7.9)
	add_starts_and_goals(-4.0, -28.0)
