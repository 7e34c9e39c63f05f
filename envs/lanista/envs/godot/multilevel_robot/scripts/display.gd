extends Node3D
## What a person needs to play: the keyboard, a camera that follows, and what stands on the screen.
##
## Arrow keys or W, A, S, D move; R begins the level anew. A lost level is tried again, in a new world.

const Arena := preload("res://scripts/arena.gd")

const BEHIND := Vector3(0.0, 14.0, 15.0)
const AIM := Vector3(0.0, 0.0, -5.0)
const COIN_TURN := 2.0

var _arena: Arena
var _camera := Camera3D.new()
var _label := Label.new()
var _notice := ""


func _init(arena: Arena) -> void:
	_arena = arena
	var light := DirectionalLight3D.new()
	light.rotation_degrees = Vector3(-60.0, 30.0, 0.0)
	light.shadow_enabled = true
	add_child(light)
	var surroundings := WorldEnvironment.new()
	surroundings.environment = Environment.new()
	surroundings.environment.background_mode = Environment.BG_COLOR
	surroundings.environment.background_color = Color(0.12, 0.14, 0.18)
	surroundings.environment.ambient_light_source = Environment.AMBIENT_SOURCE_COLOR
	surroundings.environment.ambient_light_color = Color.WHITE
	surroundings.environment.ambient_light_energy = 0.4
	add_child(surroundings)
	add_child(_camera)
	var layer := CanvasLayer.new()
	_label.position = Vector2(24.0, 20.0)
	_label.add_theme_font_size_override(&"font_size", 26)
	layer.add_child(_label)
	add_child(layer)


func _ready() -> void:
	_camera.make_current()


func _physics_process(_delta: float) -> void:
	var controller := _arena.controller
	if controller.heuristic != "human":
		return
	if controller.done:
		_notice = _outcome()
		controller.done = false
		var first := _arena.levels_passed > 0 and _arena.level.number == _arena.LEVELS.size()
		_arena.prepare(randi(), {"level": "1" if first else str(_arena.level.number)})
	if Input.is_physical_key_pressed(KEY_R):
		_notice = ""
		_arena.prepare(randi(), {"level": str(_arena.level.number)})
		controller.needs_reset = true
	controller.wish = Vector2(
		_axis([KEY_LEFT, KEY_A], [KEY_RIGHT, KEY_D]), _axis([KEY_UP, KEY_W], [KEY_DOWN, KEY_S])
	).limit_length(1.0)


func _process(delta: float) -> void:
	var robot := _arena.robot
	_camera.global_position = _camera.global_position.lerp(
		robot.global_position + BEHIND, minf(1.0, 6.0 * delta)
	)
	_camera.look_at(_camera.global_position - BEHIND + AIM)
	var flat := Vector3(robot.velocity.x, 0.0, robot.velocity.z)
	if flat.length() > 0.5:
		var turned := atan2(-flat.x, -flat.z)
		robot.visual.rotation.y = lerp_angle(
			robot.visual.rotation.y, turned, minf(1.0, robot.TURN_SPEED * delta)
		)
	# What a bump or a jump tilted rights itself.
	robot.visual.rotation.x = lerpf(robot.visual.rotation.x, 0.0, minf(1.0, 4.0 * delta))
	for coin in _arena.level.coins:
		coin.rotate_y(COIN_TURN * delta)
	_label.text = (
		"Level %d of %d    coins left: %d    levels passed: %d    time left: %d s\n%s"
		% [
			_arena.level.number,
			_arena.LEVELS.size(),
			_arena.coins_left,
			_arena.levels_passed,
			(_arena.TICK_LIMIT - _arena.controller.n_steps) / 30,
			_notice,
		]
	)


func _outcome() -> String:
	if _arena.controller.truncated:
		return "Out of time."
	if _arena.robot.spot.y < 0.0:
		return "You fell. Once more!"
	if _arena.at_goal:
		return "Passed!"
	return "An enemy caught you. Once more!"


static func _axis(negative: Array, positive: Array) -> float:
	var value := 0.0
	for key: Key in negative:
		if Input.is_physical_key_pressed(key):
			value -= 1.0
			break
	for key: Key in positive:
		if Input.is_physical_key_pressed(key):
			value += 1.0
			break
	return value
