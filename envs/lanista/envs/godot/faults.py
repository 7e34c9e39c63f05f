"""What a Godot game does wrong while it plays: findings for whoever tests it.

Each says what kind of finding it is (``fault_kind``) and where in the game it came from
(``fault_place``), which is what tells findings apart.

None of these is a ``LanistaError``: the person at the command line made no mistake, the game did.
The rollout turns each into a finding, with the actions that lead to it.
"""

import re

_PLACE = re.compile(
    r"(?:at: (?P<before>[^\s(]+) \()?res://(?P<file>[^:()]+):(?P<line>\d+)"
    r"(?: in (?P<function>[^\s()]+))?"
)


class GameFault(Exception):  # noqa: N818 - the family is named by what happened
    """Base of everything that a game can do wrong while it plays.

    Attributes:
        last_output: The last lines that the engine printed before it happened, errors included;
            empty where it printed nothing.
    """

    fault_kind = "exception"

    def __init__(self, message: str, last_output: str = "") -> None:
        super().__init__(message)
        self.last_output = last_output

    @property
    def fault_place(self) -> str:
        """``script.gd:line:function`` as far as the message names it, else ``engine``."""
        found = _PLACE.search(str(self))
        if found is None:
            return "engine"
        function = found["function"] or found["before"] or ""
        return ":".join(filter(None, (found["file"], found["line"], function)))

    def __reduce__(self) -> tuple[type["GameFault"], tuple[str, str]]:
        """Keep the output when the fault crosses a process boundary."""
        return type(self), (str(self), self.last_output)


class GameCrashed(GameFault):
    """The engine ended while it was being played: a signal, an exit code, or a quit by the game."""

    fault_kind = "crash"


class GameOutOfMemory(GameCrashed):
    """The engine went over its memory limit, or the system ended it for want of memory."""


class GameHung(GameFault):
    """The engine did not answer in time; it has been ended."""

    fault_kind = "hang"


class GameScriptError(GameFault):
    """A script of the game raised an error, and the caller asked for errors to be faults."""


class GameProtocolError(GameFault):
    """The game sent something that the protocol or its own declared spaces do not allow."""
