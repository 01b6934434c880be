"""How much of a run was made and what it has cost so far: the bar shows nothing that depends on the data."""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Protocol, TextIO

from sfumato.accounting import epsilon as accounted
from sfumato.core.events import PrivacyEvent, Repeated
from sfumato.core.exact import decimal_up

__all__ = ["Bar", "Spending", "bar"]

POINTS = 20


class Spending:
    """The ε of the steps made so far, at the δ of the run; computed at twenty points, and read off the next one.

    Of ``steps`` every ``every``-th is an event for a unit; each step is one if not said. Guarantee: at least the ε of
    the steps that were made, and at most that of the run. Public.

    >>> from sfumato.accounting import plan
    >>> spending = Spending(plan(sigma=2, steps=40), Fraction(1, 10**5), Fraction(99))
    >>> [float(round(spending.after(step), 2)) for step in (0, 1, 2, 40)]
    [0.0, 2.94, 2.94, 99.0]
    """

    def __init__(
        self, event: PrivacyEvent, delta: Fraction, whole: Fraction, *, steps: int = 0, every: int = 1
    ) -> None:
        self._event, self._delta, self._whole, self._every = event, delta, whole, every
        steps = steps or event.times if isinstance(event, Repeated) else 1
        self._steps = sorted({-(-steps * point // POINTS) for point in range(1, POINTS + 1)})
        self._known: dict[int, Fraction] = {steps: whole}

    def after(self, step: int) -> Fraction:
        """The ε after a number of steps, rounded up to the next point."""
        if step <= 0:
            return Fraction(0)
        if not isinstance(self._event, Repeated):
            return self._whole
        point = self._steps[min(bisect_left(self._steps, step), len(self._steps) - 1)]
        if point not in self._known:
            some = Repeated(event=self._event.event, times=-(-point // self._every))
            self._known[point] = min(accounted(some, delta=self._delta), self._whole)
        return self._known[point]

    @property
    def curve(self) -> tuple[tuple[int, Fraction], ...]:
        """The points: how many steps, and the ε after them."""
        return tuple((step, self.after(step)) for step in self._steps)


class Bar(Protocol):
    """What is shown of the steps that were made."""

    def __call__(self, step: int) -> None:
        """This many steps were made and may be shown."""
        ...


@contextmanager
def bar(name: str, steps: int, spending: Spending, *, shown: bool | None) -> Iterator[Bar]:
    """A bar of steps with the ε so far, where somebody looks; on every other screen nothing."""
    if shown is None:
        shown = sys.stderr is not None and sys.stderr.isatty()
    if not shown:
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    spent = TextColumn("ε {task.fields[spent]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), spent, TimeRemainingColumn())
    with _screen() as screen, Progress(*columns, console=Console(file=screen)) as progress:
        task = progress.add_task(f"training on {name}", total=steps, spent="0")

        def told(step: int) -> None:
            progress.update(task, completed=step, spent=decimal_up(spending.after(step), 2))

        yield told


@contextmanager
def _screen() -> Iterator[TextIO]:
    """A way of its own to where errors go: what a step prints is silenced, and the bar is not."""
    try:
        own = os.dup(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # a notebook's output is no file
        yield sys.stderr
        return
    with os.fdopen(own, "w", encoding=sys.stderr.encoding, errors="replace") as file:
        yield file
