"""Code that sees data: whatever it raises ends here, and only a real Ctrl-C goes on."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from enum import Enum
from types import FrameType
from typing import Final, Literal, TypeVar

from sfumato.errors import Refused

__all__ = ["FAILED", "Failed", "attempt", "check_outside", "signals"]

Result = TypeVar("Result")
_SEES_DATA: ContextVar[bool] = ContextVar("sees data", default=False)


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
    with signals() as arrived:
        try:
            result = copy_context().run(_seeing, work)  # what it sets in this context is gone with the copy
        except BaseException:  # noqa: BLE001 - every exception may depend on a row
            result = FAILED
    if arrived:
        raise KeyboardInterrupt
    return result


def check_outside() -> None:
    """Refuse a call that comes from code that sees data: what it asks, declares or spends would depend on a row.

    >>> check_outside()
    >>> attempt(check_outside) is FAILED
    True
    """
    if _SEES_DATA.get():
        raise Refused(
            "a vault is not asked by code that sees data (a model, a loss, a teacher): nothing was declared, read or "
            "spent. Ask before or after it runs."
        )


def _seeing(work: Callable[[], Result]) -> Result:
    _SEES_DATA.set(True)
    return work()


@contextmanager
def signals() -> Iterator[list[int]]:
    """Note interrupts that arrive while the block runs. Python hands signals to the main thread alone."""
    arrived: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield arrived
        return

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield arrived
    finally:
        signal.signal(signal.SIGINT, before)
