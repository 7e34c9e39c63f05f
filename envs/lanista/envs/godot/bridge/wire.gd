extends RefCounted
## Messages to and from the client: plain JSON, and the packed form of actions and frames.
##
## Each message is a little-endian uint32 byte count and that many bytes. See protocol.py for the
## packed form, whose layout is fixed there.

const Seat := preload("seat.gd")

const FRAME := 0x53  # S
const ACTIONS := 0x41  # A
const HAS_TRACE := 1
const TRACE_TRUNCATED := 2
const HEADER := 4 + 16

var _stream: StreamPeerTCP


## Connect to the client on this machine, waiting for it to listen; null if it never does.
static func connect_to_client(port: int, patience_msec: int) -> RefCounted:
	var deadline := Time.get_ticks_msec() + patience_msec
	while Time.get_ticks_msec() < deadline:
		var stream := StreamPeerTCP.new()
		if stream.connect_to_host("127.0.0.1", port) == OK:
			while stream.get_status() == StreamPeerTCP.STATUS_CONNECTING:
				stream.poll()
				OS.delay_usec(200)
			if stream.get_status() == StreamPeerTCP.STATUS_CONNECTED:
				stream.set_no_delay(true)
				return new(stream)
		OS.delay_msec(50)
	return null


func _init(stream: StreamPeerTCP) -> void:
	_stream = stream


func close() -> void:
	_stream.disconnect_from_host()


## Wait for the next message, in the kernel, without turning in a loop.
##
## Gives a Dictionary (JSON), a PackedByteArray (packed actions) or null (the client is gone).
func receive() -> Variant:
	var head: Array = _stream.get_data(4)
	if head[0] != OK:
		return null
	var size: int = (head[1] as PackedByteArray).decode_u32(0)
	var body: Array = _stream.get_data(size)
	if body[0] != OK:
		return null
	var bytes: PackedByteArray = body[1]
	if size > 0 and bytes[0] == ACTIONS:
		return bytes
	var message: Variant = JSON.parse_string(bytes.get_string_from_utf8())
	return message if message is Dictionary else {}


func send_json(message: Dictionary) -> void:
	_stream.put_data(_framed(JSON.stringify(message, "", false, true).to_utf8_buffer()))


## Actions by agent, part and element, shaped as JSON would have brought them.
func unpack_actions(bytes: PackedByteArray, seats: Array[Seat]) -> Array:
	var values := bytes.slice(1).to_float64_array()
	var actions := []
	var at := 0
	for seat in seats:
		var action := {}
		for part: String in seat.action_space:
			var space: Dictionary = seat.action_space[part]
			if space["action_type"] == "discrete":
				action[part] = values[at]
				at += 1
			else:
				var end := at + int(space["size"])
				action[part] = Array(values.slice(at, end))
				at = end
		actions.append(action)
	return actions


## Send what all agents see, in one write.
func send_frame(
	seats: Array[Seat], ticks: int, trace: Variant, missing: bool, errors: PackedStringArray
) -> void:
	var count := seats.size()
	var bytes := PackedByteArray()
	bytes.resize(HEADER + 8 * count + ((count + 3) & ~3))
	var finals := PackedByteArray()
	var infos := []
	var says_something := false
	for index in count:
		var seat := seats[index]
		bytes.encode_double(HEADER + 8 * index, seat.reward)
		bytes[HEADER + 8 * count + index] = seat.status
		infos.append(seat.info)
		says_something = says_something or not seat.info.is_empty()
		var packed: Variant = _packed(seat, seat.seen)
		if not packed is PackedByteArray:
			send_json({"type": "error", "error": "agent %d: %s" % [index, packed]})
			return
		bytes.append_array(packed)
		if seat.status & Seat.HAS_FINAL:
			packed = _packed(seat, seat.final_seen)
			if not packed is PackedByteArray:
				send_json({"type": "error", "error": "agent %d: %s" % [index, packed]})
				return
			finals.append_array(packed)
	bytes.append_array(finals)
	var flags := 0
	var calls := 0
	if trace != null:
		flags = HAS_TRACE | (TRACE_TRUNCATED if missing else 0)
		calls = (trace as PackedInt32Array).size()
		bytes.append_array((trace as PackedInt32Array).to_byte_array())
	var text := PackedByteArray()
	if says_something or not errors.is_empty():
		var extra := {"info": infos}
		if not errors.is_empty():
			extra["errors"] = errors
		text = JSON.stringify(extra, "", false, true).to_utf8_buffer()
		bytes.append_array(text)
	bytes.encode_u32(0, bytes.size() - 4)
	bytes[4] = FRAME
	bytes[5] = flags
	bytes.encode_u32(8, ticks)
	bytes.encode_u32(12, calls)
	bytes.encode_u32(16, text.size())
	_stream.put_data(bytes)


