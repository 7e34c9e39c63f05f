extends "res://addons/godot_link/ai_controller.gd"
## What the robot's player sees and does: 65 numbers, two numbers.

const Arena := preload("res://scripts/arena.gd")
const Sensors := preload("res://scripts/sensors.gd")
const Coin := preload("res://scripts/coin.gd")
const Enemy := preload("res://scripts/enemy.gd")

const OBSERVED := 65
const GOAL_RANGE := 40.0
const SPEED_RANGE := 20.0
const SIGHT := 30.0

## The wish of the last action: x and z, of length 1 at most.
var wish := Vector2.ZERO

var _sensors := Sensors.new()

@onready var arena: Arena = get_parent()


func get_obs_space() -> Dictionary:
	return {"obs": {"size": [OBSERVED], "space": "box"}}


func get_action_space() -> Dictionary:
	return {"movement": {"size": 2, "action_type": "continuous"}}


func set_action(action: Dictionary) -> void:
	var movement: Array = action["movement"]
	wish = Vector2(clampf(movement[0], -1.0, 1.0), clampf(movement[1], -1.0, 1.0)).limit_length(1.0)


func get_obs() -> Dictionary:
	var robot := arena.robot
	var spot := robot.spot
	var goal := (arena.goal + Vector3.UP * robot.HALF_HEIGHT - spot).limit_length(GOAL_RANGE) / GOAL_RANGE
	var coin := nearest_coin()
	var enemy := nearest_enemy()
	var to_coin := Vector3.ZERO if coin == null else coin.position - spot
	var to_enemy := Vector3.ZERO
	var enemy_direction := 0.0
	if enemy != null:
		to_enemy = enemy.position + Vector3.UP * robot.HALF_HEIGHT - spot
		enemy_direction = enemy.direction
	var speed := robot.velocity.limit_length(SPEED_RANGE) / SPEED_RANGE
	var values: Array = [
		float(n_steps) / arena.TICK_LIMIT,
		goal.x, goal.y, goal.z,
		to_coin.x, to_coin.y, to_coin.z,
		to_enemy.x, to_enemy.y, to_enemy.z,
		enemy_direction,
		speed.x, speed.y, speed.z,
		1.0 if arena.coins_left == 0 else 0.0,
	]
	var space := arena.get_world_3d().direct_space_state
	var from := robot.global_position
	_sensors.look_around(space, from, values)
	_sensors.look_down(space, from, values)
	return {"obs": values}


## The reward since it was last read: events, and a tenth of the metres won towards the goal.
func get_reward() -> float:
	var spot := arena.robot.spot
	var distance := Vector2(arena.goal.x - spot.x, arena.goal.z - spot.z).length()
	if distance < arena.least_distance:
		reward += (arena.least_distance - distance) / 10.0
		arena.least_distance = distance
	return reward


## What testers read: places in the level's frame, in metres.
func get_info() -> Dictionary:
	var robot := arena.robot
	var level := arena.level
	var coins := []
	for coin in level.coins:
		coins.append(0 if coin.taken else 1)
	var enemies := []
	for enemy in level.enemies:
		enemies.append_array([enemy.position.x, enemy.position.z, enemy.direction])
	return {
		"level": level.number,
		"tick": n_steps,
		"position": [robot.spot.x, robot.spot.y, robot.spot.z],
		"velocity": [robot.velocity.x, robot.velocity.y, robot.velocity.z],
		"goal": [arena.goal.x, arena.goal.z],
		"coins": coins,
		"coins_left": arena.coins_left,
		"enemies": enemies,
		"belts": Array(level.belt_directions),
		"on_floor": robot.on_floor,
		"levels_passed": arena.levels_passed,
		"coins_taken": arena.coins_taken,
		"summary": {"levels_passed": arena.levels_passed, "coins_taken": arena.coins_taken},
	}


## The nearest coin that is left in the level, or null if none is in sight.
func nearest_coin() -> Coin:
	var found: Coin = null
	var least := SIGHT
	for coin in arena.level.coins:
		if not coin.taken:
			var distance := coin.position.distance_to(arena.robot.spot)
			if distance <= least:
				least = distance
				found = coin
	return found


## The nearest enemy of the level, or null if none is in sight.
func nearest_enemy() -> Enemy:
	var found: Enemy = null
	var least := SIGHT
	for enemy in arena.level.enemies:
		var distance := enemy.position.distance_to(arena.robot.spot)
		if distance <= least:
			least = distance
			found = enemy
	return found


## Lanista's bridge: what the next episode is made of.
func lanista_reset(world_seed: int, options: Dictionary) -> void:
	arena.prepare(world_seed, options)
