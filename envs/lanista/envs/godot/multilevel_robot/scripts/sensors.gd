extends RefCounted
## The robot's rays: all round for walls, and a cone downwards for floor and belts.
##
## A ray of length L that meets something at a distance d gives (L - d) / L, else 0.

const Level := preload("res://scripts/levels/level.gd")

const WALL_RAYS := 18
const WALL_LENGTH := 25.0
const FLOOR_RAYS := 4
const FLOOR_LENGTH := 15.0
const FLOOR_CONE := deg_to_rad(120.0)

var _wall_ways := PackedVector3Array()
var _floor_ways := PackedVector3Array()
var _wall_query := PhysicsRayQueryParameters3D.new()
var _floor_query := PhysicsRayQueryParameters3D.new()


func _init() -> void:
	_wall_query.collision_mask = Level.SOLID_LAYER
	_floor_query.collision_mask = Level.SOLID_LAYER | Level.BELT_LAYER
	for index in WALL_RAYS:
		var angle := TAU * index / WALL_RAYS
		_wall_ways.append(Vector3(sin(angle), 0.0, -cos(angle)) * WALL_LENGTH)
	var step := FLOOR_CONE / FLOOR_RAYS
	for row in FLOOR_RAYS:
		for column in FLOOR_RAYS:
			var ahead := FLOOR_CONE / 2.0 - step * (row + 0.5)
			var aside := -FLOOR_CONE / 2.0 + step * (column + 0.5)
			var way := Vector3(tan(aside), -1.0, -tan(ahead))
			_floor_ways.append(way.normalized() * FLOOR_LENGTH)


## Append 18 nearnesses of walls: ahead first, then clockwise as seen from above.
func look_around(space: PhysicsDirectSpaceState3D, from: Vector3, values: Array) -> void:
	_wall_query.from = from
	for way in _wall_ways:
		_wall_query.to = from + way
		var hit := space.intersect_ray(_wall_query)
		values.append(1.0 - from.distance_to(hit["position"]) / WALL_LENGTH if hit else 0.0)


## Append 16 pairs of nearness of the floor and whether it is a belt: ahead first, left first.
func look_down(space: PhysicsDirectSpaceState3D, from: Vector3, values: Array) -> void:
	_floor_query.from = from
	for way in _floor_ways:
		_floor_query.to = from + way
		var hit := space.intersect_ray(_floor_query)
		if hit:
			values.append(1.0 - from.distance_to(hit["position"]) / FLOOR_LENGTH)
			values.append(1.0 if hit["collider"].collision_layer == Level.BELT_LAYER else 0.0)
		else:
			values.append(0.0)
			values.append(0.0)
