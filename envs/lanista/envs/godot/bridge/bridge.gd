extends Node
## Lanista's bridge: does the job of the project's own Sync node, in step with a Python client.
##
## An autoload, first in the list, so that it connects and seeds before the first scene is made.
## Without `--port=` on the command line it does nothing at all, and the project's own Sync works.
## A step begins and ends at the start of a physics tick, when the collisions of the tick before
## have been told and the game has not yet answered them.
##
## A game may read `Engine.get_singleton("Lanista").options` and `.world_seed`, and its agents or the
## root of its scene may have `lanista_reset(seed: int, options: Dictionary)`.

const Takeover := preload("takeover.gd")
const Seat := preload("seat.gd")
const Wire := preload("wire.gd")
const Generators := preload("generators.gd")
const ScriptErrors := preload("script_errors.gd")

const VERSION := 1
const TRACER := "res://__lanista__/trace.gd"
const SINGLETON := &"Lanista"
const CONNECT_MSEC := 30_000
## Ticks that a game gets to answer `needs_reset` before its agent's reset() is called for it.
const RESET_TICKS := 8
## Ticks by which a step of many agents may grow so that those that ended are seen afresh.
const EXTRA_TICKS := 4

enum State { OFF, STARTING, STEP, RESET, RELOAD }

## What the client asked for, by name; the values are texts.
var options: Dictionary = {}
var _start_options: Dictionary = {}
## The seed of the current episodes.
var world_seed := 0

var _state := State.OFF
var _wire: Wire = null
var _extended := false
var _seats: Array[Seat] = []
## The last seats whose spaces the client knows; those of a scene that comes next follow them.
var _known_seats: Array[Seat] = []
var _resetting: Array[Seat] = []
var _repeat := 8
var _repeat_asked := 0
var _ticks := 0
var _root_is_ready := false
var _pending_syncs: Array[Node] = []
var _reload_request: Dictionary = {}
var _reload_is_due := false
## What lived beside the scene when the game began.
var _first_nodes: Array[Node] = []
var _tracer: GDScript = null
var _errors := ScriptErrors.new()


func _init() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	# The last of all nodes: what they did in this tick has been done.
	process_physics_priority = 0x7FFFFFFF
	var arguments := _arguments()
	if Engine.is_editor_hint() or not arguments.has("port"):
		return
	Engine.register_singleton(SINGLETON, self)
	_errors.start()
	_wire = Wire.connect_to_client(str(arguments["port"]).to_int(), CONNECT_MSEC)
	if _wire == null:
		push_warning("Lanista: nobody listens on port %s" % arguments["port"])
		return
	_state = State.STARTING
	options = arguments
	world_seed = str(arguments.get("env_seed", "1")).to_int()
	_repeat_asked = str(arguments.get("action_repeat", "0")).to_int()
	var handshake: Variant = _wire.receive()
	if handshake is Dictionary and handshake.get("lanista") is Dictionary:
		_extended = true
		var wish: Dictionary = handshake["lanista"]
		world_seed = str(wish.get("seed", world_seed)).to_int()
		options.merge(wish.get("options", {}), true)
		_repeat_asked = int(wish["action_repeat"]) if wish.get("action_repeat") != null else 0
	_start_options = options.duplicate()
	seed(world_seed)


func _enter_tree() -> void:
	if _state == State.OFF:
		return
	get_tree().node_added.connect(_on_node_added)
	get_tree().physics_frame.connect(_on_tick_started)
	get_tree().root.ready.connect(_on_root_ready, CONNECT_ONE_SHOT)


func _exit_tree() -> void:
	if Engine.has_singleton(SINGLETON):
		Engine.unregister_singleton(SINGLETON)


func _physics_process(_delta: float) -> void:
	if _state == State.STEP:
		# A game may load another scene before the next tick begins.
		for seat in _seats:
			if seat.is_done():
				seat.watch()


static func _arguments() -> Dictionary:
	var found := {}
	for argument: String in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if argument.begins_with("--"):
			var cut := argument.find("=")
			if cut > 0:
				found[argument.substr(2, cut - 2)] = argument.substr(cut + 1)
	return found


#region Taking the Sync node's place


func _on_node_added(node: Node) -> void:
	if Takeover.is_sync(node):
		Takeover.silence(node)
		node.ready.connect(_on_sync_ready.bind(node), CONNECT_ONE_SHOT)


