extends Node
## Loads every script named in load_check.json inside the running project, writes what the engine
## found to load_check_found.json, and ends.

const FOLDER: String = "res://__lanista__/"


func _ready() -> void:
	var asked: Array = JSON.parse_string(FileAccess.get_file_as_string(FOLDER + "load_check.json"))
	var found: Dictionary = {}
	var held: Array[Resource] = []
	for entry: Dictionary in asked:
		var path: String = entry["path"]
		if "::" in path:
			held.append(load(path.get_slice("::", 0)))
		var script: GDScript = load(path) as GDScript
		if script == null:
			found[path] = {"loaded": false, "methods": {}}
			continue
		var methods: Dictionary = {}
		for owner: String in entry["classes"]:
			var inner: GDScript = _inner(script, owner)
			methods[owner] = null if inner == null else _own_methods(inner)
		var loaded: bool = script.can_instantiate() or script.is_abstract()
		found[path] = {"loaded": loaded, "methods": methods}
	var file: FileAccess = FileAccess.open(FOLDER + "load_check_found.json", FileAccess.WRITE)
	if file != null:
		var _written: bool = file.store_string(JSON.stringify(found))
		file.close()
	get_tree().quit()


func _inner(script: GDScript, owner: String) -> GDScript:
	var found: GDScript = script
	for part: String in owner.split(".", false):
		if found == null:
			return null
		var value: Variant = found.get_script_constant_map().get(StringName(part))
		found = value if value is GDScript else null
	return found


func _own_methods(script: GDScript) -> Array[String]:
	var names: Array[String] = []
	for method: Dictionary in script.get_script_method_list():
		names.append(str(method["name"]))
	var base: Script = script.get_base_script()
	if base != null:
		for method: Dictionary in base.get_script_method_list():
			names.erase(str(method["name"]))
	return names
