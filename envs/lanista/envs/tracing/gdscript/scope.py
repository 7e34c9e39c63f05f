"""The scope of a Godot project: which functions of its scripts are recorded."""

from collections.abc import Iterable
from dataclasses import dataclass

from lanista.envs.errors import InputError
from lanista.envs.tracing.scope import matches_function, matches_name

ADDONS = "addons"
"""First folder of what a project takes from others: left out unless it is asked for."""


@dataclass(frozen=True)
class GodotScope:
    """Which functions are recorded, by patterns as :mod:`fnmatch` knows them.

    They mean what those of :class:`~lanista.envs.tracing.Scope` mean. A module is a script's path
    with dots and without ``.gd`` (``scripts.robot``), and ``scripts`` is all of that folder.

    Attributes:
        include: What is recorded. Scripts under the folder ``addons`` are taken only where a
            pattern begins with ``addons``.
        exclude: What of it is left out.
        only: A priority list: of all that, record only functions whose catalogue name matches one
            of these, in full or from a part's border on (``Robot.*``). ``None`` records everything.
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the patterns.

        Raises:
            InputError: If nothing is included or a pattern is empty.
        """
        problems = [
            "A pattern of the scope is empty; write the name of a script or function."
            for pattern in (*self.include, *self.exclude, *(self.only or ()))
            if not pattern.strip()
        ]
        if not self.include:
            problems.append("A scope includes nothing; leave the patterns out to record all.")
        if self.only is not None and not self.only:
            problems.append("The list of functions to record is empty; leave it out to record all.")
        if problems:
            raise InputError(*problems)

    def takes(self, module: str, qualname: str) -> bool:
        """Say whether a function defined as ``module:qualname`` is recorded (``only`` aside)."""
        included = self.include
        if module.partition(".")[0] == ADDONS:
            included = tuple(item for item in included if _names_addons(item))
        return any(matches_function(item, module, qualname) for item in included) and not any(
            matches_function(item, module, qualname) for item in self.exclude
        )

    def unmatched(self, functions: Iterable[tuple[str, str]]) -> list[str]:
        """Return the patterns to include, other than ``*``, that match no function.

        Args:
            functions: Module and qualified name of every function there is.
        """
        every = list(functions)
        return [
            pattern
            for pattern in self.include
            if pattern != "*" and not any(matches_function(pattern, *item) for item in every)
        ]

    def select(self, names: Iterable[str]) -> frozenset[str]:
        """Return the catalogue names that the priority list asks for.

        Raises:
            InputError: If a pattern of the list matches no function.
        """
        every = frozenset(names)
        if self.only is None:
            return every
        chosen = {
            pattern: frozenset(name for name in every if matches_name(pattern, name))
            for pattern in self.only
        }
        problems = [
            f"No function of the project matches {pattern!r}."
            for pattern, found in chosen.items()
            if not found
        ]
        if problems:
            raise InputError(*problems)
        return frozenset().union(*chosen.values())


def _names_addons(pattern: str) -> bool:
    return pattern.partition(":")[0].partition(".")[0] == ADDONS
