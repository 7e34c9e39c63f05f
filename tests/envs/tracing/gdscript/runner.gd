extends SceneTree

var trace: GDScript = load("res://trace.gd")
var calls: PackedInt32Array

# Loads each case in each of its forms, calls run(), and prints what was recorded and returned.


func _initialize() -> void:
	for form in ["plain", "hooked", "lambdas"]:
		for file in DirAccess.get_files_at("res://" + form):
			trace.calls = PackedInt32Array()
			calls = PackedInt32Array()
			var script: GDScript = load("res://%s/%s" % [form, file])
			var line := {"form": form, "name": file.get_basename(), "loaded": false}
			if script != null and (script.can_instantiate() or script.is_abstract()):
				line.loaded = true
				line.returned = var_to_str(_run(script))
				line.methods = preload("res://methods.gd").of(script)
			line.calls = calls
			print("CASE " + JSON.stringify(line))
	quit()


func _run(script: GDScript) -> Variant:
	for method in script.get_script_method_list():
		if method.name == "run" and method.flags & METHOD_FLAG_STATIC:
			var made: Variant = script.call("run")
			calls = trace.calls.duplicate()
			return made
	var object: Object = script.new()
	if object is Node:
		root.add_child(object)
	var returned: Variant = object.run()
	calls = trace.calls.duplicate()
	if object is not RefCounted:
		object.free()
	return returned