func _on_root_ready() -> void:
	_root_is_ready = true
	_first_nodes = get_tree().root.get_children()
	if not _pending_syncs.is_empty():
		var sync: Node = _pending_syncs[0]
		_pending_syncs.clear()
		_adopt(sync)


func _on_sync_ready(sync: Node) -> void:
	if not _root_is_ready:
		_pending_syncs.append(sync)
		return
	var parent := sync.get_parent()
	if parent != null and not parent.is_node_ready():
		await parent.ready
	if _state == State.STARTING or _state == State.RELOAD or not _seats_are_alive():
		_adopt(sync)


func _seats_are_alive() -> bool:
	for seat in _seats:
		if not seat.is_alive():
			return false
	return not _seats.is_empty()


## Find the agents as this project's own Sync does, and begin or go on.
func _adopt(sync: Node) -> void:
	if _state == State.OFF:
		return
	var agents := Takeover.agents_of(sync, get_tree())
	if agents.is_empty():
		return
	_repeat = Takeover.action_repeat_of(sync, _repeat)
	if _repeat_asked > 0:
		_repeat = _repeat_asked
	Engine.time_scale = 1.0
	get_tree().paused = false
	var before := _known_seats
	_seats = []
	for index in agents.size():
		var seat := Seat.new(agents[index], Takeover.reads_reward_first(sync))
		if index < before.size():
			seat.follow(before[index], _state == State.STEP)
		_seats.append(seat)
	if not before.is_empty():
		_known_seats = _seats
	if not before.is_empty() and before.size() != _seats.size():
		_seats[0].problem = "the game now has %d agents, and had %d" % [_seats.size(), before.size()]
	match _state:
		State.STARTING:
			_serve()
		State.RELOAD:
			_begin_reset(_reload_request)


## For projects whose agents come without a Sync node, or after a change of scene.
func _adopt_without_sync() -> void:
	if not get_tree().get_nodes_in_group(&"AGENT").is_empty():
		_adopt(null)


#endregion

#region Ticks


func _on_tick_started() -> void:
	match _state:
		State.STARTING:
			if _ticks > 0:
				_adopt_without_sync()
		State.RELOAD:
			if _reload_is_due:
				_load_afresh()
			else:
				_adopt_without_sync()
		State.STEP:
			if _ticks > 0:
				for seat in _seats:
					seat.watch()
				if _step_is_over():
					_finish_step()
		State.RESET:
			if _ticks > 0 and _reset_is_over():
				_finish_reset()
	_ticks += 1


func _step_is_over() -> bool:
	if _extended and _seats.size() == 1:
		return _ticks >= _repeat or _seats[0].status != 0
	if _ticks < _repeat:
		return false
	if _ticks < _repeat + EXTRA_TICKS:
		for seat in _seats:
			if seat.status != 0 and seat.waits_for_reset():
				return false
	return true


func _finish_step() -> void:
	var stops := _extended and _seats.size() == 1
	for seat in _seats:
		seat.finish_step(stops)
	_send_frame("step")
	_serve()


func _reset_is_over() -> bool:
	for seat in _resetting:
		if seat.waits_for_reset():
			if _ticks < RESET_TICKS:
				return false
			seat.reset_by_call()
	return true


func _finish_reset() -> void:
	for seat in _seats:
		if seat in _resetting:
			seat.finish_reset()
		else:
			seat.look()
	_send_frame("reset")
	_serve()


#endregion

#region Messages


## Answer messages until one lets the game run on. Blocks the engine, which is the point.
func _serve() -> void:
	while true:
		var message: Variant = _wire.receive()
		if message is PackedByteArray:
			_act(_wire.unpack_actions(message, _seats))
			return
		if not message is Dictionary:
			_end()
			return
		match message.get("type", ""):
			"env_info":
				_send_spaces()
			"action":
				_act(message["action"])
				return
			"reset":
				_reset(message)
				return
			"call":
				_wire.send_json(_call(str(message.get("method", ""))))
			"close":
				_end()
				return
			_:
				_refuse("it knows no message %s" % [message.get("type")])


func _end() -> void:
	_state = State.OFF
	_wire.close()
	get_tree().quit()


func _refuse(why: String) -> void:
	_wire.send_json({"type": "error", "error": why})


