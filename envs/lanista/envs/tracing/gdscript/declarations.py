"""What a GDScript source declares: its functions and classes."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

FunctionKind = Literal["function", "static", "accessor", "lambda", "abstract"]
"""``accessor`` is a property's getter or setter written in place."""

LAMBDA_NAME = "<anonymous lambda>"
"""How the engine calls a lambda without a name."""


@dataclass(frozen=True, slots=True)
class ScriptFunction:
    """One function as it is written.

    Attributes:
        name: As the engine names it: ``@speed_setter`` for an accessor of ``speed``.
        owners: Inner classes around it, from the outermost; empty in the script's own class.
        line: Line of ``func``, ``set`` or ``get``, from 1.
        kind: What it is.
        offset: Byte offset of the first statement of its body, an annotation of that statement
            included; -1 for an abstract function.
        static: Whether it has no ``self``; lambdas are what the function around them is.
        inside: Name of the function around a lambda; empty elsewhere.
    """

    name: str
    owners: tuple[str, ...]
    line: int
    kind: FunctionKind
    offset: int
    static: bool = False
    inside: str = ""

    @property
    def qualname(self) -> str:
        """Its name after the inner classes around it, with dots; a lambda follows its function."""
        return ".".join((*self.owners, *((self.inside,) if self.inside else ()), self.name))


@dataclass(frozen=True, slots=True)
class ScriptClass:
    """One class of a script.

    Attributes:
        owners: Its name after those of the classes around it; empty for the script's own class.
        extends: What it extends, as written without spaces (a quoted path keeps its quotes);
            empty if it does not say, which means ``RefCounted``.
        line: Line of its declaration, from 1.
        abstract: Whether it is marked ``@abstract``.
    """

    owners: tuple[str, ...]
    extends: str
    line: int
    abstract: bool


class Problem(NamedTuple):
    """Why a file was left alone.

    Attributes:
        line: From 1.
        why: A clause without a full stop.
    """

    line: int
    why: str
