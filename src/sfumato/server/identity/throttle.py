"""How often somebody may try: a few times at once, then one more after a number of seconds."""

import threading
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Throttle"]

MOST_NAMES = 10_000


class Throttle:
    """Counts tries by name: ``burst`` at once, one more every ``seconds``. Safe for threads.

    >>> now = [0.0]
    >>> tries = Throttle(burst=2, seconds=10, now=lambda: now[0])
    >>> [tries.taken("ada") for _ in range(3)]
    [True, True, False]
    >>> now[0] = 10.0
    >>> tries.taken("ada"), tries.taken("ada")
    (True, False)
    """

    def __init__(self, *, burst: int, seconds: float, now: Callable[[], float]) -> None:
        self._burst, self._seconds, self._now = burst, seconds, now
        self._full: OrderedDict[str, float] = OrderedDict()
        self._turn = threading.Lock()

    def taken(self, name: str) -> bool:
        """Take one try of a name, if it has one left."""
        now, span = self._now(), self._burst * self._seconds
        with self._turn:
            full = max(self._full.pop(name, now), now) + self._seconds
            allowed = full <= now + span
            self._full[name] = full if allowed else full - self._seconds
            while len(self._full) > MOST_NAMES:
                self._full.popitem(last=False)
        return allowed

    def forget(self, name: str) -> None:
        """Give a name all its tries back, as after a right password."""
        with self._turn:
            self._full.pop(name, None)
