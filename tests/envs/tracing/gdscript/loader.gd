extends SceneTree

# Compiles the text of each file under res://texts and prints whether it could and what it has.


func _initialize() -> void:
	for file in DirAccess.get_files_at("res://texts"):
		var script := GDScript.new()
		script.source_code = FileAccess.get_file_as_string("res://texts/" + file)
		var line := {"name": file.get_basename(), "loaded": script.reload() == OK}
		if line.loaded:
			line.methods = preload("res://methods.gd").of(script)
		print("CASE " + JSON.stringify(line))
	quit()
