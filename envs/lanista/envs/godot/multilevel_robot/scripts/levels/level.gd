extends Node3D
## A level: its solid parts, its start points and goals, its coins, belts and enemies.
##
## All places are in the level's own frame: x to the right, from -10 to 10, and z against the way to
## go, from 0 at the near edge down to minus its length; the floor's top is at y = 0. Each level is
## a script that builds itself once; what changes in play is set afresh when the robot enters it.

const CoinScene := preload("res://scenes/coin.tscn")
const EnemyScene := preload("res://scenes/enemy.tscn")
const Coin := preload("res://scripts/coin.gd")
const Enemy := preload("res://scripts/enemy.gd")

const HALF_WIDTH := 10.0
const THICKNESS := 1.0
const BLOCK_HEIGHT := 2.8
## Layers of the bodies that the robot's rays meet.
const SOLID_LAYER := 1
const BELT_LAYER := 4

const FLOOR_COLOR := Color(0.55, 0.6, 0.66)
const WALL_COLOR := Color(0.36, 0.42, 0.55)
const BELT_COLOR := Color(0.85, 0.55, 0.2)
const RAMP_COLOR := Color(0.45, 0.65, 0.5)

## From 1 to 8.
var number := 0
var starts := PackedVector3Array()
var goals := PackedVector3Array()
## What carries the robot, and what stops it.
var floors: Array[AABB] = []
var walls: Array[AABB] = []
## A ramp rises against z from the near end of its box to the far one; empty where there is none.
var ramp := AABB()
var belts: Array[AABB] = []
## -1 or 1 for each belt: where it pushes, along x.
var belt_directions := PackedFloat32Array()
var coins: Array[Coin] = []
var enemies: Array[Enemy] = []


## Build what is particular to the level.
func build() -> void:
	pass


## The robot reached the goal with all coins.
func passed() -> void:
	for coin in coins:
		coin.visible = false


func add_starts_and_goals(start_z: float, goal_z: float, side := 6.0) -> void:
	for x: float in [-side, 0.0, side]:
		starts.append(Vector3(x, 0.0, start_z))
		goals.append(Vector3(x, 0.0, goal_z))


func add_floor(x: float, z: float, width: float, length: float) -> void:
	floors.append(AABB(Vector3(x, -THICKNESS, z - length), Vector3(width, THICKNESS, length)))
	_add_body(floors[-1], SOLID_LAYER, FLOOR_COLOR)


## A belt lies in the floor, over the whole width.
func add_belt(z: float, length: float) -> void:
	var box := AABB(
		Vector3(-HALF_WIDTH, -THICKNESS, z - length), Vector3(2.0 * HALF_WIDTH, THICKNESS, length)
	)
	floors.append(box)
	belts.append(box)
	belt_directions.append(1.0)
	_add_body(box, BELT_LAYER, BELT_COLOR)


func add_wall(center_x: float, center_z: float, size: Vector3) -> void:
	walls.append(AABB(Vector3(center_x - size.x / 2.0, 0.0, center_z - size.z / 2.0), size))
	_add_body(walls[-1], SOLID_LAYER, WALL_COLOR)


func add_block(center_x: float, center_z: float) -> void:
	add_wall(center_x, center_z, Vector3.ONE * BLOCK_HEIGHT)


func add_ramp(box: AABB) -> void:
	ramp = box
	var shape := ConvexPolygonShape3D.new()
	var near := box.end.z
	shape.points = PackedVector3Array(
		[
			Vector3(box.position.x, 0.0, near),
			Vector3(box.end.x, 0.0, near),
			Vector3(box.position.x, 0.0, box.position.z),
			Vector3(box.end.x, 0.0, box.position.z),
			Vector3(box.position.x, box.end.y, box.position.z),
			Vector3(box.end.x, box.end.y, box.position.z),
		]
	)
	var mesh := PrismMesh.new()
	# A prism with its ridge over one edge, turned so that the ridge is at the far end.
	mesh.size = Vector3(box.size.z, box.size.y, box.size.x)
	mesh.left_to_right = 1.0
	var shown := _shown(mesh, RAMP_COLOR)
	shown.rotation.y = PI / 2.0
	shown.position = box.get_center()
	add_child(shown)
	_add_collision(shape, Vector3.ZERO, SOLID_LAYER)


func add_coin(place: Vector3) -> void:
	var coin: Coin = CoinScene.instantiate()
	coin.position = place
	coins.append(coin)
	add_child(coin)


func add_enemy(z: float, reach: float) -> void:
	var enemy: Enemy = EnemyScene.instantiate()
	enemy.position = Vector3(0.0, 0.0, z)
	enemy.reach = reach
	enemies.append(enemy)
	add_child(enemy)


func _add_body(box: AABB, layer: int, color: Color) -> void:
	var mesh := BoxMesh.new()
	mesh.size = box.size
	var shown := _shown(mesh, color)
	shown.position = box.get_center()
	add_child(shown)
	var shape := BoxShape3D.new()
	shape.size = box.size
	_add_collision(shape, box.get_center(), layer)


func _add_collision(shape: Shape3D, place: Vector3, layer: int) -> void:
	var body := StaticBody3D.new()
	body.collision_layer = layer
	body.collision_mask = 0
	body.position = place
	var collision := CollisionShape3D.new()
	collision.shape = shape
	body.add_child(collision)
	add_child(body)


func _shown(mesh: Mesh, color: Color) -> MeshInstance3D:
	var material := StandardMaterial3D.new()
	material.albedo_color = color
	var shown := MeshInstance3D.new()
	shown.mesh = mesh
	shown.material_override = material
	return shown
