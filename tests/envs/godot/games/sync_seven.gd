extends "res://sync_three.gd"

# The same in the shape of version 0.7: a space for each agent, policies, control modes, info.

enum ControlModes { HUMAN, TRAINING, ONNX_INFERENCE }

@export var control_mode := ControlModes.TRAINING

var all_agents: Array
var agents_training: Array


func _initialize():
	all_agents = get_tree().get_nodes_in_group("AGENT")
	for agent in all_agents:
		if agent.control_mode == agent.ControlModes.INHERIT_FROM_SYNC:
			agent.control_mode = (
				agent.ControlModes.TRAINING
				if control_mode == ControlModes.TRAINING
				else agent.ControlModes.HUMAN
			)
		if agent.control_mode == agent.ControlModes.TRAINING:
			agents_training.append(agent)
	super()


func spaces() -> Dictionary:
	return {
		"type": "env_info",
		"observation_space": column("get_obs_space"),
		"action_space": column("get_action_space"),
		"n_agents": len(agents_training),
		"agent_policy_names": agents_training.map(func(agent): return agent.policy_name),
	}


func with_info(frame: Dictionary) -> Dictionary:
	frame["info"] = column("get_info")
	return frame
