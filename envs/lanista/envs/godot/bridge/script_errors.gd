extends RefCounted
## Collects what the game's scripts raise, in step with the frames (engines of 4.5 and later).

const KEPT := 20
## Compiled here and not a file of its own, since older engines have no class to extend.
const LOGGER := """extends Logger

var texts := PackedStringArray()
var _lock := Mutex.new()


func _log_error(
	function: String, file: String, line: int, code: String, rationale: String,
	_notify: bool, kind: int, _backtraces: Array[ScriptBacktrace]
) -> void:
	if kind != ERROR_TYPE_SCRIPT:
		return
	_lock.lock()
	if texts.size() < %d:
		texts.append("%%s (%%s:%%d in %%s)" %% [rationale if rationale else code, file, line, function])
	_lock.unlock()


func take() -> PackedStringArray:
	_lock.lock()
	var taken := texts
	texts = PackedStringArray()
	_lock.unlock()
	return taken
"""

var _logger: Object = null


func start() -> void:
	if not ClassDB.class_exists(&"Logger"):
		return
	var script := GDScript.new()
	script.source_code = LOGGER % KEPT
	if script.reload() == OK:
		_logger = script.new()
		OS.call(&"add_logger", _logger)


func take() -> PackedStringArray:
	return _logger.call(&"take") if _logger != null else PackedStringArray()
