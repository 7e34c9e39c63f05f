extends "res://scripts/levels/level.gd"
## Level 8: two rows of coins, each guarded by an enemy that goes to and fro.


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 28.0)
	for x: float in [-9.5, 9.5]:
		add_wall(x, -14.0, Vector3(1.0, 3.0, 28.0))
	for x: float in [-5.0, 5.0]:
		add_block(x, -14.0)
	for z: float in [-9.0, -20.0]:
		for x: float in [-5.0, 0.0, 5.0]:
			add_coin(Vector3(x, 1.5, z))
		add_enemy(z, 9.0)
	add_starts_and_goals(-3.0, -25.0)
