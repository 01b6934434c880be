"""A KeyboardInterrupt that code raises is not a Ctrl-C."""

import os
import signal
import threading

import pytest

from sfumato.core.interrupts import FAILED, attempt


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException, ValueError, MemoryError]
)
def test_whatever_code_raises_ends_there(raised):
    def work():
        raise raised("a row")

    assert attempt(work) is FAILED


def test_a_real_signal_is_passed_on_without_a_trace_of_the_code():
    def work():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**7):
            pass

    with pytest.raises(KeyboardInterrupt) as caught:
        attempt(work)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    frames = [entry.name for entry in caught.traceback]
    assert "work" not in frames


def test_a_real_signal_that_code_swallows_is_passed_on():
    def work():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**7):
                pass
        except KeyboardInterrupt:
            return 1
        return 0

    with pytest.raises(KeyboardInterrupt):
        attempt(work)


def test_the_handler_that_was_there_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    attempt(lambda: attempt(lambda: 1 / 0))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_nested_attempt_passes_a_signal_through_both():
    def work():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**7):
            pass

    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: attempt(work))


def test_in_another_thread_nothing_is_a_signal():
    outcomes = []

    def work():
        raise KeyboardInterrupt

    thread = threading.Thread(target=lambda: outcomes.append(attempt(work)))
    thread.start()
    thread.join()
    assert outcomes == [FAILED]
