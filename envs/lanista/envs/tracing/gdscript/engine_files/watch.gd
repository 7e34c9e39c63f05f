@tool
extends RefCounted
## Starts the watch over the calls recorded. Whatever loads calls.tres loads this with it; it holds
## no reference back, as resources that load each other come out twice.


static func _static_init() -> void:
	_start.call_deferred()


static func _start() -> void:
	var trace: GDScript = load("res://__lanista__/trace.gd") as GDScript
	var _nothing: Variant = trace.call(&"watch")
