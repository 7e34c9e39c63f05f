extends Node2D

# Counts what survives an episode, which only a freshly loaded scene forgets.
var episodes := 0
