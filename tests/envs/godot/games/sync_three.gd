extends Node

# A Sync node that speaks the plain protocol in the shape of version 0.3: one space for all agents.

@export var action_repeat := 8
@export var speed_up := 1

var stream: StreamPeerTCP
var connected := false
var agents: Array
var wants_frame := false
var was_reset := false
var ticks := 0


func _ready():
	await get_tree().root.ready
	get_tree().paused = true
	_initialize()
	await get_tree().create_timer(0.3).timeout
	get_tree().paused = false


func _initialize():
	agents = get_tree().get_nodes_in_group("AGENT")
	Engine.physics_ticks_per_second = _get_speedup() * 60
	Engine.time_scale = _get_speedup()
	connected = connect_to_server()
	_set_heuristic("model" if connected else "human")
	if connected:
		_handshake()
		_send_env_info()
	_set_seed()
	action_repeat = str(argument("action_repeat", action_repeat)).to_int()


func _set_heuristic(heuristic):
	for agent in agents:
		agent.set_heuristic(heuristic)


func argument(name: String, otherwise):
	for given in OS.get_cmdline_args():
		if given.begins_with("--%s=" % name):
			return given.get_slice("=", 1)
	return otherwise


func _get_speedup():
	return str(argument("speedup", speed_up)).to_int()


func _set_seed():
	seed(str(argument("env_seed", 1)).to_int())


func connect_to_server():
	OS.delay_msec(300)
	stream = StreamPeerTCP.new()
	stream.connect_to_host("127.0.0.1", str(argument("port", 11008)).to_int())
	while stream.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		stream.poll()
	stream.set_no_delay(true)
	return stream.get_status() == StreamPeerTCP.STATUS_CONNECTED


func _handshake():
	read_message()


func _send_env_info():
	read_message()
	send(spaces())


func spaces() -> Dictionary:
	return {
		"type": "env_info",
		"observation_space": agents[0].get_obs_space(),
		"action_space": agents[0].get_action_space(),
		"n_agents": len(agents),
	}


func read_message() -> Dictionary:
	while stream.get_available_bytes() == 0:
		stream.poll()
		if stream.get_status() != StreamPeerTCP.STATUS_CONNECTED:
			get_tree().quit()
			return {"type": "close"}
		OS.delay_usec(20)
	return JSON.parse_string(stream.get_string())


func send(message: Dictionary):
	stream.put_string(JSON.stringify(message))


func _physics_process(_delta):
	ticks += 1
	if not connected or (ticks - 1) % action_repeat != 0:
		return
	get_tree().paused = true
	if was_reset:
		was_reset = false
		send(with_info({"type": "reset", "obs": column("get_obs")}))
		get_tree().paused = false
		return
	if wants_frame:
		wants_frame = false
		var frame := {"type": "step", "reward": column("get_reward"), "done": column("get_done")}
		column("zero_reward")
		column("set_done_false")
		frame["obs"] = column("get_obs")
		send(with_info(frame))
	handle_message()
	get_tree().paused = false


func with_info(frame: Dictionary) -> Dictionary:
	return frame


func column(method: String) -> Array:
	return agents.map(func(agent): return agent.call(method))


func handle_message():
	while true:
		var message := read_message()
		match message["type"]:
			"reset":
				for agent in agents:
					agent.needs_reset = true
				was_reset = true
				return
			"action":
				for index in len(agents):
					agents[index].set_action(message["action"][index])
				wants_frame = true
				return
			"call":
				send({"type": "call", "returns": column(message["method"])})
			_:
				connected = false
				get_tree().quit()
				return
