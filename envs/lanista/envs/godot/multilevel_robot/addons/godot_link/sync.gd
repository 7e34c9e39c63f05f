extends Node
## Plays all agents of the scene in step with a godot-rl client (protocol 0.7, plain JSON over TCP).
##
## Only with `--port=` on the command line; without it a person plays. An action is held for
## `action_repeat` physics ticks, and the engine stands still until the client sends the next one.

enum ControlModes { HUMAN, TRAINING }
enum State { IDLE, STEP, RESET }

const CONNECT_SECONDS := 60

@export var control_mode := ControlModes.TRAINING
@export_range(1, 100) var action_repeat := 8
@export_range(0.1, 1000.0) var speed_up := 1.0

var agents_training: Array[Node] = []

var _stream: StreamPeerTCP = null
var _state := State.IDLE
var _ticks := 0


func _ready() -> void:
	await get_parent().ready
	var arguments := _get_args()
	if not arguments.has("port"):
		control_mode = ControlModes.HUMAN
		_initialize()
		return
	action_repeat = maxi(1, str(arguments.get("action_repeat", action_repeat)).to_int())
	speed_up = str(arguments.get("speedup", speed_up)).to_float()
	# The game's tick stays as long in game time, however fast the clock runs.
	Engine.physics_ticks_per_second = roundi(Engine.physics_ticks_per_second * speed_up)
	Engine.time_scale = speed_up
	_initialize()
	if connect_to_server(str(arguments["port"]).to_int()):
		_serve()
	else:
		push_error("nobody listens on port %s" % arguments["port"])
		get_tree().quit(1)


func _physics_process(_delta: float) -> void:
	if _state == State.IDLE:
		return
	_ticks += 1
	if _state == State.RESET:
		_send({"type": "reset", "obs": _ask(&"get_obs"), "info": _ask(&"get_info")})
		_ask(&"zero_reward")
		_ask(&"set_done_false")
		_serve()
	elif _ticks >= action_repeat:
		var message := {
			"type": "step",
			"obs": _ask(&"get_obs"),
			"reward": _ask(&"get_reward"),
			"done": _ask(&"get_done"),
			"info": _ask(&"get_info"),
		}
		_ask(&"zero_reward")
		_ask(&"set_done_false")
		_send(message)
		_serve()


func _initialize() -> void:
	for agent in get_tree().get_nodes_in_group(&"AGENT"):
		var trained: bool = agent.control_mode == agent.ControlModes.TRAINING
		if agent.control_mode == agent.ControlModes.INHERIT_FROM_SYNC:
			trained = control_mode == ControlModes.TRAINING
		agent.set_heuristic("model" if trained else "human")
		if trained:
			agents_training.append(agent)


func connect_to_server(port: int) -> bool:
	var deadline := Time.get_ticks_msec() + 1000 * CONNECT_SECONDS
	while Time.get_ticks_msec() < deadline:
		_stream = StreamPeerTCP.new()
		if _stream.connect_to_host("127.0.0.1", port) == OK:
			while _stream.get_status() == StreamPeerTCP.STATUS_CONNECTING:
				_stream.poll()
				OS.delay_msec(1)
			if _stream.get_status() == StreamPeerTCP.STATUS_CONNECTED:
				_stream.set_no_delay(true)
				return true
		OS.delay_msec(50)
	return false


## Answer the client until it lets the game run on.
func _serve() -> void:
	_state = State.IDLE
	while _state == State.IDLE:
		var message: Variant = _receive()
		if not message is Dictionary or not handle_message(message):
			get_tree().quit()
			return


## Do what a message asks; false where it asks for the end.
func handle_message(message: Dictionary) -> bool:
	match message.get("type"):
		"handshake":
			pass
		"env_info":
			_send(
				{
					"type": "env_info",
					"observation_space": _ask(&"get_obs_space"),
					"action_space": _ask(&"get_action_space"),
					"n_agents": agents_training.size(),
					"agent_policy_names": agents_training.map(func(agent): return agent.policy_name),
				}
			)
		"reset":
			for agent in agents_training:
				agent.needs_reset = true
			_state = State.RESET
		"action":
			var actions: Array = message["action"]
			for index in agents_training.size():
				agents_training[index].set_action(actions[index])
			_ticks = 0
			_state = State.STEP
		"call":
			_send({"type": "call", "returns": _ask(StringName(str(message["method"])))})
		_:
			return false
	return true


func _ask(method: StringName) -> Array:
	return agents_training.map(func(agent): return agent.call(method))


## Wait for a message, in the kernel; null if the client is gone.
func _receive() -> Variant:
	var head: Array = _stream.get_data(4)
	if head[0] != OK:
		return null
	var body: Array = _stream.get_data((head[1] as PackedByteArray).decode_u32(0))
	return JSON.parse_string((body[1] as PackedByteArray).get_string_from_utf8())


func _send(message: Dictionary) -> void:
	var body := JSON.stringify(message, "", false, true).to_utf8_buffer()
	var framed := PackedByteArray()
	framed.resize(4)
	framed.encode_u32(0, body.size())
	framed.append_array(body)
	_stream.put_data(framed)


func _get_args() -> Dictionary:
	var found := {}
	for argument in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if argument.begins_with("--") and "=" in argument:
			found[argument.get_slice("=", 0).substr(2)] = argument.substr(argument.find("=") + 1)
	return found
