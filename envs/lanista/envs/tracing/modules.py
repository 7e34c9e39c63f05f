"""Finding the modules of packages without importing them."""

import ast
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

from lanista.envs.errors import InputError


@dataclass(frozen=True)
class Module:
    """One module that was found.

    Attributes:
        name: Dotted name.
        spec: Where it is loaded from.
    """

    name: str
    spec: importlib.machinery.ModuleSpec

    @property
    def is_package(self) -> bool:
        """Whether other modules lie inside it."""
        return self.spec.submodule_search_locations is not None

    @property
    def file(self) -> str:
        """Source file relative to the folder that holds the package, with forward slashes."""
        return self.name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")

    @cached_property
    def source(self) -> str | None:
        """Source text, or ``None`` where there is none or it is in no encoding that it names."""
        loader: Any = self.spec.loader
        try:
            text = loader.get_source(self.name)
        except (AttributeError, ImportError, OSError, SyntaxError, ValueError):
            return None
        return text if isinstance(text, str) else None

    @cached_property
    def code(self) -> CodeType | None:
        """Compiled module, or ``None`` for a compiled extension or what Python cannot compile."""
        loader: Any = self.spec.loader
        try:
            code = loader.get_code(self.name)
        except (AttributeError, ImportError, OSError, SyntaxError, ValueError):
            return None
        return code if isinstance(code, CodeType) else None

    @cached_property
    def tree(self) -> ast.Module | None:
        """Syntax tree, or ``None`` where there is no (valid) source."""
        if self.source is None:
            return None
        try:
            return ast.parse(self.source)
        except (SyntaxError, ValueError):
            return None


def find_modules(root: str) -> dict[str, Module]:
    """Find a top-level module or package and everything inside it, by name.

    Nothing is imported.

    Raises:
        InputError: If there is no such module, or it has neither source nor bytecode.
    """
    spec = _spec_of(root)
    if spec is None:
        raise InputError(f"No package or module is named {root!r}; install it or correct the name.")
    found = {module.name: module for module in _walk(root, spec)}
    if not any(module.source is not None or module.code is not None for module in found.values()):
        raise InputError(f"{root!r} is no Python package: it has neither source nor bytecode.")
    return found


def _spec_of(root: str) -> importlib.machinery.ModuleSpec | None:
    loaded = sys.modules.get(root)
    spec = getattr(loaded, "__spec__", None)
    if isinstance(spec, importlib.machinery.ModuleSpec):
        return spec
    try:
        return importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None


def _walk(name: str, spec: importlib.machinery.ModuleSpec) -> Iterator[Module]:
    yield Module(name, spec)
    if spec.submodule_search_locations is None:
        return
    for entry in pkgutil.iter_modules(list(spec.submodule_search_locations)):
        full = f"{name}.{entry.name}"
        finder: Any = entry.module_finder
        inner = finder.find_spec(entry.name)
        if inner is None or inner.loader is None:
            continue
        named = importlib.util.spec_from_loader(
            full,
            _renamed(inner.loader, full),
            origin=inner.origin,
            is_package=inner.submodule_search_locations is not None,
        )
        if named is None:
            continue
        named.submodule_search_locations = inner.submodule_search_locations
        yield from _walk(full, named)


def _renamed(loader: Any, full: str) -> Any:
    # A file loader answers only to its own name, and a path finder names by the last part alone.
    if isinstance(loader, importlib.machinery.SourceFileLoader):
        return importlib.machinery.SourceFileLoader(full, loader.path)
    if isinstance(loader, importlib.machinery.SourcelessFileLoader):
        return importlib.machinery.SourcelessFileLoader(full, loader.path)
    return loader
