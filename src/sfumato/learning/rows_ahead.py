"""Parts of steps as they are computed, and a thread that reads the next one while one is computed.

A step is cut into parts of one fixed shape. Where rows are read from a file, the next part, be it of the same step or
of the one after it, is read meanwhile: no more than two parts are in memory.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.learning.laid import Laid

__all__ = ["Gather", "RowsAhead", "parts_of"]

Batch = tuple[tuple[Tensor, ...], Tensor, Tensor]
Gather = Callable[[], Batch]
Places = npt.NDArray[np.int64]


def parts_of(laid: Laid, places: Places, physical: int, step: int) -> list[Gather]:
    """The units of a step in parts of one fixed shape; what is left of the last part is filled up and absent.

    Each part is gathered when it is asked for, into memory of its own.

    >>> laid = Laid((torch.arange(5.0)[:, None],), torch.arange(5), 5)
    >>> [part()[1].tolist() for part in parts_of(laid, np.array([4, 0, 2]), 2, 0)]
    [[4, 0], [2, 2]]
    """
    found: list[Gather] = []
    for start in range(0, len(places), physical):
        some = places[start : start + physical]
        units = torch.from_numpy(np.resize(some, physical))
        rows, here = laid.rows_of(units, torch.arange(physical) < len(some))
        found.append(partial(laid.gathered, rows, here, step))
    return found


class RowsAhead:
    """Reads the parts of a run's steps, each one while the part before it is computed.

    ``draw(step)`` gives the sample of a step, in order of the steps, each once; that of the next step is drawn when the
    last part of one was handed out. Guarantee: the parts are those of :func:`parts_of`; no code of the user runs in the
    thread. Sensitive: all of it.

    >>> laid = Laid((torch.arange(5.0)[:, None],), torch.arange(5), 5)
    >>> ahead = RowsAhead(laid, lambda step: np.array([step, 4]), physical=2)
    >>> [[part()[1].tolist() for part in ahead.parts(step, last=step == 1)] for step in range(2)]
    [[[0, 4]], [[1, 4]]]
    >>> ahead.close()
    """

    def __init__(self, laid: Laid, draw: Callable[[int], Places], *, physical: int) -> None:
        self._laid, self._draw, self._physical = laid, draw, physical
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rows")
        self._planned: tuple[int, list[Gather]] | None = None
        self._coming: Future[Batch] | None = None

    def parts(self, step: int, *, last: bool) -> Iterator[Gather]:
        """The parts of a step; asked for again, a part is gathered anew. After the ``last`` step nothing is drawn."""
        if self._planned is None or self._planned[0] != step:
            self._planned, self._coming = (step, self._plan(step)), None
        (_, parts), self._planned = self._planned, None
        for place, part in enumerate(parts):
            coming = self._thread.submit(part) if self._coming is None else self._coming
            if place + 1 < len(parts):
                self._coming = self._thread.submit(parts[place + 1])
            else:
                self._coming = None if last else self._next(step + 1)
            yield _first(coming, part)
        if not parts and not last:
            self._coming = self._next(step + 1)

    def close(self) -> None:
        """End the thread; what it has read is forgotten."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._planned = self._coming = None

    def _next(self, step: int) -> Future[Batch] | None:
        self._planned = step, self._plan(step)
        return self._thread.submit(self._planned[1][0]) if self._planned[1] else None

    def _plan(self, step: int) -> list[Gather]:
        return parts_of(self._laid, self._draw(step), self._physical, step)


def _first(coming: Future[Batch], again: Gather) -> Gather:
    """What was read, handed out once; then it is read anew, for whatever it was given to may have written there."""
    ready = [coming]
    return lambda: ready.pop().result() if ready else again()
