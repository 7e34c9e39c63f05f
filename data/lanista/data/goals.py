"""Which functions are goals: rules that are applied to data, never lists typed in."""

from collections.abc import Mapping


def recorded_minus_always(
    calls: Mapping[int, tuple[int, int]], whole_steps: int
) -> tuple[int, ...]:
    """Apply the rule ``recorded_minus_always``.

    The paper's goals are the functions recorded without those called whatever the action; read
    here as: called in some step, and not in every step of every play. Calls made by reset are no
    step's. A step that a fault broke off counts for what it called, not for what it did not.

    Args:
        calls: Per function id the number of steps, and of whole steps, in which it was called.
        whole_steps: Number of steps that ran to their end.

    Returns:
        The goals' ids in rising order.
    """
    return tuple(
        sorted(
            function
            for function, (steps, whole) in calls.items()
            if steps and (whole < whole_steps or not whole_steps)
        )
    )
