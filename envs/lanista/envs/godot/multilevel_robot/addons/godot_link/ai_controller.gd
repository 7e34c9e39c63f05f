extends Node
## One agent as godot-rl knows it: what a client may ask of it, and how its episode stands.
##
## A game's own controller extends this, says what is seen and done, and ends episodes with finish().

enum ControlModes { INHERIT_FROM_SYNC, HUMAN, TRAINING }

@export var control_mode := ControlModes.INHERIT_FROM_SYNC
@export var policy_name := "shared_policy"

## "human" takes the keyboard's wishes, "model" those of a client.
var heuristic := "human"
## The episode is over; `truncated` says whether the clock cut it.
var done := false
var truncated := false
## The game is asked to begin the next episode at its next tick.
var needs_reset := false
var reward := 0.0
var n_steps := 0


func _ready() -> void:
	add_to_group(&"AGENT")


func set_heuristic(value: String) -> void:
	heuristic = value


func get_obs_space() -> Dictionary:
	return {"obs": {"size": [(get_obs()["obs"] as Array).size()], "space": "box"}}


func get_obs() -> Dictionary:
	return {"obs": []}


func get_action_space() -> Dictionary:
	return {}


func set_action(_action: Dictionary) -> void:
	pass


func get_reward() -> float:
	return reward


func zero_reward() -> void:
	reward = 0.0


func get_info() -> Dictionary:
	return {}


func get_done() -> bool:
	return done


func set_done_false() -> void:
	done = false


## Begin to count anew.
func reset() -> void:
	n_steps = 0
	needs_reset = false


## End the episode with a last reward; the next begins at the next tick.
func finish(last_reward: float, by_clock := false) -> void:
	reward += last_reward
	done = true
	truncated = by_clock
	needs_reset = true
