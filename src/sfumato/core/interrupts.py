"""Code that sees data: whatever it raises ends here, and only a real Ctrl-C goes on."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from enum import Enum
from typing import Final, Literal, TypeVar

__all__ = ["FAILED", "Failed", "attempt"]

Result = TypeVar("Result")


class Failed(Enum):
    """The outcome of code that raised. It refers to nothing that was raised."""

    FAILED = "failed"


FAILED: Final = Failed.FAILED


def attempt(work: Callable[[], Result]) -> Result | Literal[Failed.FAILED]:
    """Run code that sees data, and return its result or ``FAILED``.

    Guarantee: nothing that the code raises leaves, be it ``KeyboardInterrupt``, ``SystemExit`` or any other exception:
    neither the object, which may quote a row, nor its kind. A signal that reaches this process (Ctrl-C) raises a new
    ``KeyboardInterrupt`` even if the code caught the first one; it refers to no frame of that code. Assumes: the code
    sends no signal to its own process. Sensitive: the code and its result. Whether it failed is for the caller to
    keep to itself.

    >>> def raises():
    ...     raise KeyboardInterrupt
    >>> attempt(raises) is FAILED, attempt(lambda: 7)
    (True, 7)
    """
    result: Result | Literal[Failed.FAILED] = FAILED
    with _signals() as arrived:
        try:
            result = copy_context().run(work)  # what it sets in this context is gone with the copy
        except BaseException:  # noqa: BLE001 - every exception may depend on a row
            result = FAILED
    if arrived:
        raise KeyboardInterrupt
    return result


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Note interrupts that arrive while the block runs. Python hands signals to the main thread alone."""
    arrived: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield arrived
        return

    def note(number: int, frame: object) -> None:
        arrived.append(number)
        before(number, frame)  # type: ignore[arg-type]

    signal.signal(signal.SIGINT, note)
    try:
        yield arrived
    finally:
        signal.signal(signal.SIGINT, before)
