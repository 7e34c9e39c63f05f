"""Putting the records into running modules and taking them out again."""

import abc
import gc
import importlib.abc
import importlib.machinery
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from lanista.envs.tracing.definitions import is_function
from lanista.envs.tracing.modules import Module
from lanista.envs.tracing.monitoring import monitor, stop_monitoring
from lanista.envs.tracing.plan import ClassKey, Plan, Rule
from lanista.envs.tracing.record import Piece, Record
from lanista.envs.tracing.rewriting import (
    ClassTable,
    CodePair,
    Template,
    all_codes,
    definition_codes,
)


class Instrumentation:
    """The records of one plan in this process.

    Functions that exist get other code (``f.__code__``), so instances, bound methods and wrapped
    functions that hold them record at once; functions that they make later come with it. Modules
    that are imported later get theirs when they are loaded.

    Attributes:
        plan: What is recorded.
        record: What the calls are appended to.
        users: How many tracers have it installed.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.users = 0
        complete = all(
            None not in {rule.default, *rule.by_class.values()} for rule in plan.rules.values()
        )
        self.record = Record(len(plan.catalogue), complete=complete)
        self._finder = _Finder(self)
        self._pieces: dict[tuple[str, int], Piece] = {}
        self._tables: dict[tuple[str, int], ClassTable] = {}
        self._swapped: dict[int, tuple[CodeType, CodeType]] = {}
        self._functions: list[weakref.ref[FunctionType]] = []
        self._monitored: list[CodeType] = []
        self._numbers: dict[int, int] = {}
        self._templates: dict[str, Template] = {}
        self._constant_templates: dict[str, Template] = {}
        self._planted: list[tuple[type, str, Any]] = []
        for place, rule in plan.rules.items():
            if rule.varies:
                self._tables[place] = ClassTable(self.record.piece(rule.default))
            else:
                self._pieces[place] = self.record.piece(rule.default)

    def put_in(self) -> None:
        """Record from now on."""
        sys.meta_path.insert(0, self._finder)
        loaded = [sys.modules.get(name) for name in self.plan.modules]
        self.instrument([module for module in loaded if isinstance(module, ModuleType)])

    def take_out(self) -> None:
        """Put every function back as it was."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        kept = [function for ref in self._functions if (function := ref()) is not None]
        namespaces = {
            id(vars(module))
            for name in self.plan.modules
            if (module := sys.modules.get(name)) is not None
        }
        for function in (*kept, *_functions_of(namespaces)):
            swapped = self._swapped.get(id(function.__code__))
            if swapped is not None:
                function.__code__ = swapped[1]
        for leaf, attribute, planted in self._planted:
            if vars(leaf).get(attribute) is planted:
                type.__delattr__(leaf, attribute)
        self._planted.clear()
        stop_monitoring(self._monitored)
        self._swapped.clear()
        self._functions.clear()
        self._monitored.clear()
        self._numbers.clear()
        # Traces that were taken and not yet read lie in the list.
        self.record.pack()
        for table in self._tables.values():
            table.clear()

    def instrument(self, modules: Sequence[ModuleType]) -> None:
        """Put the records into modules that are loaded."""
        for module in modules:
            self._fill_tables(module)
        live: dict[str, list[FunctionType]] = {module.__name__: [] for module in modules}
        spaces = {id(vars(module)): module for module in modules}
        skipped = {id(item) for module in modules for item in _compiled_elsewhere(module)}
        for function in _functions_of(set(spaces)):
            if id(function) not in skipped:
                live[spaces[id(function.__globals__)].__name__].append(function)
        for module in modules:
            name = module.__name__
            found = self.plan.modules[name]
            if self.plan.catalogue.scheme == "edge" or found.tree is None:
                wanted = {index for (where, index) in self.plan.rules if where == name}
                self._watch(found, live[name], wanted)
            else:
                self._swap(found, live[name], getattr(module.__spec__, "origin", None))
        self._plant(modules)

    def _plant(self, modules: Sequence[ModuleType]) -> None:
        """Give leaf classes copies of the methods that they inherit, each with its own id.

        A copy appends a constant, which is quicker than looking the class up. The inherited
        function itself goes on looking up, for calls that do not go through the leaf. Where a
        member is neither a plain function nor a property, only that way is taken.
        """
        by_class: dict[ClassKey, dict[str, set[int]]] = {}
        for (name, index), rule in self.plan.rules.items():
            if rule.varies and rule.binding == "instance" and name in self._templates:
                for key, function_id in rule.by_class.items():
                    if key in self.plan.leaves and function_id is not None:
                        by_class.setdefault(key, {}).setdefault(name, set()).add(index)
        for module in modules:
            for key, by_module in by_class.items():
                leaf = _find_class(module, key[1]) if key[0] == module.__name__ else None
                if leaf is None or type(leaf) not in (type, abc.ABCMeta):
                    continue
                for name, indices in by_module.items():
                    self._plant_into(leaf, name, indices)

    def _plant_into(self, leaf: type, name: str, indices: set[int]) -> None:
        template = self._constant_templates.get(name)
        if template is None:
            rules = {
                index: Rule(0)
                for (where, index), rule in self.plan.rules.items()
                if where == name and rule.varies and rule.binding == "instance"
            }
            origin = getattr(sys.modules[name].__spec__, "origin", None)
            template = Template(self.plan.modules[name], rules, origin)
            self._constant_templates[name] = template
        # What a look-up by the class would find, also for those that it does not inherit.
        own = {index: self._tables[name, index][leaf] for index in template.indices}
        pairs = template.bind(self.record.sink, own, {})
        recording = {pair.original: pair.recording for pair in pairs}

        def copy(function: Any) -> Any:
            if type(function) is not FunctionType:
                return function
            swapped = self._swapped.get(id(function.__code__))
            code = recording.get(swapped[1]) if swapped is not None else None
            return function if code is None else _copied(function, code)

        for attribute in {self.plan.attributes[name, index] for index in indices}:
            holder = next((item for item in leaf.__mro__ if attribute in vars(item)), leaf)
            found = vars(holder).get(attribute)
            if holder is leaf or attribute.startswith("__"):
                continue
            planted: Any = None
            if type(found) is FunctionType:
                planted = copy(found)
            elif type(found) is property:
                planted = property(
                    copy(found.fget), copy(found.fset), copy(found.fdel), found.__doc__
                )
            if planted is not None and planted is not found:
                type.__setattr__(leaf, attribute, planted)
                self._planted.append((leaf, attribute, planted))

    def _fill_tables(self, module: ModuleType) -> None:
        for place, table in self._tables.items():
            rule = self.plan.rules[place]
            if place[0] == module.__name__:
                own = _find_class(module, self.plan.owners[place])
                if own is not None:
                    table[own] = table.default
            for key, function_id in rule.by_class.items():
                if key[0] == module.__name__:
                    found = _find_class(module, key[1])
                    if found is not None:
                        table[found] = self.record.piece(function_id)

    def _swap(
        self, module: Module, functions: Sequence[FunctionType], filename: str | None
    ) -> None:
        name = module.name
        if name not in self._templates:
            rules = {
                index: rule for (where, index), rule in self.plan.rules.items() if where == name
            }
            self._templates[name] = Template(module, rules, filename)
        template = self._templates[name]
        pairs = template.bind(
            self.record.sink,
            {index: piece for (where, index), piece in self._pieces.items() if where == name},
            {index: table for (where, index), table in self._tables.items() if where == name},
        )
        by_code = {pair.original: pair for pair in pairs}
        by_place: dict[tuple[str, int], list[CodePair]] = {}
        for pair in pairs:
            place = (pair.original.co_qualname, pair.original.co_firstlineno)
            by_place.setdefault(place, []).append(pair)
            self._swapped[id(pair.recording)] = (pair.recording, pair.original)
        for function in functions:
            code = function.__code__
            found = by_code.get(code)
            if found is None:
                # Compiled by another (pytest and coverage change code): known by its place alone.
                alike = by_place.get((code.co_qualname, code.co_firstlineno), [])
                found = alike[0] if len(alike) == 1 and _alike(code, alike[0].original) else None
            if found is not None:
                self._swapped[id(found.recording)] = (found.recording, code)
                function.__code__ = found.recording
                self._functions.append(weakref.ref(function))
        if template.failed:
            self._watch(module, functions, set(template.failed))

    def _watch(self, module: Module, functions: Sequence[FunctionType], wanted: set[int]) -> None:
        """Record the definitions wanted through ``sys.monitoring``."""
        indices = definition_codes(module)
        handlers: list[tuple[CodeType, Callable[[CodeType], None]]] = []
        seen: set[int] = set()
        for function in functions:
            for code in all_codes(function.__code__):
                index = indices.get(code) if is_function(code) else None
                if index is None or index not in wanted or id(code) in seen:
                    continue
                seen.add(id(code))
                handlers.append((code, self._handler((module.name, index), code)))
        self._monitored.extend(code for code, _ in handlers)
        monitor(handlers)

    def _handler(self, place: tuple[str, int], code: CodeType) -> Callable[[CodeType], None]:
        sink = self.record.sink
        if self.plan.catalogue.scheme == "edge":
            number = self.plan.rules[place].default
            assert number is not None
            self._numbers[id(code)] = number
            encoded = [self.record.piece(row[number]) for row in self.plan.edges]
            numbers = self._numbers

            def record_edge(_: CodeType) -> None:
                frame: FrameType | None = sys._getframe(2).f_back  # noqa: SLF001
                while frame is not None and id(frame.f_code) not in numbers:
                    frame = frame.f_back
                sink.append(encoded[0 if frame is None else numbers[id(frame.f_code)] + 1])

            return record_edge
        table = self._tables.get(place)
        if table is None:
            piece = self._pieces[place]
            return lambda _: sink.append(piece)
        by_instance = self.plan.rules[place].binding == "instance"

        def record_class(started: CodeType) -> None:
            first = sys._getframe(2).f_locals[started.co_varnames[0]]  # noqa: SLF001
            sink.append(table[type(first) if by_instance else first])

        return record_class


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find a module, and puts the records in when it has been loaded."""

    def __init__(self, instrumentation: Instrumentation) -> None:
        self.instrumentation = instrumentation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.instrumentation.plan.modules:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec: importlib.machinery.ModuleSpec) -> None:
        loader: Any = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def execute_and_record(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                self.instrumentation.instrument([module])

        # A loader belongs to one spec; where it is shared (a class), it is left alone.
        if not isinstance(loader, type):
            loader.exec_module = execute_and_record


def _copied(function: FunctionType, code: CodeType) -> FunctionType:
    copied = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = function.__qualname__
    copied.__module__ = function.__module__
    copied.__doc__ = function.__doc__
    copied.__annotations__ = function.__annotations__
    copied.__type_params__ = function.__type_params__
    # Attributes of a function are state that a game may keep there, so they are shared.
    copied.__dict__ = function.__dict__
    return copied


def _find_class(module: ModuleType, qualname: str) -> type | None:
    found: Any = module
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if isinstance(found, type) and found.__qualname__ == qualname:
        return found if found.__module__ == module.__name__ else None
    return None


def _alike(code: CodeType, other: CodeType) -> bool:
    names = ("co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount")
    return all(
        getattr(code, name)[: code.co_argcount] == getattr(other, name)[: other.co_argcount]
        if name == "co_varnames"
        else getattr(code, name) == getattr(other, name)
        for name in names
    )


def _functions_of(namespaces: set[int]) -> Iterator[FunctionType]:
    """Yield every function whose globals are one of these namespaces, wherever it is held."""
    for item in gc.get_objects():
        if type(item) is FunctionType and id(item.__globals__) in namespaces:
            yield item


def _compiled_elsewhere(module: ModuleType) -> Iterator[FunctionType]:
    """Yield functions that a compiler (Numba) reads: it knows nothing of the record."""
    for value in list(vars(module).values()):
        holders = [value, *vars(value).values()] if isinstance(value, type) else [value]
        for holder in holders:
            inner = vars(holder).get("py_func") if hasattr(holder, "__dict__") else None
            if isinstance(inner, FunctionType):
                yield inner
