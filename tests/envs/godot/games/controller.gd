extends Node2D

# What godot-rl calls an AIController, in the shape that all its versions share.

@export var reset_after := 1000

var heuristic := "human"
var done := false
var reward := 0.0
var n_steps := 0
var needs_reset := false


func _ready():
	add_to_group("AGENT")


func _physics_process(_delta):
	n_steps += 1
	if n_steps > reset_after:
		needs_reset = true


func get_obs_space():
	return {"obs": {"size": [len(get_obs()["obs"])], "space": "box"}}


func reset():
	n_steps = 0
	needs_reset = false


func set_heuristic(value):
	heuristic = value


func get_done():
	return done


func set_done_false():
	done = false


func zero_reward():
	reward = 0.0


func get_obs():
	return {"obs": []}
