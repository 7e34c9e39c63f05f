extends RefCounted
## One agent (an AIController of any plugin version): its observations, and the end of its episodes.

const TERMINATED := 1
const TRUNCATED := 2
const HAS_FINAL := 4
const FINAL_EXACT := 8

var node: Node
var observation_space: Dictionary = {}
var action_space: Dictionary = {}
## How many numbers each part of the observation has.
var sizes: Dictionary = {}
## Whether a whole observation was looked at, and held numbers only.
var sends_numbers := false
var policy := "shared_policy"
## What it sees now, and saw last in an episode that ended; dictionaries of get_obs().
var seen: Variant = null
var final_seen: Variant = null
var reward := 0.0
## Flags of this step; 0 while the episode goes on.
var status := 0
var info: Dictionary = {}
## Why no frame can be sent; empty where nothing is wrong.
var problem := ""

var _id: int
var _has_done: bool
var _has_needs_reset: bool
var _has_truncated: bool
var _counts_steps: bool
var _reward_first: bool
var _steps_before := 0
## The game never answers needs_reset of this agent.
var _ignores_needs_reset := false
var _waited_before := false


func _init(agent: Node, reward_first: bool) -> void:
	node = agent
	_id = agent.get_instance_id()
	_reward_first = reward_first
	_has_done = &"done" in agent
	_has_needs_reset = &"needs_reset" in agent
	_has_truncated = &"truncated" in agent
	_counts_steps = &"n_steps" in agent and &"reset_after" in agent
	if &"policy_name" in agent:
		policy = str(agent.get(&"policy_name"))


func is_alive() -> bool:
	return is_instance_id_valid(_id)


func is_done() -> bool:
	return _has_done and is_instance_id_valid(_id) and node.done


func learn_spaces() -> void:
	observation_space = _dictionary(node.call(&"get_obs_space"))
	action_space = _dictionary(node.call(&"get_action_space"))
	for part: String in observation_space:
		sizes[part] = _size(observation_space[part])


## Take over from the same agent of a scene that is gone; `in_step` if that went in mid-step.
func follow(other: RefCounted, in_step: bool) -> void:
	observation_space = other.observation_space
	action_space = other.action_space
	sizes = other.sizes
	if not in_step:
		return
	if other.status == 0:
		# The game left the scene without a word: the episode is over by its rules.
		status = TERMINATED
		return
	status = other.status
	reward = other.reward
	info = other.info
	final_seen = other.final_seen


func waits_for_reset() -> bool:
	return (
		_has_needs_reset
		and not _ignores_needs_reset
		and is_instance_id_valid(_id)
		and bool(node.get(&"needs_reset"))
	)


## Notice the end of the episode at the first sign of it, and keep what the agent saw then.
##
## Called in every tick, so it does no more than it must.
func watch() -> void:
	if status != 0:
		return
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	var steps: int = node.n_steps if _counts_steps else 0
	if (
		(_has_done and node.done)
		or (_has_needs_reset and node.needs_reset and not _ignores_needs_reset)
		or (_has_truncated and node.truncated)
	):
		_end_episode(_has_done and node.done, waits_for_reset(), _limit_fired())
	elif steps < _steps_before and _limit_fired():
		# A controller that answers its own limit at once shows it only by counting from the start.
		_end_episode(false, false, true)
	_steps_before = steps


func _limit_fired() -> bool:
	if not _counts_steps:
		return false
	var steps: int = node.n_steps
	var highest := _steps_before + 1 if steps < _steps_before else steps
	var limit: int = node.reset_after
	return highest == limit or highest == limit + 1


func _end_episode(done: bool, waits: bool, limit_fired: bool) -> void:
	var cut := limit_fired or not done
	if _counts_steps:
		_steps_before = node.n_steps
	if node.has_method(&"get_truncated"):
		cut = bool(node.call(&"get_truncated"))
	elif _has_truncated:
		cut = bool(node.truncated) or cut
		node.truncated = false
	_collect()
	final_seen = seen
	status = (TRUNCATED if cut else TERMINATED) | HAS_FINAL
	if waits:
		status |= FINAL_EXACT
	_clear_done()


## Act, and forget the step before.
func begin_step(action: Variant) -> void:
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	if status != 0 and _waited_before and waits_for_reset():
		_ignores_needs_reset = true
	_waited_before = false
	status = 0
	final_seen = null
	node.call(&"set_action", action)


## Take what the step's end shows.
##
## Where the client resets the agent itself (`stops`), an episode that ended shows its last sight.
func finish_step(stops: bool) -> void:
	if status == 0:
		if not _has_done and is_alive() and node.has_method(&"get_done"):
			if bool(node.call(&"get_done")):
				_end_episode(true, waits_for_reset(), false)
				return
		_collect()
		return
	_waited_before = waits_for_reset()
	if stops and status & FINAL_EXACT:
		seen = final_seen
	else:
		look()


func begin_reset(world_seed: int, options: Dictionary) -> void:
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	# An action of the episode before must not push the first tick of the next.
	node.call(&"set_action", _neutral_action())
	if node.has_method(&"lanista_reset"):
		node.call(&"lanista_reset", world_seed, options)
	status = 0
	final_seen = null
	# Nothing is remembered from episodes before: a world is the same in each.
	_ignores_needs_reset = false
	if _has_needs_reset:
		node.set(&"needs_reset", true)
	else:
		reset_by_call()


## Reset an agent whose game does not answer `needs_reset`.
func reset_by_call() -> void:
	if node.has_method(&"reset"):
		node.call(&"reset")
	if _has_needs_reset:
		node.set(&"needs_reset", false)


func finish_reset() -> void:
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	_clear_done()
	if _has_truncated:
		node.truncated = false
	node.call(&"zero_reward")
	look()
	reward = 0.0


## Observe, without touching rewards and endings.
func look() -> void:
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	seen = node.call(&"get_obs")
	_read_info()
	if _counts_steps:
		_steps_before = node.n_steps


func _collect() -> void:
	if not is_instance_id_valid(_id):
		problem = "the game freed its controller"
		return
	if _reward_first:
		_take_reward()
		seen = node.call(&"get_obs")
	else:
		seen = node.call(&"get_obs")
		_read_info()
		_take_reward()


func _take_reward() -> void:
	var found: Variant = node.call(&"get_reward")
	if found is float or found is int:
		reward = found
	else:
		problem = "get_reward() gave %s" % [found]
	node.call(&"zero_reward")


func _read_info() -> void:
	if node.has_method(&"get_info"):
		var found: Variant = node.call(&"get_info")
		info = found if found is Dictionary else {}


func _clear_done() -> void:
	if node.has_method(&"set_done_false"):
		node.call(&"set_done_false")
	elif _has_done:
		node.set(&"done", false)


func _neutral_action() -> Dictionary:
	var action := {}
	for part: String in action_space:
		if action_space[part]["action_type"] == "discrete":
			action[part] = 0.0
		else:
			var zeros := []
			zeros.resize(int(action_space[part]["size"]))
			zeros.fill(0.0)
			action[part] = zeros
	return action


static func _size(space: Dictionary) -> int:
	if space.get("space", "box") == "discrete":
		return 1
	var lengths: Variant = space.get("size")
	if not lengths is Array:
		return int(lengths)
	var product := 1
	for length: Variant in lengths:
		product *= int(length)
	return product


static func _dictionary(found: Variant) -> Dictionary:
	return found if found is Dictionary else {}
