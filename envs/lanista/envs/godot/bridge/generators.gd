extends RefCounted
## Seeds the random number generators that a game holds, which seed() does not reach.

static var _names: Dictionary = {}


## Seed every generator held by a variable of a node's script, each differently, from one seed.
static func reseed(root: Node, world_seed: int) -> void:
	var waiting: Array[Node] = [root]
	while not waiting.is_empty():
		var node: Node = waiting.pop_back()
		waiting.append_array(node.get_children())
		var script: Script = node.get_script()
		if script == null:
			continue
		for name: StringName in _candidates(script):
			var held: Variant = node.get(name)
			if held is RandomNumberGenerator:
				held.seed = hash([world_seed, str(node.get_path()), name])


static func _candidates(script: Script) -> Array[StringName]:
	if _names.has(script):
		return _names[script]
	var found: Array[StringName] = []
	for property in script.get_script_property_list():
		var untyped: bool = (
			property["type"] == TYPE_NIL and property["usage"] & PROPERTY_USAGE_SCRIPT_VARIABLE
		)
		if untyped or property["class_name"] == &"RandomNumberGenerator":
			found.append(property["name"])
	_names[script] = found
	return found
