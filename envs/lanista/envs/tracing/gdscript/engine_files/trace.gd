@tool
extends RefCounted
## The calls recorded in this copy of the project, and how they are taken out.
##
## A hook appends its function's id to the one array that calls.tres holds; see sink.gd. That takes a
## third of the time of a static variable of another script, and an Array's append returns nothing
## that a project could forbid to discard.

const SINK: Shortcut = preload("res://__lanista__/calls.tres")
const ROWS: Shortcut = preload("res://__lanista__/rows.tres")
const TABLES: GDScript = preload("res://__lanista__/tables.gd")

## Most calls kept between two drains; a trace longer than that is cut.
const LIMIT: int = 1 << 20

## The calls recorded since the last drain, oldest first; a copy.
static var calls: PackedInt32Array:
	get:
		var recorded: Array = SINK.events
		return PackedInt32Array(recorded)

## Whether the calls drained last were cut at LIMIT.
static var truncated: bool = false

## Whether a call came from another thread than the main one; such calls are not recorded.
static var other_threads: bool = false

static var _cut: bool = false
static var _editing: bool = Engine.is_editor_hint()
static var _watching: bool = false
static var _taken_regularly: bool = false


## Takes out the calls recorded since the last drain, oldest first.
static func drain() -> PackedInt32Array:
	# No call of the main thread comes in between, and other threads never append.
	# By a variable: the engine would convert the property itself once, when it compiles this.
	var recorded: Array = SINK.events
	truncated = _cut
	_cut = false
	if recorded.size() > LIMIT:
		truncated = true
		var _error: int = recorded.resize(LIMIT)
	var drained: PackedInt32Array = PackedInt32Array(recorded)
	recorded.clear()
	return drained


## Says that somebody drains from here on, who needs nobody to bound what is kept in between: a check
## in every frame is a good part of what recording costs.
static func take_regularly() -> void:
	_taken_regularly = true
	if _watching and not _editing:
		_watching = false
		(Engine.get_main_loop() as SceneTree).process_frame.disconnect(_check)


## Records a call if it comes from the main thread: the hook of projects that use threads.
static func enter(id: int) -> void:
	if OS.get_thread_caller_id() == OS.get_main_thread_id():
		SINK.events.append(id)
	else:
		other_threads = true


## Records a call of a function that several classes inherit, under the class of the object, if that
## is recorded: the hook of such functions where `find` in place does not do.
static func enter_as(row: int, object: Object) -> void:
	if OS.get_thread_caller_id() != OS.get_main_thread_id():
		other_threads = true
		return
	var script: Script = object.get_script()
	var ids: Dictionary = ROWS.events[row]
	var id: int = ids[script] if ids.has(script) else find(row, script)
	if id >= 0:
		SINK.events.append(id)


## Returns the id of a function that classes inherit under a script, and keeps it for the next time.
static func find(row: int, script: Variant) -> int:
	var concrete: Script = script
	var id: int = _find(row, concrete)
	ROWS.events[row][concrete] = id
	return id


## Bounds what is kept while nobody drains, and keeps nothing in the editor.
static func watch() -> void:
	var tree: SceneTree = Engine.get_main_loop() as SceneTree
	if tree != null and not _watching and (_editing or not _taken_regularly):
		_watching = true
		var _error: int = tree.process_frame.connect(_check)


static func _check() -> void:
	if _editing:
		SINK.events.clear()
	elif SINK.events.size() > LIMIT:
		_cut = true
		var _error: int = SINK.events.resize(LIMIT)


## Returns the id of a row for the nearest class at or above a script that the row tells apart.
static func _find(row: int, script: Script) -> int:
	var entry: Dictionary = TABLES.ROWS[row]
	var classes: Dictionary = entry["classes"]
	var current: Script = script
	while current != null:
		for key: String in classes:
			if _named(key) == current:
				return classes[key]
		current = current.get_base_script()
	return entry["id"]


## Returns the script of a key such as "res://a.gd" or "res://a.gd>Outer.Inner" if it is loaded.
static func _named(key: String) -> Script:
	var parts: PackedStringArray = key.split(">")
	if not ResourceLoader.has_cached(parts[0]):
		return null
	var found: Script = load(parts[0]) as Script
	if parts.size() > 1:
		for name: String in parts[1].split("."):
			if found == null:
				return null
			var value: Variant = found.get_script_constant_map().get(StringName(name))
			found = value if value is Script else null
	return found
