"""The errors that Lanista raises on purpose: one sentence that says what, where and what to do."""


class LanistaError(Exception):
    """Base of every error that Lanista raises on purpose; its text is one sentence for a person."""

    exit_code = 1


class InputError(LanistaError):
    """Refused before any work began: bad arguments, a bad file, missing or corrupt input.

    ``problems`` holds one line per thing that is wrong, so that all are reported at once.
    """

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, ...]]:
        """Keep every problem when the error crosses a process boundary."""
        return type(self), self.problems


class RunError(LanistaError):
    """Something failed while work was going on; what had been done so far is kept."""
