extends Node2D

# Runs along a corridor; the door is at 3, the pit at -3. 0.1 a tick at full speed.

const Hit := preload("hit.gd")

var place := 0.0
var first := 0.0
var gem := 0.0
var wish := 0.0
var level := "none"
var dice := RandomNumberGenerator.new()
var manners := "polite"
var serves := true

@onready var controller: Node = $Controller


func _ready():
	Hit.hit(1)
	controller.runner = self
	spawn()
	first = place


func spawn():
	Hit.hit(2)
	place = randf_range(-1.0, 1.0)
	gem = dice.randf()
	get_parent().episodes += 1


func _physics_process(delta):
	if controller.needs_reset and serves:
		spawn()
		controller.reset()
		return
	place += wish * delta * 6.0
	if place > 3.0:
		finish(1.0)
	elif place < -3.0:
		finish(-1.0)


func finish(prize: float):
	Hit.hit(3)
	controller.reward += prize
	match manners:
		"polite":
			controller.done = true
			controller.needs_reset = true
		"rude":
			controller.done = true
			spawn()
			controller.reset()
		"cut":
			controller.truncated = true
			controller.needs_reset = true
		"reload":
			controller.done = true
			get_tree().reload_current_scene()
		"silent reload":
			get_tree().reload_current_scene()
