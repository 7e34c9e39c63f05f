extends "res://controller.gd"

enum ControlModes { INHERIT_FROM_SYNC, HUMAN, TRAINING, ONNX_INFERENCE }

const Hit := preload("hit.gd")

var control_mode := ControlModes.INHERIT_FROM_SYNC
var policy_name := "runners"
var runner: Node2D
var pleas := {}
var broken := ""
var truncated := false


func get_obs():
	Hit.hit(10)
	if broken == "short":
		return {"obs": [0.0]}
	if broken == "vector":
		return {"obs": [Vector2.ONE, 0.0, 0.0, 0.0]}
	if broken == "null":
		return runner.nowhere.place
	return {"obs": [runner.place, float(n_steps), runner.gem, heuristic == "model"]}


func get_reward():
	return reward


func get_info():
	return {"level": runner.level} if runner.level != "none" else {}


func get_action_space():
	return {
		"move": {"size": 1, "action_type": "continuous"},
		"look": {"size": 3, "action_type": "discrete"},
	}


func set_action(action):
	Hit.hit(11)
	runner.wish = clampf(action["move"][0], -1.0, 1.0)


func lanista_reset(world_seed, options):
	pleas = {"seed": world_seed, "options": options.duplicate()}
	runner.level = options.get("level", "none")


func what_was_asked():
	return [pleas.get("seed", 0), pleas.get("options", {}).get("level", "")]


func first_place():
	return runner.first


func ticks_a_second():
	return [Engine.physics_ticks_per_second, Engine.time_scale]


func episodes():
	return runner.get_parent().episodes


func be_rude():
	runner.manners = "rude"


func be_cut():
	runner.manners = "cut"


func be_reloading():
	runner.manners = "reload"


func be_silent():
	runner.manners = "silent reload"


func be_deaf():
	runner.serves = false


func pause():
	get_tree().paused = true


func said_to_the_root():
	return runner.get_parent().told


func stumble():
	return runner.nowhere.place


func send_little():
	broken = "short"


func send_vectors():
	broken = "vector"


func send_nothing():
	broken = "null"


func die():
	OS.kill(OS.get_process_id())


func leave():
	get_tree().quit(7)
	OS.delay_msec(100)


func freeze():
	while true:
		OS.delay_msec(50)


func gorge():
	var eaten := []
	while true:
		var meal := PackedByteArray()
		meal.resize(8 << 20)
		meal.fill(1)
		eaten.append(meal)


func vanish():
	queue_free()


func overflow():
	load("res://__lanista__/trace.gd").truncated = true
