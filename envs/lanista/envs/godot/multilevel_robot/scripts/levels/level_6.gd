extends "res://scripts/levels/level.gd"
## Level 6: nine coins.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 34.0)
	for z: float in [-11.0, -17.0, -23.0]:
		for x: float in [-6.0, 0.0, 6.0]:
			add_coin(Vector3(x, 1.5, z))
	add_starts_and_goals(-4.0, -30.0)
