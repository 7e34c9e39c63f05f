"""Compiling a numeric kernel once per machine."""

from collections.abc import Callable
from typing import Any, cast

import numba


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Compile ``function`` with Numba and keep the machine code on disk for the next process.

    Floating-point contraction and reordering stay off, since the kernels must agree with stock
    Crafter to the last bit.
    """
    return cast("F", numba.njit(cache=True, fastmath=False)(function))
