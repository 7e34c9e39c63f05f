extends Node3D
## An enemy: it goes straight along x and turns where a wall stops it; it pursues nobody.

const SPEED := 5.0
const HALF_SIZE := 0.9

## Where the walls are, on both sides.
var reach := 9.0
## -1 or 1 along x.
var direction := 1.0


func turn_around() -> void:
	direction = -direction
	rotation.y = 0.0 if direction > 0.0 else PI
