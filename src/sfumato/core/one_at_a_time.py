"""One at a time: threads that are after the same thing wait for each other; all others go on."""

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

__all__ = ["one_at_a_time"]

_turn = threading.Lock()
_held: dict[Hashable, tuple["threading.RLock", int]] = {}  # the lock of each thing, and how many are after it


@contextmanager
def one_at_a_time(thing: Hashable) -> Iterator[None]:
    """Hold what only one thread of this process may hold; the others that are after the same thing wait.

    Guarantee: blocks under the same ``thing`` never overlap, and nothing is kept of a thing that nobody is after.

    >>> with one_at_a_time(("ledger", "question")):
    ...     len(_held)
    1
    >>> len(_held)
    0
    """
    with _turn:
        lock, after = _held.get(thing) or (threading.RLock(), 0)  # a thread does not wait for itself
        _held[thing] = (lock, after + 1)
    try:
        with lock:
            yield
    finally:
        with _turn:
            lock, after = _held.pop(thing)
            if after > 1:
                _held[thing] = (lock, after - 1)


def _forked() -> None:
    """Threads do not survive a fork: in the child nobody holds anything."""
    global _turn
    _turn = threading.Lock()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
