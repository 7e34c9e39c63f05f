"""A record of a play's actions on disk, for plays that take their process with them."""

import json
from pathlib import Path
from typing import Any, TextIO

from lanista.evaluation.findings import plain_action


class JournaledEnv:
    """An environment that writes each action to a file before it is taken.

    A hang or a crash of the interpreter leaves no record in memory; its actions are what this
    file holds, the last of them the one that broke the game.
    """

    def __init__(self, env: Any, file: Path) -> None:
        self._env = env
        self._path = file
        self._file: TextIO | None = None

    def reset(self, **arguments: Any) -> Any:
        """Begin the record anew and reset the game."""
        if self._file is not None:
            self._file.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("w", encoding="utf-8")
        return self._env.reset(**arguments)

    def step(self, action: Any) -> Any:
        """Note the action, then take it."""
        assert self._file is not None, "reset comes before step"
        self._file.write(json.dumps(plain_action(action)) + "\n")
        self._file.flush()
        return self._env.step(action)

    def close(self) -> None:
        """Close the record and the game."""
        if self._file is not None:
            self._file.close()
        self._env.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


def read_journal(file: Path) -> tuple[int | tuple[float, ...], ...]:
    """Return the actions noted so far, none where there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except OSError:
        return ()
    # What follows the last line break is empty, or was cut in the middle.
    return tuple(plain_action(json.loads(line)) for line in lines[:-1])
