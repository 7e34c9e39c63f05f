"""What parameters a tester takes: their ranges, their defaults and how they are checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lanista.envs.errors import InputError


class Parameter(Protocol):
    """One parameter of a tester."""

    @property
    def default(self) -> Any:
        """The value taken where none is given."""
        ...

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with a value as the end of a sentence, or ``None``."""
        ...


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Fraction:
    """A share between ``low`` and ``high``, both allowed."""

    default: float
    low: float = 0.0
    high: float = 1.0

    def problem(self, value: Any) -> str | None:
        """Refuse what is no number or lies outside the range."""
        number = isinstance(value, float) or _is_integer(value)
        if number and self.low <= value <= self.high:
            return None
        return f"must be a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Count:
    """A whole number between ``low`` and ``high``, both allowed; ``None`` leaves it open."""

    default: int | None
    low: int
    high: int

    def problem(self, value: Any) -> str | None:
        """Refuse what is no whole number or lies outside the range."""
        if value is None or (_is_integer(value) and self.low <= value <= self.high):
            return None
        return f"must be a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class StepRange:
    """Two numbers of steps, the lower first; ``None`` for no such range."""

    default: tuple[int, int] | None = None

    def problem(self, value: Any) -> str | None:
        """Refuse what is not two whole numbers in order, from 1 on."""
        if value is None:
            return None
        pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
        if pair and all(map(_is_integer, value)) and 1 <= value[0] <= value[1]:
            return None
        return "must be two whole numbers of steps, the lower first, from 1 on"


@dataclass(frozen=True)
class Names:
    """A list of distinct names out of ``allowed``; ``None`` leaves it open."""

    allowed: tuple[str, ...]
    default: tuple[str, ...] | None = None

    def problem(self, value: Any) -> str | None:
        """Refuse an empty list, a name twice and a name that is not among those allowed."""
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            return f"must be a list of names out of {', '.join(self.allowed)}"
        unknown = [str(name) for name in value if name not in self.allowed]
        if unknown:
            return f"names {', '.join(unknown)}, but there are only {', '.join(self.allowed)}"
        if len(set(value)) < len(value):
            return "names one thing twice"
        return None


STOP_STEPS = "stop_steps"
"""The parameter that every tester has: between how many steps it stops of itself."""


def complete(
    tester: str, given: Mapping[str, Any], known: Mapping[str, Parameter]
) -> dict[str, Any]:
    """Check the parameters that were given and fill in the defaults of the others.

    Returns:
        Every known parameter by name, in the order in which they are known; sequences as tuples.

    Raises:
        InputError: If a parameter is unknown or out of its range; all such problems at once.
    """
    problems = [
        f"Tester {tester!r} has no parameter {name!r}; it has {', '.join(known)}."
        for name in given
        if name not in known
    ]
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        wrong = parameter.problem(value)
        if wrong is not None:
            problems.append(f"Tester {tester!r}: {name} is {value!r} but {wrong}.")
        values[name] = tuple(value) if isinstance(value, list) else value
    if problems:
        raise InputError(*problems)
    return values
