"""Code that sees data, within what puts things back: what it made dies first, and all that goes wrong is one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Literal, TypeVar

from sfumato.core.interrupts import Failed, attempt

__all__ = ["shielded"]

Result = TypeVar("Result")


def shielded(work: Callable[[], Result], *kept: AbstractContextManager[object]) -> Result | Literal[Failed.FAILED]:
    """Run code that sees data within some contexts, and return its result or ``FAILED``.

    Guarantee: as :func:`~sfumato.core.interrupts.attempt`, of the code and of the contexts. An exception that the code
    raises is dead, and so is what its frames held, before the contexts are left: what ``__del__`` writes is put back.
    Assumes: the result holds nothing of the code's (a number, or tensors that were made here). Sensitive: the result.

    >>> from sfumato.learning.unchanged import Unchanged
    >>> seen = []
    >>> shielded(lambda: seen.append(1) or len(seen), Unchanged(seen)), seen
    (1, [])
    """

    def within() -> Result | Literal[Failed.FAILED]:
        with ExitStack() as stack:
            for each in kept:
                stack.enter_context(each)
            return attempt(work)

    return attempt(within)
