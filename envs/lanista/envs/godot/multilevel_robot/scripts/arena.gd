extends Node3D
## One robot and its eight levels: the rules of an episode.
##
## An episode goes on from level to level ("run") or is over at the first goal ("single"). A world
## is a number; where the robot starts, which goal counts and where belts and enemies head in level n
## of it is drawn from a generator seeded by the world and n alone.

const Level := preload("res://scripts/levels/level.gd")
const Robot := preload("res://scripts/robot.gd")
const Coin := preload("res://scripts/coin.gd")
const Enemy := preload("res://scripts/enemy.gd")

const LEVELS: Array[GDScript] = [
	preload("res://scripts/levels/level_1.gd"),
	preload("res://scripts/levels/level_2.gd"),
	preload("res://scripts/levels/level_3.gd"),
	preload("res://scripts/levels/level_4.gd"),
	preload("res://scripts/levels/level_5.gd"),
	preload("res://scripts/levels/level_6.gd"),
	preload("res://scripts/levels/level_7.gd"),
	preload("res://scripts/levels/level_8.gd"),
]
const LEVEL_DISTANCE := 60.0
const TICK_LIMIT := 3500
## The robot has fallen when its box touches the plane at this height.
const FALL_HEIGHT := -10.4
const GOAL_HALF_SIZE := 1.2
## How low a goal's light is while coins are left.
const LOCKED_PORTAL := Vector3(1.0, 0.15, 1.0)
const MODES: Array[String] = ["run", "single"]

## Which arena of the scene this is, from 0; each plays worlds of its own.
var number := 0
var level: Level
var levels: Array[Level] = []
## Foot of the goal that counts, in the level's frame.
var goal := Vector3.ZERO
var at_goal := false
var coins_left := 0
var coins_taken := 0
var levels_passed := 0
## The least distance to the goal that was rewarded.
var least_distance := 0.0
## What the current episode is made of.
var world := 0
var single := false

var _next_world := 0
var _start_level := 0
var _rng := RandomNumberGenerator.new()

@onready var robot: Robot = $Robot
@onready var controller: Node = $Controller
@onready var portal: Node3D = $Portal


func _ready() -> void:
	for index in LEVELS.size():
		var made: Level = LEVELS[index].new()
		made.number = index + 1
		made.name = "Level%d" % made.number
		made.position.z = -LEVEL_DISTANCE * index
		add_child(made)
		made.build()
		levels.append(made)
	level = levels[0]
	controller.needs_reset = true


func _physics_process(delta: float) -> void:
	if controller.needs_reset:
		begin_episode()
		return
	controller.n_steps += 1
	robot.move(controller.wish, delta)
	var spot := robot.spot
	if spot.y - robot.REACH < FALL_HEIGHT:
		lose_by_fall()
		return
	for enemy: Enemy in level.enemies:
		var place := enemy.position
		place.x += enemy.direction * enemy.SPEED * delta
		enemy.position = place
		if absf(place.x) > enemy.reach - enemy.HALF_SIZE and place.x * enemy.direction > 0.0:
			enemy.turn_around()
		var touch := robot.REACH + enemy.HALF_SIZE
		if absf(place.x - spot.x) < touch and absf(place.z - spot.z) < touch:
			lose_to_enemy()
			return
	if coins_left > 0:
		for coin: Coin in level.coins:
			if not coin.taken:
				var away := ((coin.position - spot).abs() - Vector3.ONE * robot.REACH).max(Vector3.ZERO)
				if away.length_squared() < coin.RADIUS * coin.RADIUS:
					coin.take()
					coins_left -= 1
					coins_taken += 1
					controller.reward += 1.0
					if coins_left == 0:
						open_goal()
	var reach := robot.REACH + GOAL_HALF_SIZE
	var touches := (
		absf(goal.x - spot.x) < reach and absf(goal.z - spot.z) < reach and absf(goal.y - spot.y) < 6.3
	)
	if touches and coins_left == 0:
		reach_goal()
	elif touches and not at_goal:
		refuse_goal()
	at_goal = touches
	if controller.n_steps > TICK_LIMIT and not controller.done:
		time_out()


## Say what the next episode is made of: its world, and the options `level` and `mode`.
func prepare(next_world: int, options: Dictionary) -> void:
	_next_world = next_world if number == 0 else hash([next_world, "arena", number])
	_start_level = str(options.get("level", "0")).to_int()
	var mode := str(options.get("mode", "run"))
	assert(
		not options.has("level") or (_start_level >= 1 and _start_level <= LEVELS.size()),
		"level must be from 1 to %d, not %s" % [LEVELS.size(), options.get("level")]
	)
	assert(mode in MODES, "mode must be run or single, not %s" % mode)
	single = mode == "single"


func begin_episode() -> void:
	world = _next_world
	# The world after this one, if nobody asks for another.
	_next_world = hash([world, "next"])
	_rng.seed = hash([world, 0])
	coins_taken = 0
	levels_passed = 0
	controller.reset()
	controller.reward = 0.0
	controller.wish = Vector2.ZERO
	enter_level(_start_level if _start_level > 0 else _rng.randi_range(1, LEVELS.size()))


## Put the robot at the start of a level, with everything in it as new.
func enter_level(number: int) -> void:
	level = levels[number - 1]
	_rng.seed = hash([world, number])
	var start := level.starts[_rng.randi_range(0, level.starts.size() - 1)]
	goal = level.goals[_rng.randi_range(0, level.goals.size() - 1)]
	for index in level.belts.size():
		level.belt_directions[index] = 1.0 if _rng.randf() < 0.5 else -1.0
	for enemy: Enemy in level.enemies:
		enemy.position.x = _rng.randf_range(-6.0, 6.0)
		enemy.direction = 1.0 if _rng.randf() < 0.5 else -1.0
		enemy.rotation.y = 0.0 if enemy.direction > 0.0 else PI
	for coin: Coin in level.coins:
		coin.taken = false
		coin.visible = true
	coins_left = level.coins.size()
	robot.level = level
	robot.spot = start + Vector3.UP * robot.HALF_HEIGHT
	robot.velocity = Vector3.ZERO
	robot.on_floor = true
	robot.on_ramp = false
	robot.at_wall = false
	robot.belt = -1
	robot.position = level.position + robot.spot
	portal.position = level.position + goal
	portal.scale = Vector3.ONE if coins_left == 0 else LOCKED_PORTAL
	at_goal = false
	least_distance = Vector2(goal.x - start.x, goal.z - start.z).length()


## The last coin of the level was taken.
func open_goal() -> void:
	portal.scale = Vector3.ONE


## The robot came to the goal with coins left.
func refuse_goal() -> void:
	portal.rotation.y += PI / 4.0


func reach_goal() -> void:
	level.passed()
	levels_passed += 1
	if single:
		controller.finish(1.0)
	elif level.number == LEVELS.size():
		finish_run()
	else:
		# What was won towards this goal is counted before the next one takes its place.
		controller.get_reward()
		controller.reward += 1.0
		enter_level(level.number + 1)


func finish_run() -> void:
	controller.finish(1.0)


func lose_by_fall() -> void:
	controller.finish(-1.0)


func lose_to_enemy() -> void:
	controller.finish(-1.0)


func time_out() -> void:
	controller.finish(-1.0, true)
