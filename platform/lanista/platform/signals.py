"""Ending in order when a job is stopped."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM, which a stopped job gets, like Ctrl-C while the block runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    owner = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != owner:
            # A process that a game forked ends as it would have without us.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
