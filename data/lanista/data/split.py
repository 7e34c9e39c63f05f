"""Which side of the training border a play is on."""

import hashlib
from typing import Literal, get_args

from lanista.envs.errors import InputError

Split = Literal["train", "validation", "test"]

FRACTIONS: dict[Split, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""Expected share of the matches on each side."""


def split_of(episode_id: str) -> Split:
    """Return the side of a match, by a hash of its id: the same for all its seats and steps.

    The hash is read as a number in [0, 1) and falls into the intervals that ``FRACTIONS`` lays
    end to end. Adding matches never moves one that was there before.
    """
    digest = hashlib.sha256(f"split:{episode_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    border = 0.0
    for side, fraction in FRACTIONS.items():
        border += fraction
        if place < border:
            return side
    return "test"


def check_split(name: str) -> Split:
    """Return a side's name as such.

    Raises:
        InputError: If there is no such side.
    """
    for side in get_args(Split):
        if side == name:
            return side  # type: ignore[no-any-return]
    raise InputError(f"There is no split {name!r}; there are {', '.join(FRACTIONS)}.")