func _act(actions: Array) -> void:
	get_tree().paused = false
	for index in mini(actions.size(), _seats.size()):
		_seats[index].begin_step(actions[index])
	_ticks = 0
	_state = State.STEP


func _call(method: String) -> Dictionary:
	var returns := []
	for seat in _seats:
		if not seat.node.has_method(method):
			return {"type": "call", "returns": null, "error": "no method %s" % method}
		returns.append(seat.node.call(method))
	return {"type": "call", "returns": returns}


func _send_spaces() -> void:
	var observation_spaces := []
	var action_spaces := []
	var policies := []
	for seat in _seats:
		seat.learn_spaces()
		observation_spaces.append(seat.observation_space)
		action_spaces.append(seat.action_space)
		policies.append(seat.policy)
	_known_seats = _seats
	var message := {
		"type": "env_info",
		"observation_space": observation_spaces,
		"action_space": action_spaces,
		"n_agents": _seats.size(),
		"agent_policy_names": policies,
	}
	if ResourceLoader.exists(TRACER):
		_tracer = load(TRACER)
		_tracer.call(&"take_regularly")
	var startup: Variant = _drain()
	if _extended:
		message["lanista"] = {
			"version": VERSION,
			"action_repeat": _repeat,
			"ticks_per_second": Engine.physics_ticks_per_second,
			"startup_trace": null if startup == null else Array(startup),
		}
	_wire.send_json(message)


func _reset(message: Dictionary) -> void:
	var scene := get_tree().current_scene
	if not message.get("reload", false) or scene == null or scene.scene_file_path == "":
		_begin_reset(message)
		return
	_reload_request = message
	_reload_is_due = true
	_ticks = 0
	if _state == State.STARTING:
		# No tick has begun: a scene may not go while its nodes are still told that they are ready.
		_state = State.RELOAD
	else:
		_state = State.RELOAD
		_load_afresh()


## Put a new scene in the old one's place at once, so that the old one plays no part any more.
func _load_afresh() -> void:
	_reload_is_due = false
	var tree := get_tree()
	var path := tree.current_scene.scene_file_path
	_seats = []
	tree.paused = false
	tree.unload_current_scene()
	for node in tree.root.get_children():
		if not node in _first_nodes:
			node.free()
	_drain()
	_apply_seed(_reload_request)
	var scene: Node = (load(path) as PackedScene).instantiate()
	_first_nodes = tree.root.get_children()
	_first_nodes.append(scene)
	tree.root.add_child(scene)
	tree.current_scene = scene
	# Scripts wait for it before they begin (`await get_tree().root.ready`), and it comes only once.
	tree.root.ready.emit()
	if _state == State.RELOAD:
		_adopt_without_sync()


func _apply_seed(message: Dictionary) -> void:
	# Those of an earlier reset must not outlive it: a play depends on its own options alone.
	options.clear()
	options.merge(_start_options)
	if message.get("options") is Dictionary:
		options.merge(message["options"], true)
	if message.get("seed") != null:
		world_seed = str(message["seed"]).to_int()
		seed(world_seed)


func _begin_reset(message: Dictionary) -> void:
	_apply_seed(message)
	_resetting.clear()
	var chosen: Variant = message.get("agents")
	for index in _seats.size():
		if chosen == null or float(index) in chosen:
			_resetting.append(_seats[index])
	var tree := get_tree()
	tree.paused = false
	if message.get("seed") != null:
		Generators.reseed(tree.root, world_seed)
	if tree.current_scene != null and tree.current_scene.has_method(&"lanista_reset"):
		tree.current_scene.call(&"lanista_reset", world_seed, options)
	for seat in _resetting:
		seat.begin_reset(world_seed, options)
	_ticks = 0
	_state = State.RESET


func _drain() -> Variant:
	if _tracer == null:
		return null
	return _tracer.call(&"drain")


func _send_frame(kind: String) -> void:
	for index in _seats.size():
		var problem := _seats[index].problem
		if problem != "" and _extended:
			_refuse("agent %d: %s" % [index, problem])
			return
	var trace: Variant = _drain()
	if _extended:
		var missing: bool = _tracer != null and _tracer.get(&"truncated") == true
		_wire.send_frame(_seats, _ticks, trace, missing, _errors.take())
	else:
		_wire.send_plain_frame(kind, _seats, trace)


#endregion
