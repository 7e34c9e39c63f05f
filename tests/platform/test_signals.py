"""SIGTERM ends this process in order, and what it forked as before."""

import multiprocessing
import os
import signal
import time

import pytest

from lanista.platform.signals import interruptible


def stop_self() -> None:
    with interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)


def test_sigterm_is_an_interruption_while_the_block_runs() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        stop_self()
    assert signal.getsignal(signal.SIGTERM) is before


def test_processes_that_a_game_forked_end_by_the_signal_itself() -> None:
    with interruptible():
        for _ in range(10):
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
            child.start()
            child.terminate()
            child.join(20)
            assert child.exitcode == -signal.SIGTERM
