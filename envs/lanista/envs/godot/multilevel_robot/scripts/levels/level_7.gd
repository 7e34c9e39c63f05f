extends "res://scripts/levels/level.gd"
## Level 7: two walls, and two coins between them.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 34.0)
	for z: float in [-13.85, -20.15]:
		for index in 4:
			add_block(-4.0 + index * BLOCK_HEIGHT, z)
	add_coin(Vector3(-3.0, 1.5, -17.0))
	add_coin(Vector3(3.0, 1.5, -17.0))
	add_starts_and_goals(-4.0, -30.0)
