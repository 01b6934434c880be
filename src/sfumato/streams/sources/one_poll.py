"""One poll at a time: two that run at once would read an event twice."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import Refused

__all__ = ["one_poll"]


@contextmanager
def one_poll(turn: threading.Lock, what: str) -> Iterator[None]:
    """Poll alone, until the events were taken; refused while another poll runs, in whichever thread.

    Refused and not waited for: the other poll may be half taken by the very thread that asks.

    >>> turn = threading.Lock()
    >>> with one_poll(turn, "visits"), one_poll(turn, "visits"):
    ...     pass
    Traceback (most recent call last):
    sfumato.errors.Refused: visits is being polled already, and two polls at once would read events twice; ...
    """
    if not turn.acquire(blocking=False):
        raise Refused(
            f"{what} is being polled already, and two polls at once would read events twice; nothing was read. Take "
            "all events of the other poll first."
        )
    try:
        yield
    finally:
        turn.release()
