"""The plan of a recording: its static catalogue, and which id each definition appends."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function, Scheme
from lanista.envs.tracing.definitions import (
    Binding,
    ClassDefinition,
    Definition,
    ModuleDefinitions,
    read_code,
    read_tree,
)
from lanista.envs.tracing.modules import Module, find_modules
from lanista.envs.tracing.scope import Scope

ClassKey = tuple[str, str]
"""Module and qualified name of a class."""

EDGE_LIMIT = 500
"""Most functions that scheme ``edge`` takes: its catalogue holds every pair of them."""

OUTSIDE = "outside"
"""Caller, under scheme ``edge``, of a function that no recorded function called."""


@dataclass(frozen=True)
class Rule:
    """Which id a definition appends when it is entered.

    Attributes:
        default: The id where the concrete class does not matter or is unknown; ``None`` for none.
        by_class: The id for each concrete class that is told apart.
        binding: How the first argument tells the class.
    """

    default: int | None
    by_class: dict[ClassKey, int | None] = field(default_factory=dict)
    binding: Binding = "none"

    @property
    def varies(self) -> bool:
        """Whether the concrete class has to be looked up."""
        return any(value != self.default for value in self.by_class.values())

    @property
    def records(self) -> bool:
        """Whether any call of the definition is recorded."""
        return self.default is not None or any(v is not None for v in self.by_class.values())


@dataclass(frozen=True)
class Plan:
    """What to record.

    Attributes:
        scope: The scope it was made from.
        catalogue: The functions and their ids.
        modules: The modules with recorded functions or classes told apart, by name.
        rules: By module name and index of the definition. Under ``edge`` the id is the
            definition's number among the recorded ones.
        edges: Under ``edge``: ``edges[caller + 1][callee]`` is the id of a pair; row 0 is
            for calls from outside.
        owners: Qualified name of the class that each definition stands in, where it is in one.
        attributes: The name under which that class holds it.
        leaves: Classes of the scope that no other class of the scope derives from.
    """

    scope: Scope
    catalogue: Catalogue
    modules: dict[str, Module]
    rules: dict[tuple[str, int], Rule]
    edges: tuple[tuple[int, ...], ...] = ()
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    attributes: dict[tuple[str, int], str] = field(default_factory=dict)
    leaves: frozenset[ClassKey] = frozenset()


@lru_cache(maxsize=32)
def make_plan(scope: Scope, scheme: Scheme) -> Plan:
    """Make the plan of a scope; the same in every process.

    Raises:
        InputError: If a package isn't there, a pattern matches nothing, or the scheme is unknown.
    """
    if scheme not in ("definition", "class", "edge"):
        raise InputError(f"No scheme is named {scheme!r}; there are definition, class and edge.")
    return _Planner(scope, scheme).plan()


class _Planner:
    def __init__(self, scope: Scope, scheme: Scheme) -> None:
        self.scope = scope
        self.scheme: Scheme = scheme
        self.modules: dict[str, Module] = {}
        for root in scope.roots:
            self.modules |= find_modules(root)
        self.read: dict[str, ModuleDefinitions] = {}
        self.selected = sorted(name for name in self.modules if scope.takes_module(name))
        self.bases: dict[ClassKey, tuple[ClassKey, ...]] = {}

    def plan(self) -> Plan:
        chosen = [
            definition
            for name in self.selected
            for definition in self.definitions(name).functions
            if self.scope.takes(name, definition.qualname)
        ]
        self._check_patterns(chosen)
        if self.scheme == "edge":
            return self._edge_plan(chosen)
        entries = self._entries(chosen)
        kept = self.scope.select(function.name for function, _, _ in entries)
        catalogue = Catalogue.of(
            (function for function, _, _ in entries if function.name in kept), self.scheme
        )
        ids = {function.name: index for index, function in enumerate(catalogue.functions)}
        defaults: dict[tuple[str, int], int | None] = {}
        by_class: dict[tuple[str, int], dict[ClassKey, int | None]] = {}
        bindings: dict[tuple[str, int], Binding] = {}
        for function, definition, class_key in entries:
            place = (definition.module, definition.index)
            bindings[place] = definition.binding
            if class_key is None:
                defaults[place] = ids.get(function.name)
            else:
                by_class.setdefault(place, {})[class_key] = ids.get(function.name)
        rules = {
            place: Rule(default, by_class.get(place, {}), bindings[place])
            for place, default in defaults.items()
        }
        return self._finish(catalogue, rules)

    def definitions(self, name: str) -> ModuleDefinitions:
        """Return what a module defines, empty for a compiled extension."""
        if name not in self.read:
            module = self.modules[name]
            if module.tree is not None:
                found = read_tree(name, module.tree, is_package=module.is_package)
            elif module.code is not None:
                found = read_code(name, module.code)
            else:
                found = ModuleDefinitions()
            self.read[name] = found
        return self.read[name]

    def _finish(
        self,
        catalogue: Catalogue,
        rules: dict[tuple[str, int], Rule],
        edges: tuple[tuple[int, ...], ...] = (),
    ) -> Plan:
        rules = {place: rule for place, rule in rules.items() if rule.records}
        # A class may stand in a module that has no function of its own.
        names = {name for name, _ in rules}
        names |= {key[0] for rule in rules.values() for key in rule.by_class}
        modules = {name: self.modules[name] for name in sorted(names)}
        inside = [
            item for name in modules for item in self.definitions(name).functions if item.owner
        ]
        owners = {(item.module, item.index): item.owner for item in inside}
        attributes = {(item.module, item.index): item.attribute for item in inside}
        orders = self._orders() if self.scheme == "class" else {}
        inner = {key for order in orders.values() for key in order[1:]}
        leaves = frozenset(orders.keys() - inner)
        return Plan(self.scope, catalogue, modules, rules, edges, owners, attributes, leaves)

    def _check_patterns(self, chosen: Sequence[Definition]) -> None:
        problems = [
            f"Pattern {pattern!r} matches no function of an importable module."
            for pattern in self.scope.include
            if not any(Scope((pattern,)).takes(item.module, item.qualname) for item in chosen)
        ]
        if problems:
            raise InputError(*problems)

    def _function(self, definition: Definition, name: str, owner: str) -> Function:
        return Function(name, self.modules[definition.module].file, definition.line, owner)

    def _entries(
        self, chosen: Sequence[Definition]
    ) -> list[tuple[Function, Definition, ClassKey | None]]:
        """Name every (definition, concrete class); the class is ``None`` for the definition's own.

        Names are unique: where two come out alike, the later ones get ``#2``, ``#3``, ….
        """
        named: list[tuple[str, str, Definition, ClassKey | None]] = []
        for definition in chosen:
            name = f"{definition.module}:{definition.qualname}"
            named.append((name, definition.owner, definition, None))
            if self.scheme == "class" and definition.binding != "none":
                named.extend(
                    (name, key[1], definition, key) for key, name in self._inherited(definition)
                )
        seen: dict[str, int] = {}
        entries: list[tuple[Function, Definition, ClassKey | None]] = []
        # Definitions' own names come first, so that they are never the ones renumbered.
        for name, owner, definition, key in sorted(named, key=lambda item: item[3] is not None):
            seen[name] = seen.get(name, 0) + 1
            unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
            entries.append((self._function(definition, unique, owner), definition, key))
        return entries

    def _inherited(self, definition: Definition) -> Iterator[tuple[ClassKey, str]]:
        """Yield the concrete classes below a definition's own, each with the call's name."""
        owner = (definition.module, definition.owner)
        attribute = definition.attribute
        tail = definition.qualname[len(definition.owner) + 1 :]
        for key, order in self._orders().items():
            if key == owner or owner not in order:
                continue
            place = order.index(owner)
            above = [item for item in order[:place] if attribute in self._class(item).members]
            if not above:
                yield key, f"{key[0]}:{key[1]}.{tail}"
            elif self._calls_base(order, place, attribute):
                yield key, f"{key[0]}:{key[1]}.super({definition.owner}).{tail}"

    def _calls_base(self, order: Sequence[ClassKey], place: int, attribute: str) -> bool:
        """Say whether code of the scope can be seen to reach an overridden function.

        That is a ``super().attribute`` in a class before the owner, with no other definition
        between, or a ``Class.attribute`` where the class finds the attribute at the owner.
        """
        for index in range(place - 1, -1, -1):
            if attribute in self._class(order[index]).super_attributes:
                return True
            if attribute in self._class(order[index]).members:
                break
        owner = order[place]
        for key in order:
            own_order = self._orders().get(key, ())
            found = next((k for k in own_order if attribute in self._class(k).members), None)
            simple = (key[1].rpartition(".")[2], attribute)
            if found == owner and any(
                simple in self.definitions(name).base_calls for name in self.selected
            ):
                return True
        return False

    def _class(self, key: ClassKey) -> ClassDefinition:
        return self.definitions(key[0]).classes[key[1]]

    def _orders(self) -> dict[ClassKey, tuple[ClassKey, ...]]:
        """Return the resolution order of every class that is made once, as far as it is known."""
        if not hasattr(self, "_known_orders"):
            found: dict[ClassKey, tuple[ClassKey, ...]] = {}
            for name in self.selected:
                for qualname, definition in sorted(self.definitions(name).classes.items()):
                    if not definition.local:
                        found[name, qualname] = self._order((name, qualname), ())
            self._known_orders = found
        return self._known_orders

    def _order(self, key: ClassKey, below: tuple[ClassKey, ...]) -> tuple[ClassKey, ...]:
        if key in below:
            return (key,)
        bases = self._bases(key)
        sequences = [list(self._order(base, (*below, key))) for base in bases]
        return (key, *_merge([*sequences, list(bases)]))

    def _bases(self, key: ClassKey) -> tuple[ClassKey, ...]:
        if key not in self.bases:
            self.bases[key] = ()
            found = (self._resolve(key, base) for base in self._class(key).bases)
            self.bases[key] = tuple(dict.fromkeys(item for item in found if item and item != key))
        return self.bases[key]

    def _resolve(self, key: ClassKey, expression: ast.expr) -> ClassKey | None:
        if isinstance(expression, ast.Subscript):
            return self._resolve(key, expression.value)
        parts: list[str] = []
        while isinstance(expression, ast.Attribute):
            parts.insert(0, expression.attr)
            expression = expression.value
        if not isinstance(expression, ast.Name):
            return None
        parts.insert(0, expression.id)
        outer = key[1].rpartition(".")[0]
        if outer:
            nested = ".".join([outer, *parts])
            if nested in self.definitions(key[0]).classes:
                return key[0], nested
        return self._look_up(key[0], parts, 0)

    def _look_up(self, module: str, parts: list[str], depth: int) -> ClassKey | None:
        """Find the class that dotted ``parts`` name inside a module, through its imports."""
        if module not in self.modules or not parts or depth > 20:
            return None
        known = self.definitions(module)
        if ".".join(parts) in known.classes:
            return module, ".".join(parts)
        head, rest = parts[0], parts[1:]
        if head in known.imports:
            source, attribute = known.imports[head]
            if not attribute:
                return self._look_up(source, rest, depth + 1)
            return self._look_up(source, [attribute, *rest], depth + 1) or self._look_up(
                f"{source}.{attribute}", rest, depth + 1
            )
        inside = self._look_up(f"{module}.{head}", rest, depth + 1)
        if inside:
            return inside
        found = (self._look_up(star, parts, depth + 1) for star in known.stars)
        return next((item for item in found if item), None)

    def _edge_plan(self, chosen: Sequence[Definition]) -> Plan:
        names = {f"{item.module}:{item.qualname}": item for item in chosen}
        kept = sorted(self.scope.select(names))
        if len(kept) > EDGE_LIMIT:
            raise InputError(
                f"Scheme edge takes at most {EDGE_LIMIT} functions and the scope holds "
                f"{len(kept)}; narrow it with patterns or a priority list."
            )
        callers = [OUTSIDE, *kept]
        functions = [
            self._function(names[callee], f"{caller} -> {callee}", names[callee].owner)
            for caller in callers
            for callee in kept
        ]
        catalogue = Catalogue.of(functions, "edge")
        ids = {function.name: index for index, function in enumerate(catalogue.functions)}
        edges = tuple(tuple(ids[f"{caller} -> {callee}"] for callee in kept) for caller in callers)
        rules = {
            (names[name].module, names[name].index): Rule(number)
            for number, name in enumerate(kept)
        }
        return self._finish(catalogue, rules, edges)


def _merge(sequences: list[list[ClassKey]]) -> Iterable[ClassKey]:
    """Merge as Python's C3 does; where that is impossible, keep the order of first mention."""
    sequences = [item for item in sequences if item]
    merged: list[ClassKey] = []
    while sequences:
        head = next(
            (item[0] for item in sequences if not any(item[0] in other[1:] for other in sequences)),
            sequences[0][0],
        )
        merged.append(head)
        sequences = [[key for key in item if key != head] for item in sequences]
        sequences = [item for item in sequences if item]
    return merged
