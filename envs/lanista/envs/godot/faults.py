"""What a Godot game does wrong while it plays: findings for whoever tests it.

None of these is a ``LanistaError``: the person at the command line made no mistake, the game did.
The rollout turns each into a finding, with the actions that lead to it.
"""


class GameFault(Exception):  # noqa: N818 - the family is named by what happened
    """Base of everything that a game can do wrong while it plays.

    Attributes:
        last_output: The last lines that the engine printed before it happened, errors included;
            empty where it printed nothing.
    """

    def __init__(self, message: str, last_output: str = "") -> None:
        super().__init__(message)
        self.last_output = last_output

    def __reduce__(self) -> tuple[type["GameFault"], tuple[str, str]]:
        """Keep the output when the fault crosses a process boundary."""
        return type(self), (str(self), self.last_output)


class GameCrashed(GameFault):
    """The engine ended while it was being played: a signal, an exit code, or a quit by the game."""


class GameOutOfMemory(GameCrashed):
    """The engine went over its memory limit, or the system ended it for want of memory."""


class GameHung(GameFault):
    """The engine did not answer in time; it has been ended."""


class GameScriptError(GameFault):
    """A script of the game raised an error, and the caller asked for errors to be faults."""


class GameProtocolError(GameFault):
    """The game sent something that the protocol or its own declared spaces do not allow."""
