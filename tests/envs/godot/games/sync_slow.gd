extends "res://sync_seven.gd"

# A project's own override: half the ticks per second, four of them per action, for people by default.


func _init():
	action_repeat = 4
	control_mode = ControlModes.HUMAN


func _initialize():
	super._initialize()
	Engine.physics_ticks_per_second = _get_speedup() * 30
