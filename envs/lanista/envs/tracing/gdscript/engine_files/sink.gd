@tool
extends Shortcut
## Gives calls.tres the one array that calls are recorded in.
##
## A hook is `preload("calls.tres").events.append(id)`, and the engine works out the constant part,
## up to the array itself, when it compiles the hook. Nothing then holds the resource, which may be
## freed and loaded anew: so the array belongs to the script, and every resource shares it.

static var _calls: Array = []


static func _static_init() -> void:
	_start.call_deferred()


static func _start() -> void:
	# Not by preload: trace.gd preloads calls.tres, and resources that load each other come out twice.
	var trace: GDScript = load("res://__lanista__/trace.gd") as GDScript
	var _nothing: Variant = trace.call(&"watch")


func _init() -> void:
	events = _calls
