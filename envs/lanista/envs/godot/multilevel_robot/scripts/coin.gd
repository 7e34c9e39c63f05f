extends Node3D
## A coin: taken by touch, once in each try at its level.

const RADIUS := 0.6

var taken := false


func take() -> void:
	taken = true
	visible = false
