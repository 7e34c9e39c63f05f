extends Node3D
## The scene that starts: as many arenas as asked for (`--agents=`), played by a client or a person.

const ArenaScene := preload("res://scenes/arena.tscn")
const Arena := preload("res://scripts/arena.gd")
const Display := preload("res://scripts/display.gd")

const ARENA_DISTANCE := 100.0


func _ready() -> void:
	var asked := {}
	for argument in OS.get_cmdline_args() + OS.get_cmdline_user_args():
		if argument.begins_with("--") and "=" in argument:
			asked[argument.get_slice("=", 0).substr(2)] = argument.substr(argument.find("=") + 1)
	var first_world := randi()
	if asked.has("env_seed"):
		first_world = str(asked["env_seed"]).to_int()
	var arena: Arena = null
	for index in maxi(1, str(asked.get("agents", "1")).to_int()):
		arena = ArenaScene.instantiate()
		arena.number = index
		arena.position.x = ARENA_DISTANCE * index
		add_child(arena)
		arena.prepare(first_world, asked)
	if not asked.has("port"):
		add_child(Display.new(arena))
