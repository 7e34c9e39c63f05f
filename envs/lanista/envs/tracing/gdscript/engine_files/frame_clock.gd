extends Node
## Times frames of a project that nobody plays, and counts its calls; an autoload of copies that are
## made to measure. Prints one line and ends the engine.

const MARK: String = "lanista-frame-clock "

var _warm_up: int = int(OS.get_environment("LANISTA_WARM_UP"))
var _block: int = int(OS.get_environment("LANISTA_BLOCK"))
var _blocks: int = int(OS.get_environment("LANISTA_BLOCKS"))
var _counting: bool = OS.get_environment("LANISTA_COUNTING") == "1"
var _trace: GDScript = load("res://__lanista__/trace.gd") as GDScript
var _frames: int = 0
var _began: int = 0
var _times: PackedInt64Array = PackedInt64Array()
var _calls: PackedInt32Array = PackedInt32Array()


func _ready() -> void:
	process_mode = Node.PROCESS_MODE_ALWAYS
	_trace.call(&"take_regularly")
	var _error: int = get_tree().process_frame.connect(_on_frame)


func _on_frame() -> void:
	var calls: PackedInt32Array = _trace.call(&"drain")
	_frames += 1
	if _frames <= _warm_up:
		_began = Time.get_ticks_usec()
		return
	if _counting:
		_calls.append_array(calls)
	if (_frames - _warm_up) % _block == 0:
		var now: int = Time.get_ticks_usec()
		var _full: bool = _times.append(now - _began)
		_began = now
	if _times.size() >= _blocks:
		_tell()


func _tell() -> void:
	var counts: Dictionary = {}
	for id: int in _calls:
		counts[id] = int(counts.get(id, 0)) + 1
	var told: Dictionary = {"times": Array(_times), "counts": counts}
	print(MARK, JSON.stringify(told))
	get_tree().quit()
