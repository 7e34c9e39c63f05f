extends Node3D
## The robot's body: an upright capsule that is pushed by wishes, friction, belts and gravity.
##
## It moves by sums of its own over the level's boxes, in the order in which they were built, and
## not by the physics server, whose order of contacts depends on what it did before: so a world
## plays the same way whatever was played before it. The body does not turn, only what is shown.

const Level := preload("res://scripts/levels/level.gd")

const RADIUS := 1.23
const HALF_HEIGHT := 2.1
## Half the edge of the box around its centre by which it touches coins, goals and enemies.
const REACH := 1.5
const ACCELERATION := 25.0
const FRICTION := 15.0
const MAX_SPEED := 10.0
const GRAVITY := 16.0
const BELT_PUSH := 15.0
const TURN_SPEED := 15.0
## It steps over edges lower than this.
const STEP := 0.4
## How far beyond an edge its centre may be and the floor still carry it.
const OVERHANG := 0.5
## A wall met slower than this is leant on, not bumped into.
const BUMP_SPEED := 1.0

var level: Level
## Where its centre is, in the level's frame.
var spot := Vector3.ZERO
var velocity := Vector3.ZERO
var on_floor := true
var on_ramp := false
## The belt it stands on, or -1.
var belt := -1
var at_wall := false

@onready var visual: Node3D = $Visual


## Move for one tick by a wish, an x and z of length 1 at most.
func move(wish: Vector2, delta: float) -> void:
	var flat := Vector2(velocity.x, velocity.z) + wish * (ACCELERATION * delta)
	flat = flat.move_toward(Vector2.ZERO, FRICTION * delta)
	if belt >= 0:
		flat.x += level.belt_directions[belt] * BELT_PUSH * delta
	flat = flat.limit_length(MAX_SPEED)
	var x := spot.x + flat.x * delta
	var z := spot.z + flat.y * delta
	var feet := spot.y - HALF_HEIGHT

	# What it runs into: walls, the sides of the ramp, and of the floor once it is below it.
	var hit_speed := 0.0
	var touches := false
	for box in level.walls if feet > -STEP else level.walls + level.floors:
		var end := box.end
		var away_x := x - clampf(x, box.position.x, end.x)
		var away_z := z - clampf(z, box.position.z, end.z)
		var square := away_x * away_x + away_z * away_z
		if square < RADIUS * RADIUS and square > 0.0 and end.y > feet + STEP:
			if box.position.y < feet + 2.0 * HALF_HEIGHT:
				var distance := sqrt(square)
				var normal := Vector2(away_x, away_z) / distance
				x += normal.x * (RADIUS - distance)
				z += normal.y * (RADIUS - distance)
				var into := -flat.dot(normal)
				if into > 0.0:
					hit_speed = maxf(hit_speed, into)
					flat += normal * into
				touches = true
	var ramp_height := -INF
	var slope := 0.0
	if level.ramp.size.y > 0.0:
		var box := level.ramp
		var end := box.end
		var near_z := clampf(z, box.position.z, end.z)
		var away_x := x - clampf(x, box.position.x, end.x)
		var away_z := z - near_z
		var height := box.size.y * (end.z - near_z) / box.size.z
		var distance := sqrt(away_x * away_x + away_z * away_z)
		if distance == 0.0 and height <= feet + STEP:
			ramp_height = height
			slope = box.size.y / box.size.z
		elif distance < RADIUS and distance > 0.0 and height > feet + STEP:
			var normal := Vector2(away_x, away_z) / distance
			x += normal.x * (RADIUS - distance)
			z += normal.y * (RADIUS - distance)
			var into := -flat.dot(normal)
			if into > 0.0:
				hit_speed = maxf(hit_speed, into)
				flat += normal * into
			touches = true

	# What carries it.
	var ground := ramp_height
	for box in level.floors:
		var end := box.end
		if (
			end.y > ground
			and end.y <= feet + STEP
			and x > box.position.x - OVERHANG
			and x < end.x + OVERHANG
			and z > box.position.z - OVERHANG
			and z < end.z + OVERHANG
		):
			ground = end.y
	var rise := velocity.y - GRAVITY * delta
	feet += rise * delta
	var carried := feet <= ground or (on_floor and rise <= 0.0 and feet <= ground + STEP)
	if carried:
		feet = ground
		rise = -flat.y * slope if ground == ramp_height else 0.0
	spot = Vector3(x, feet + HALF_HEIGHT, z)
	velocity = Vector3(flat.x, rise, flat.y)
	position = level.position + spot

	var under := -1
	if carried:
		for index in level.belts.size():
			if z <= level.belts[index].end.z and z > level.belts[index].position.z:
				under = index
	if carried != on_floor:
		on_floor = carried
		if carried:
			land()
		else:
			take_off()
	if on_ramp != (carried and slope > 0.0):
		on_ramp = not on_ramp
		if on_ramp:
			climb_ramp()
	if under != belt:
		if belt >= 0:
			leave_belt()
		if under >= 0:
			board_belt(under)
	if hit_speed > BUMP_SPEED and not at_wall:
		bump_wall(hit_speed)
	at_wall = touches


func take_off() -> void:
	visual.rotation.x = 0.1


func land() -> void:
	visual.rotation.x = 0.0


func climb_ramp() -> void:
	visual.rotation.x = 0.2


func board_belt(index: int) -> void:
	belt = index


func leave_belt() -> void:
	belt = -1


func bump_wall(speed: float) -> void:
	visual.rotation.x = -0.02 * speed
