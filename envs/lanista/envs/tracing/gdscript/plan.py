"""The plan of a recording: a project's catalogue, and what each function's hook appends."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function, Scheme
from lanista.envs.tracing.gdscript.inventory import ClassKey, Inventory, Script
from lanista.envs.tracing.gdscript.parsing import ScriptFunction
from lanista.envs.tracing.gdscript.scope import GodotScope

Place = tuple[str, int]
"""A script's key and the byte offset of a function's body in it."""


@dataclass(frozen=True)
class Rule:
    """Which id a function appends when it is entered.

    Attributes:
        default: The id where the concrete class does not matter or is unknown; ``None`` for none.
        by_class: The id for each class below its own that inherits it.
    """

    default: int | None
    by_class: dict[ClassKey, int | None] = field(default_factory=dict)

    @property
    def varies(self) -> bool:
        """Whether the concrete class has to be looked up."""
        return any(value != self.default for value in self.by_class.values())

    @property
    def always(self) -> bool:
        """Whether every call is recorded, of whatever class the object is."""
        return self.default is not None and None not in self.by_class.values()


@dataclass(frozen=True)
class Plan:
    """What to record.

    Attributes:
        catalogue: The functions and their ids.
        rules: What to append where; places without one get no hook.
        definitions: By id: ``module:Owner.function`` of where the function is written, which a
            pattern of the scope matches.
    """

    catalogue: Catalogue
    rules: dict[Place, Rule]
    definitions: tuple[str, ...]

    @cached_property
    def rows(self) -> tuple[Rule, ...]:
        """The distinct rules that look at the concrete class, in the order of their places."""
        found: dict[tuple[object, ...], Rule] = {}
        for _, rule in sorted(self.rules.items(), key=lambda item: item[0]):
            if rule.varies:
                found.setdefault(_identity(rule), rule)
        return tuple(found.values())

    @cached_property
    def _numbers(self) -> dict[tuple[object, ...], int]:
        return {_identity(rule): number for number, rule in enumerate(self.rows)}

    def row(self, rule: Rule) -> int:
        """Return the number of a rule among :attr:`rows`."""
        return self._numbers[_identity(rule)]


def make_plan(inventory: Inventory, scope: GodotScope, scheme: Scheme, *, lambdas: bool) -> Plan:
    """Make the plan of a project; the same in every process.

    Args:
        inventory: The project's scripts.
        scope: What is recorded.
        scheme: ``definition``, or ``class``: an inherited method is recorded under the class of
            the object's script. A method that the class overrides keeps the name of its definition
            when ``super`` calls it. Static functions and lambdas have no class to tell apart.
        lambdas: Whether lambdas are recorded.

    Raises:
        InputError: If a pattern matches nothing, or the scheme is neither of the two.
    """
    if scheme not in ("definition", "class"):
        raise InputError(f"Godot games are recorded by definition or class, not by {scheme!r}.")
    defined = [
        (script, function)
        for script in inventory.scripts
        for function in script.parsed.functions
        if function.offset >= 0 and (lambdas or function.kind != "lambda")
    ]
    names = [(script.module, f"{script.owner}.{item.qualname}") for script, item in defined]
    unmatched = scope.unmatched(names)
    if unmatched:
        raise InputError(*(f"Pattern {item!r} matches no function." for item in unmatched))
    chosen = [
        item for item, name in zip(defined, names, strict=True) if scope.takes(name[0], name[1])
    ]
    entries = _named(inventory, chosen, scheme)
    kept = scope.select(function.name for function, _, _ in entries)
    catalogue = Catalogue.of((item for item, _, _ in entries if item.name in kept), scheme)
    ids = {function.name: number for number, function in enumerate(catalogue.functions)}
    rules: dict[Place, Rule] = {}
    # Those of the definitions come first, and the classes below are added to them.
    for function, place, key in entries:
        number = ids.get(function.name)
        if key is None:
            rules[place] = Rule(number)
        else:
            rules[place].by_class[key] = number
    written = {
        (script.key, item.offset): f"{script.module}:{script.owner}.{item.qualname}"
        for script, item in chosen
    }
    definitions = {ids[item.name]: written[at] for item, at, _ in entries if item.name in ids}
    return Plan(
        catalogue,
        {at: rule for at, rule in rules.items() if _records(rule)},
        tuple(definitions[number] for number in range(len(catalogue))),
    )


def _named(
    inventory: Inventory, chosen: list[tuple[Script, ScriptFunction]], scheme: Scheme
) -> list[tuple[Function, Place, ClassKey | None]]:
    """Name every function, and under ``class`` every class that inherits it; names are unique."""
    named: list[tuple[str, str, Script, ScriptFunction, ClassKey | None]] = []
    for script, item in chosen:
        name = f"{script.module}:{script.owner}.{item.qualname}"
        named.append((name, script.class_name(item.owners), script, item, None))
    if scheme == "class":
        below = _below(inventory)
        own = _own_names(inventory)
        for script, item in chosen:
            if item.static or item.kind == "lambda":
                continue
            here = (script.key, item.owners)
            for sub in below.get(here, ()):
                if _overridden(inventory, own, sub, here, item.name):
                    continue
                concrete = inventory.classes[sub]
                owner = concrete.class_name(sub[1])
                named.append((f"{concrete.module}:{owner}.{item.name}", owner, script, item, sub))
    seen: dict[str, int] = {}
    entries: list[tuple[Function, Place, ClassKey | None]] = []
    for name, owner, script, item, key in named:
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        function = Function(unique, script.file, item.line, owner)
        entries.append((function, (script.key, item.offset), key))
    return entries


def _below(inventory: Inventory) -> dict[ClassKey, list[ClassKey]]:
    found: dict[ClassKey, list[ClassKey]] = {}
    for key in sorted(inventory.classes):
        for ancestor in inventory.ancestors(key):
            found.setdefault(ancestor, []).append(key)
    return found


def _own_names(inventory: Inventory) -> dict[ClassKey, set[str]]:
    found: dict[ClassKey, set[str]] = {key: set() for key in inventory.classes}
    for script in inventory.scripts:
        for item in script.parsed.functions:
            if item.kind != "lambda":
                found.setdefault((script.key, item.owners), set()).add(item.name)
    return found


def _overridden(
    inventory: Inventory,
    own: dict[ClassKey, set[str]],
    key: ClassKey,
    owner: ClassKey,
    name: str,
) -> bool:
    return any(name in own.get(item, ()) for item in _until(inventory, key, owner))


def _until(inventory: Inventory, key: ClassKey, owner: ClassKey) -> Iterator[ClassKey]:
    yield key
    for item in inventory.ancestors(key):
        if item == owner:
            return
        yield item


def _identity(rule: Rule) -> tuple[object, ...]:
    return rule.default, tuple(sorted(rule.by_class.items()))


def _records(rule: Rule) -> bool:
    return rule.default is not None or any(item is not None for item in rule.by_class.values())
