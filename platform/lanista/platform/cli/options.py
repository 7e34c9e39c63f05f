"""Options that mean the same in every command."""

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output and nothing else there."),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", min=0, help="Seed that every random draw of this command is spawned from."
    ),
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        envvar="LANISTA_ROOT",
        help="Folder that holds datasets/, runs/ and the tracking database; here by default.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a field of the file: train.steps=500."
    ),
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", help="Named set of overrides that the file holds.")
]


_MOST_WORLDS, _LAST_WORLD = 100_000, 2**31 - 1


def parse_worlds(text: str) -> list[int]:
    """Read a list or range of worlds: ``7``, ``0-49``, ``1,5,10-12``.

    Raises:
        InputError: If it is not such a list.
    """
    from lanista.envs.errors import InputError

    worlds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"Worlds {text!r} are no list or range such as 7, 0-49 or 1,5,10-12.")
        start, stop = int(first), int(last) if dash else int(first)
        if stop < start:
            raise InputError(f"Worlds {part.strip()!r} run backwards; write {stop}-{start}.")
        if stop - start >= _MOST_WORLDS or stop > _LAST_WORLD:
            raise InputError(
                f"Worlds {part.strip()!r} are too many or too high; {_MOST_WORLDS} at most, "
                f"up to {_LAST_WORLD}."
            )
        worlds.extend(range(start, stop + 1))
    if len(set(worlds)) != len(worlds):
        raise InputError(f"Worlds {text!r} name a world twice.")
    return worlds
