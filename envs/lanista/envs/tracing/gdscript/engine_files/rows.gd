@tool
extends Shortcut
## Gives rows.tres, in the way of sink.gd, one dictionary for each function that classes inherit: from
## a script to the id of the function under it, as far as it was called.

const TABLES: GDScript = preload("res://__lanista__/tables.gd")

static var _rows: Array = _empty()


static func _empty() -> Array:
	var rows: Array = []
	for _row: Dictionary in TABLES.ROWS:
		rows.append({})
	return rows


func _init() -> void:
	events = _rows
