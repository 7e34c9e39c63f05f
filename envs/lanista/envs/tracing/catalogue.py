"""The catalogue: the table of a game's recorded functions and their static ids."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from lanista.envs.errors import InputError

Scheme = Literal["definition", "class", "edge"]


@dataclass(frozen=True, order=True)
class Function:
    """One recorded function.

    Attributes:
        name: ``module:Class.function``; under scheme ``class`` the class is the concrete one of
            ``self``, under ``edge`` the name is ``caller -> callee``.
        file: Source file, relative to the folder that holds the package (``crafter/env.py``).
        line: First line of the definition, from 1.
        owner: Name of the class that owns it, empty for a plain function.
    """

    name: str
    file: str
    line: int
    owner: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All functions of a scope; a function's id is its position.

    Attributes:
        functions: In sorted order, so that ids are the same in every process.
        scheme: How calls are told apart.
    """

    functions: tuple[Function, ...]
    scheme: Scheme

    @classmethod
    def of(cls, functions: Iterable[Function], scheme: Scheme) -> "Catalogue":
        """Make a catalogue of the distinct functions given, in sorted order."""
        return cls(tuple(sorted(set(functions))), scheme)

    def __len__(self) -> int:
        """Return the number of functions."""
        return len(self.functions)

    @cached_property
    def sha256(self) -> str:
        """Content hash over scheme and functions, nothing else."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {function.name: index for index, function in enumerate(self.functions)}

    def name(self, function_id: int) -> str:
        """Return the qualified name of an id."""
        return self.functions[function_id].name

    def resolve(self, name: str) -> int:
        """Return the id of a function named in full or by any unique suffix.

        A suffix starts at a part's border: ``Plant.damage`` and ``damage`` match
        ``crafter.objects:Plant.damage``; ``age`` does not.

        Raises:
            InputError: If no function or more than one has that name; says which come close.
        """
        if name in self._ids:
            return self._ids[name]
        ends = tuple(border + name for border in ".:")
        found = [index for full, index in self._ids.items() if full.endswith(ends)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(self.name(index) for index in found[:5])
            raise InputError(f"{name!r} names {len(found)} functions: {names}; write more of it.")
        from difflib import get_close_matches

        near = get_close_matches(name, [full.split(":")[-1] for full in self._ids], n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else "."
        raise InputError(f"No recorded function is named {name!r}{hint}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value from which :meth:`from_json` makes an equal catalogue."""
        return {"scheme": self.scheme, "functions": [asdict(item) for item in self.functions]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Catalogue":
        """Make a catalogue of what :meth:`to_json` returned.

        Raises:
            InputError: If the value does not have that form.
        """
        try:
            return cls(tuple(Function(**item) for item in value["functions"]), value["scheme"])
        except (KeyError, TypeError) as error:
            raise InputError(f"This is not a function catalogue: {error}.") from error
