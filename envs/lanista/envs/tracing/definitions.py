"""The function definitions and classes of a module, read off its syntax tree or its bytecode."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Literal

Binding = Literal["instance", "class", "none"]
"""What a function's first argument tells of the concrete class: its type, itself, or nothing."""

_IMPLICIT_CLASS = {"__new__", "__init_subclass__", "__class_getitem__"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.GeneratorExp


@dataclass(frozen=True)
class Definition:
    """One function as it is written.

    Attributes:
        module: Name of its module.
        index: Its number in the module, in the order of the text.
        name: As its code object is called.
        qualname: As Python forms it, made unique in the module (``health.setter``, ``<lambda>#2``).
        line: First line of the definition, from 1.
        owner: Qualified name of the class whose body it stands in, else empty.
        attribute: Name under which the class holds it (private names mangled), else empty.
        binding: How its first argument tells the concrete class.
    """

    module: str
    index: int
    name: str
    qualname: str
    line: int
    owner: str = ""
    attribute: str = ""
    binding: Binding = "none"


@dataclass
class ClassDefinition:
    """One class as it is written; definitions of the same name are taken together.

    Attributes:
        module: Name of its module.
        qualname: As Python forms it.
        bases: Expressions of its bases, in order.
        members: Names that its body binds.
        methods: Attribute name to the functions that it holds.
        super_attributes: Names that its functions take from ``super()``.
        local: Whether it is made anew by each call of a function.
    """

    module: str
    qualname: str
    bases: list[ast.expr] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    methods: dict[str, list[Definition]] = field(default_factory=dict)
    super_attributes: set[str] = field(default_factory=set)
    local: bool = False


@dataclass
class ModuleDefinitions:
    """What a module defines.

    Attributes:
        functions: By index.
        nodes: The syntax-tree node of each function, by ``id(node)`` → index; empty for bytecode.
        classes: By qualified name.
        imports: Local name → (module, attribute or ``""`` for the module itself).
        stars: Modules of which everything is imported.
        base_calls: Pairs (last name of the object, attribute) of all attribute accesses; an
            explicit call of a base's function is among them.
    """

    functions: list[Definition] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)
    classes: dict[str, ClassDefinition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    base_calls: set[tuple[str, str]] = field(default_factory=set)


def read_tree(module: str, tree: ast.Module, *, is_package: bool) -> ModuleDefinitions:
    """Read what a module's syntax tree defines."""
    reader = _Reader(module, is_package)
    reader.visit(tree)
    return reader.finish()


def read_code(module: str, code: CodeType) -> ModuleDefinitions:
    """Read the functions of a module of which only bytecode exists; its classes stay unknown."""
    found = ModuleDefinitions()
    names: dict[str, int] = {}
    for index, inner in enumerate(function_codes(code)):
        qualname = _unique(inner.co_qualname, names)
        found.functions.append(
            Definition(module, index, inner.co_name, qualname, inner.co_firstlineno)
        )
    return found


def function_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects of all functions inside a module's, in a fixed order.

    Bodies of classes and of annotation scopes are walked through, not yielded.
    """
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if is_function(constant):
                yield constant
            yield from function_codes(constant)


def is_function(code: CodeType) -> bool:
    """Say whether a code object is a function's (lambdas and generator expressions included)."""
    optimized = 0x1
    comprehension = code.co_name in {"<listcomp>", "<setcomp>", "<dictcomp>"}
    return bool(code.co_flags & optimized) and not comprehension


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, is_package: bool) -> None:
        self.module = module
        self.package = module if is_package else module.rpartition(".")[0]
        self.found = ModuleDefinitions()
        self.path: list[str] = []
        self.classes: list[ClassDefinition] = []
        self.in_class_body = False
        self.in_function = 0
        self.raw: list[tuple[FunctionNode, str, int, str, str, Binding]] = []

    def finish(self) -> ModuleDefinitions:
        names: dict[str, int] = {}
        self.raw.sort(key=lambda item: (item[0].lineno, item[0].col_offset))
        for index, (node, qualname, line, owner, attribute, binding) in enumerate(self.raw):
            unique = _unique(qualname, names)
            definition = Definition(
                self.module, index, _code_name(node), unique, line, owner, attribute, binding
            )
            self.found.functions.append(definition)
            self.found.nodes[id(node)] = index
            if owner and attribute:
                self.found.classes[owner].methods.setdefault(attribute, []).append(definition)
        return self.found

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for expression in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(expression)
        qualname = ".".join([*self.path, node.name])
        known = self.found.classes.setdefault(qualname, ClassDefinition(self.module, qualname))
        known.bases.extend(node.bases)
        known.local = known.local or bool(self.in_function)
        if self.in_class_body:
            self.classes[-1].members.add(_mangled(node.name, self.classes[-1].qualname))
        self._inside([node.name], node.body, class_=known)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        defaults = (*arguments.defaults, *(item for item in arguments.kw_defaults if item))
        for expression in (*node.decorator_list, *defaults):
            self.visit(expression)
        first_line = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        role = _accessor(node)
        owner, attribute, binding = "", "", _binding(node)
        if self.in_class_body:
            owner = self.classes[-1].qualname
            attribute = _mangled(node.name, owner)
            self.classes[-1].members.add(attribute)
        else:
            binding = "none"
        qualname = ".".join([*self.path, node.name]) + (f".{role}" if role else "")
        self.raw.append((node, qualname, first_line, owner, attribute, binding))
        self._inside([node.name, "<locals>"], node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = node.args
        for expression in (*arguments.defaults, *(item for item in arguments.kw_defaults if item)):
            self.visit(expression)
        self._add_nameless(node, "<lambda>")
        self._inside(["<lambda>", "<locals>"], [node.body])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        self._add_nameless(node, "<genexpr>")
        inner: list[ast.AST] = [node.elt, first.target, *first.ifs, *node.generators[1:]]
        self._inside(["<genexpr>", "<locals>"], inner)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        value = node.value
        if isinstance(value, ast.Name | ast.Attribute):
            last = value.id if isinstance(value, ast.Name) else value.attr
            self.found.base_calls.add((last, node.attr))
        elif self.classes and isinstance(value, ast.Call):
            called = value.func
            if isinstance(called, ast.Name) and called.id == "super":
                owner = self.classes[-1]
                owner.super_attributes.add(_mangled(node.attr, owner.qualname))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self.in_class_body and isinstance(node.ctx, ast.Store):
            self.classes[-1].members.add(_mangled(node.id, self.classes[-1].qualname))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.target)
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        if self.in_function:
            return
        for alias in node.names:
            target = alias.name if alias.asname else alias.name.partition(".")[0]
            self.found.imports[alias.asname or target] = (target, "")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if self.in_function:
            return
        source = node.module or ""
        if node.level:
            parts = self.package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1])
            source = f"{base}.{source}" if source else base
        for alias in node.names:
            if alias.name == "*":
                self.found.stars.append(source)
            else:
                self.found.imports[alias.asname or alias.name] = (source, alias.name)

    def _add_nameless(self, node: ast.Lambda | ast.GeneratorExp, name: str) -> None:
        self.raw.append((node, ".".join([*self.path, name]), node.lineno, "", "", "none"))

    def _inside(
        self,
        names: list[str],
        body: list[ast.stmt] | list[ast.expr] | list[ast.AST],
        class_: ClassDefinition | None = None,
    ) -> None:
        before = self.in_class_body
        self.path.extend(names)
        self.in_class_body = class_ is not None
        if class_ is not None:
            self.classes.append(class_)
        else:
            self.in_function += 1
        for node in body:
            self.visit(node)
        if class_ is not None:
            self.classes.pop()
        else:
            self.in_function -= 1
        self.in_class_body = before
        del self.path[-len(names) :]


def _code_name(node: FunctionNode) -> str:
    if isinstance(node, ast.Lambda):
        return "<lambda>"
    return "<genexpr>" if isinstance(node, ast.GeneratorExp) else node.name


def _unique(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _mangled(name: str, class_qualname: str) -> str:
    if not name.startswith("__") or name.endswith("__"):
        return name
    stripped = class_qualname.rpartition(".")[2].lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def _accessor(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    for decorator in node.decorator_list:
        if (
            isinstance(decorator, ast.Attribute)
            and decorator.attr in {"setter", "deleter", "getter"}
            and isinstance(decorator.value, ast.Name)
            and decorator.value.id == node.name
        ):
            return decorator.attr
    return ""


def _binding(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Binding:
    if not first_parameter(node):
        return "none"
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
            return "none"
        if isinstance(decorator, ast.Name) and decorator.id == "classmethod":
            return "class"
    return "class" if node.name in _IMPLICIT_CLASS else "instance"


def first_parameter(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str:
    """Return the name of a function's first positional parameter, empty if it has none."""
    positional = (*node.args.posonlyargs, *node.args.args)
    return positional[0].arg if positional else ""