## Send a reset or step as the plugin's protocol 0.7 has it.
func send_plain_frame(kind: String, seats: Array[Seat], trace: Variant) -> void:
	var obs := []
	var rewards := []
	var dones := []
	var infos := []
	for seat in seats:
		obs.append(seat.seen)
		rewards.append(seat.reward)
		dones.append(seat.status != 0)
		var info := seat.info.duplicate()
		if trace != null:
			info["call_trace"] = trace
		if seat.status != 0:
			info["terminal_observation"] = seat.final_seen
			info["TimeLimit.truncated"] = seat.status & Seat.TRUNCATED != 0
		infos.append(info)
	var message := {"type": kind, "obs": obs, "info": infos}
	if kind == "step":
		message["reward"] = rewards
		message["done"] = dones
	send_json(message)


## The observation as float32 bytes, or a text that says what is wrong with it.
func _packed(seat: Seat, seen: Variant) -> Variant:
	if not seen is Dictionary:
		return "get_obs() gave %s, no dictionary (see the script's errors)" % [seen]
	var values := PackedFloat32Array()
	for part: String in seat.sizes:
		var value: Variant = seen.get(part)
		if not seat.sends_numbers:
			var odd: Variant = _odd_one(value)
			if odd != null:
				return "its observation %s holds %s, which is no number" % [part, odd]
		var numbers := _numbers(value)
		if numbers.size() != seat.sizes[part]:
			return (
				"its observation %s has %d numbers, and is declared with %d"
				% [part, numbers.size(), seat.sizes[part]]
			)
		# Never append to `numbers`: it may be the game's own array.
		values = numbers if values.is_empty() else values + numbers
	# Looking at each number once is enough: what a game sends keeps its types.
	seat.sends_numbers = true
	return values.to_byte_array()


static func _numbers(value: Variant) -> PackedFloat32Array:
	match typeof(value):
		TYPE_ARRAY:
			if value.is_empty() or not (value[0] is Array or typeof(value[0]) >= TYPE_PACKED_BYTE_ARRAY):
				return PackedFloat32Array(value)
			var flat := PackedFloat32Array()
			for item: Variant in value:
				flat.append_array(_numbers(item))
			return flat
		TYPE_PACKED_FLOAT32_ARRAY:
			return value
		TYPE_PACKED_FLOAT64_ARRAY, TYPE_PACKED_INT32_ARRAY, TYPE_PACKED_INT64_ARRAY, \
		TYPE_PACKED_BYTE_ARRAY:
			return PackedFloat32Array(Array(value))
		TYPE_FLOAT, TYPE_INT, TYPE_BOOL:
			return PackedFloat32Array([value])
	return PackedFloat32Array()


static func _odd_one(value: Variant) -> Variant:
	if value is Array:
		for item: Variant in value:
			var odd: Variant = _odd_one(item)
			if odd != null:
				return odd
		return null
	if value is float or value is int or value is bool or typeof(value) >= TYPE_PACKED_BYTE_ARRAY:
		return null
	return str(value)


static func _framed(body: PackedByteArray) -> PackedByteArray:
	var bytes := PackedByteArray()
	bytes.resize(4)
	bytes.encode_u32(0, body.size())
	bytes.append_array(body)
	return bytes
