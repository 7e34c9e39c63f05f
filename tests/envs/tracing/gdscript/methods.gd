extends RefCounted


# All functions of a script and its inner classes as [class chain, name], inherited ones left out.
static func of(script: GDScript, chain: Array = []) -> Array:
	var names: Array = script.get_script_method_list().map(func(method): return method.name)
	if script.get_base_script() != null:
		for method in script.get_base_script().get_script_method_list():
			names.erase(method.name)
	var found: Array = names.map(func(name): return [chain, name])
	var constants := script.get_script_constant_map()
	for name in constants:
		var inner: Variant = constants[name]
		if inner is GDScript and inner.resource_path.is_empty():
			found.append_array(of(inner, chain + [name]))
	return found
