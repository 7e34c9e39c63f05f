"""The scope: which functions of which packages are recorded."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lanista.envs.errors import InputError


@dataclass(frozen=True)
class Scope:
    """Which functions are recorded, by patterns as :mod:`fnmatch` knows them.

    A pattern without a colon is matched against module names and covers everything inside a
    package that it names (``networkx`` is all of it, ``crafter.env`` one module). One with a colon
    is ``module:Class.function`` (``crafter.engine:World*``) and is matched against both sides.

    Attributes:
        include: What is recorded; the first part of each module name is written out.
        exclude: What of it is left out.
        only: A priority list: of all that, record only functions whose catalogue name matches one
            of these. A pattern may be a full name or a suffix that starts at a part's border
            (``Plant.damage``, ``Zombie.*``). ``None`` records everything.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the patterns.

        Raises:
            InputError: If nothing is included, a pattern is empty, or a package isn't written out.
        """
        problems = [
            "A pattern of the scope is empty; write the name of a module or function."
            for pattern in (*self.include, *self.exclude, *(self.only or ()))
            if not pattern.strip()
        ]
        if not self.include:
            problems.append("A scope includes nothing; name at least one package.")
        for pattern in self.include:
            root = pattern.partition(":")[0].partition(".")[0]
            if pattern.strip() and not root.isidentifier():
                problems.append(f"Pattern {pattern!r} must begin with a package's name.")
        if self.only is not None and not self.only:
            problems.append("The list of functions to record is empty; leave it out to record all.")
        if problems:
            raise InputError(*problems)

    @property
    def roots(self) -> tuple[str, ...]:
        """Names of the top-level packages and modules that are included, sorted."""
        return tuple(sorted({item.partition(":")[0].partition(".")[0] for item in self.include}))

    def takes_module(self, module: str) -> bool:
        """Say whether some function of the module may be recorded."""
        return any(
            _matches_module(pattern.partition(":")[0], module) for pattern in self.include
        ) and not any(
            _matches_module(pattern, module) for pattern in self.exclude if ":" not in pattern
        )

    def takes(self, module: str, qualname: str) -> bool:
        """Say whether a function defined as ``module:qualname`` is recorded (``only`` aside)."""
        return any(
            matches_function(pattern, module, qualname) for pattern in self.include
        ) and not any(matches_function(pattern, module, qualname) for pattern in self.exclude)

    def select(self, names: Iterable[str]) -> set[str]:
        """Return the catalogue names that the priority list asks for.

        Raises:
            InputError: If a pattern of the list matches no function.
        """
        every = list(names)
        if self.only is None:
            return set(every)
        chosen: set[str] = set()
        problems = []
        for pattern in self.only:
            found = {name for name in every if matches_name(pattern, name)}
            if not found:
                problems.append(f"No function of the scope matches {pattern!r}.")
            chosen |= found
        if problems:
            raise InputError(*problems)
        return chosen


def matches_name(pattern: str, name: str) -> bool:
    """Say whether a catalogue name matches a pattern in full or from some part's border on."""
    return fnmatchcase(name, pattern) or any(
        fnmatchcase(name[index + 1 :], pattern)
        for index, letter in enumerate(name)
        if letter in ".:" and index + 1 < len(name)
    )


def read_patterns(path: Path) -> tuple[str, ...]:
    """Read a file of patterns: one a line; blank lines and what follows ``#`` at its start go.

    Raises:
        InputError: If the file cannot be read or holds no pattern.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"Pattern file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Pattern file {path} is not UTF-8 text.") from error
    patterns = tuple(
        line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")
    )
    if not patterns:
        raise InputError(f"Pattern file {path} holds no pattern; write one a line.")
    return patterns


def _matches_module(pattern: str, module: str) -> bool:
    parts = module.split(".")
    return any(fnmatchcase(".".join(parts[:count]), pattern) for count in range(1, len(parts) + 1))


def matches_function(pattern: str, module: str, qualname: str) -> bool:
    """Say whether a pattern of a scope covers a function defined as ``module:qualname``."""
    module_pattern, colon, function_pattern = pattern.partition(":")
    if not _matches_module(module_pattern, module):
        return False
    return not colon or fnmatchcase(qualname, function_pattern)
