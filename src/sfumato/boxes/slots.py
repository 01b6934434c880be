"""Blocks one after the other: each in a box and in a slot of its own, and all answers at one time at the end."""

import contextlib
import math
import secrets
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from sfumato.boxes.box import Box, WarmBox
from sfumato.core.interrupts import FAILED, attempt

__all__ = ["answers_of_blocks", "changing_time"]

_TRIES = 3
_MARGIN = 1.5  # how much longer a box may take to start than it took before


def changing_time(blocks: int, *, late: float = 0.0) -> float:
    """How many seconds a run takes beside its slots, to start boxes and to change them.

    ``late`` is by how much a box may start more slowly than a slot passes, as far as was seen before any data.

    >>> round(changing_time(100), 3), round(changing_time(100, late=0.5), 3)
    (9.5, 59.5)
    """
    return 1 + (0.085 + late) * blocks


def answers_of_blocks(box: Box, code: str, blocks: Sequence[pa.Table]) -> list[tuple[float, ...] | None]:
    """What a program says of each block, in their order; None where it says nothing. Sensitive: all.

    Guarantee: each answer is a function of the code and of one block, as far as a box keeps its word. Blocks run one
    at a time, in an order that nobody knows, and the call ends when the slots and :func:`changing_time` are over; where
    the host is too slow for that, a whole number of changing times later. No program makes it fail: where a box does
    not start in three tries, its block has no answer.
    """
    start, slot = time.monotonic(), float(box.limits.seconds)
    answers: list[tuple[float, ...] | None] = [None] * len(blocks)
    order = sorted(range(len(blocks)), key=lambda _: secrets.token_bytes(16))
    with _BoxAhead(box) as ahead:
        for number, place in enumerate(order):
            with ahead.taken() as ready:
                begun = time.monotonic()
                if number + 1 < len(order):
                    ahead.start()
                answers[place] = _answer(ready, code, blocks[place])
                time.sleep(max(0.0, begun + slot - time.monotonic()))
    behind = max(0.0, _MARGIN * box.starts_in - slot)
    step, late = changing_time(len(blocks), late=behind), time.monotonic() - start - slot * len(blocks)
    time.sleep(max(0.0, step * max(1, math.ceil(late / step)) - late))
    return answers


def _answer(ready: WarmBox | None, code: str, block: pa.Table) -> tuple[float, ...] | None:
    """What one box says, whatever goes wrong."""
    if ready is None:
        return None
    said = attempt(lambda: ready.answer(code, block))
    return None if said is FAILED else said


class _BoxAhead:
    """One box that starts while another one is used; all are gone at the end."""

    def __init__(self, box: Box) -> None:
        self._box, self._opened, self._next = box, contextlib.ExitStack(), None

    _next: WarmBox | None

    def __enter__(self) -> "_BoxAhead":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def start(self) -> None:
        """Start another box; whether that went well shows when it is taken."""
        self._opened = contextlib.ExitStack()
        warm = attempt(lambda: self._opened.enter_context(self._box.warm()))
        self._next = None if warm is FAILED else warm

    @contextlib.contextmanager
    def taken(self) -> Iterator[WarmBox | None]:
        """The box that was started, once it is ready; one that did not get there is started again, now alone."""
        for _ in range(_TRIES):
            ready = self._next
            if ready is not None and attempt(ready.ready) is not FAILED:
                break
            self._opened.close()
            self.start()
        opened, self._opened = self._opened, contextlib.ExitStack()
        ready, self._next = self._next, None
        with opened:
            yield ready
