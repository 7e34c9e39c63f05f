extends RefCounted
## Keeps a project's own Sync node from connecting, pausing and polling, whatever its version.
##
## The node keeps its script, as a subclass of it made here: whoever holds it by type still does,
## its settings stay, and what it sets for the game (ticks per second in an override, control modes,
## heuristics) is still set by its own `_initialize()`.

## What the subclass does instead, by method; methods that the script lacks are left out.
const INSTEAD := {
	&"_ready": "pass",
	&"_process": "pass",
	&"_physics_process": "pass",
	&"_handshake": "pass",
	&"_send_env_info": "pass",
	&"_set_seed": "pass",
	&"_initialize_inference_agents": "pass",
	&"_initialize_demo_recording": "pass",
	&"_get_args": "return {}",
	&"_get_speedup": "return 1",
	&"connect_to_server": "return true",
}
const NEEDED: Array[StringName] = [&"_ready", &"_process", &"_physics_process"]

static var _known: Dictionary = {}
static var _subclasses: Dictionary = {}


## Whether a node is a Sync of godot-rl, a subclass of one, or one made to the same pattern.
static func is_sync(node: Node) -> bool:
	var script := node.get_script() as GDScript
	if script == null:
		return false
	if not _known.has(script):
		_known[script] = _is_sync_script(script)
	return _known[script]


static func _is_sync_script(script: GDScript) -> bool:
	var methods := {}
	for method in script.get_script_method_list():
		methods[method["name"]] = true
	if methods.has("connect_to_server") and methods.has("handle_message"):
		return true
	var named := false
	var base := script
	while base != null:
		if base.get_global_name() == &"Sync" or base.resource_path.get_file().to_lower() == "sync.gd":
			named = true
		base = base.get_base_script() as GDScript
	if not named:
		return false
	for property in script.get_script_property_list():
		if property["name"] == "action_repeat":
			return true
	return false


## Put the silent subclass in the script's place. Call it before the node is ready.
static func silence(node: Node) -> void:
	var script: GDScript = node.get_script()
	if not _subclasses.has(script):
		_subclasses[script] = _subclass(script)
	var kept := {}
	for property in node.get_property_list():
		if property["usage"] & PROPERTY_USAGE_SCRIPT_VARIABLE:
			kept[property["name"]] = node.get(property["name"])
	node.set_script(_subclasses[script])
	if _subclasses[script] != null:
		for property: String in kept:
			node.set(property, kept[property])
		node.set_process(false)
		node.set_physics_process(false)


static func _subclass(script: GDScript) -> GDScript:
	if script.resource_path == "" or "::" in script.resource_path:
		return null
	for chosen: Array in [INSTEAD.keys(), NEEDED]:
		var made := GDScript.new()
		made.source_code = _source(script, chosen)
		if made.reload() == OK:
			return made
	return null


static func _source(script: GDScript, chosen: Array) -> String:
	var lines := ['extends "%s"' % script.resource_path.c_escape()]
	var done := {}
	for method in script.get_script_method_list():
		var name := StringName(method["name"])
		if name in chosen and not done.has(name):
			done[name] = true
			lines.append("func %s%s:\n\t%s" % [name, _signature(method), INSTEAD[name]])
	return "\n".join(lines) + "\n"


static func _signature(method: Dictionary) -> String:
	var given: Array = method["args"]
	var optional: int = given.size() - (method["default_args"] as Array).size()
	var texts := PackedStringArray()
	for index in given.size():
		texts.append("_given_%d%s" % [index, "" if index < optional else " = null"])
	return "(%s)%s" % [", ".join(texts), _returned(method["return"])]


static func _returned(value: Dictionary) -> String:
	if value["type"] == TYPE_NIL:
		return "" if value["usage"] & PROPERTY_USAGE_NIL_IS_VARIANT else " -> void"
	if value["type"] == TYPE_OBJECT:
		return ""
	return " -> %s" % type_string(value["type"])


## The agents that a client plays, in the order in which this Sync would play them.
static func agents_of(sync: Node, tree: SceneTree) -> Array[Node]:
	var found: Array = []
	if sync != null and sync.get_script() != null and sync.has_method(&"_initialize"):
		_set_training(sync)
		sync.call(&"_initialize")
		for name: StringName in [&"agents_training", &"agents"]:
			if name in sync and sync.get(name) is Array:
				found = sync.get(name)
				break
	if found.is_empty():
		found = tree.get_nodes_in_group(&"AGENT")
		for agent: Node in found:
			if agent.has_method(&"set_heuristic"):
				agent.call(&"set_heuristic", "model")
	var agents: Array[Node] = []
	for agent: Variant in found:
		if agent is Node and agent.has_method(&"get_obs") and agent.has_method(&"set_action"):
			agents.append(agent)
	return agents


## A Sync left in a mode for people or for a trained model would leave no agent to the client.
static func _set_training(sync: Node) -> void:
	var script: Script = sync.get_script()
	while script != null:
		var modes: Variant = script.get_script_constant_map().get("ControlModes")
		if modes is Dictionary and modes.has("TRAINING") and &"control_mode" in sync:
			sync.set(&"control_mode", modes["TRAINING"])
			return
		script = script.get_base_script()


static func action_repeat_of(sync: Node, otherwise: int) -> int:
	if sync != null and &"action_repeat" in sync:
		return maxi(1, int(sync.get(&"action_repeat")))
	return otherwise


## Plugins before 0.7 read the reward before the observation.
static func reads_reward_first(sync: Node) -> bool:
	return sync != null and &"agents" in sync and not &"agents_training" in sync
