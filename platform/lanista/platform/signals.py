"""Ending in order when a job is stopped."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = {signal.SIGTERM}
_handled = threading.Event()


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM, which a stopped job gets, like Ctrl-C while the block runs.

    Processes that are forked meanwhile, by a game for instance, end by SIGTERM as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    nested = _handled.is_set()
    before = signal.signal(signal.SIGTERM, interrupt)
    _handled.set()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if not nested:
            _handled.clear()


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Put the handlers of SIGTERM and Ctrl-C back after a block that sets its own.

    Ray takes SIGTERM over when it starts, and then ends the process with a dump of its stack.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            # None is a handler that was set outside Python, which cannot be set again from here.
            if handler is not None:
                signal.signal(number, handler)


def _hold() -> None:
    # A signal that reached a child before its handler is gone would be lost: Python drops it.
    if _handled.is_set():
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _go_on() -> None:
    if _handled.is_set():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _begin_child() -> None:
    if _handled.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _handled.clear()


os.register_at_fork(before=_hold, after_in_parent=_go_on, after_in_child=_begin_child)
