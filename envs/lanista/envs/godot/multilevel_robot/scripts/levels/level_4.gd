extends "res://scripts/levels/level.gd"
## Level 4: tiles of four metres in five columns and nine rows, some of them missing.

const TILE := 4.0


func build() -> void:
	add_floor(-10.0, 0.0, 20.0, 2.0 * TILE)
	_add_row(3, [1, 3, 5])
	add_floor(-10.0, -3.0 * TILE, 20.0, TILE)
	_add_row(5, [1, 3, 5])
	add_floor(-10.0, -5.0 * TILE, 20.0, TILE)
	_add_row(7, [1, 5])
	add_floor(-10.0, -7.0 * TILE, 20.0, 2.0 * TILE)
	add_starts_and_goals(-2.0, -34.0, 8.0)


func _add_row(row: int, columns: Array) -> void:
	for column: int in columns:
		add_floor(-10.0 + (column - 1) * TILE, -(row - 1) * TILE, TILE, TILE)
