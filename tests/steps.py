"""Steps at which a process kills itself: before and after whatever could be interrupted."""

import os
import signal
from typing import Any

from sfumato.governance import rows

__all__ = ["Steps"]


class Steps:
    """Counts what could be interrupted in this process from now on, and ends the process at step ``last``.

    Each SQL statement, each commit and each write to the anchor is one before and one after it; so is what
    :meth:`watch` is told of. Called, it counts one more.
    """

    def __init__(self, last: int) -> None:
        self.done, self._last = 0, last
        self.watch(rows, "run", "commit")
        self.watch(os, "pwrite", "fdatasync")

    def __call__(self) -> None:
        """One step more; at the last one nothing comes after it."""
        self.done += 1
        if self.done == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, holder: Any, *names: str) -> None:
        """Count before and after each call of these functions of a module or a class."""
        for name in names:
            setattr(holder, name, self._around(getattr(holder, name)))

    def _around(self, function: Any) -> Any:
        def stepped(*given: Any, **named: Any) -> Any:
            self()
            result = function(*given, **named)
            self()
            return result

        return stepped
