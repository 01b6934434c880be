"""Intervals of a number that is shown only because it lies in a range: the noise distribution, given that it does.

Proof: docs/proofs/selection.md
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.inference.linear_combination import LinearCombination

__all__ = ["ShownRange", "truncated_ends"]

FAR = 1000  # standard deviations: beyond this no end is looked for
Tail = Callable[[int], tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRange:
    """The range that a number must lie in to be shown; None where it has no such end."""

    low: Fraction | None = None
    low_in: bool = True
    high: Fraction | None = None
    high_in: bool = True

    def above(self, end: Fraction, *, including: bool) -> "ShownRange":
        """Cut from below."""
        if self.low is not None and (self.low, not self.low_in) >= (end, not including):
            return self
        return ShownRange(low=end, low_in=including, high=self.high, high_in=self.high_in)

    def below(self, end: Fraction, *, including: bool) -> "ShownRange":
        """Cut from above."""
        if self.high is not None and (self.high, self.high_in) <= (end, including):
            return self
        return ShownRange(low=self.low, low_in=self.low_in, high=end, high_in=including)


def truncated_ends(
    form: LinearCombination, kept: ShownRange, confidence: Fraction, *, least: Fraction | None = None
) -> tuple[int | float | Fraction, int | float | Fraction]:
    """Every true number for which what is seen is not among the rarest, *given that it was shown*.

    Guarantee: given that the number lies in the range, the interval covers the true one with ``confidence``. Assumes:
    noise that is symmetric and whose tails fall ever faster (log-concave), as all added noise here is. ``least`` is
    what the true number is known not to be below.
    """
    if not form.noises:
        return _plain(form.value), _plain(form.value)
    step, tail = _tail(form)
    doubt = (1 - confidence) / 2
    below = None if kept.low is None else _steps(form.value - kept.low, step, including=kept.low_in)
    above = None if kept.high is None else _steps(kept.high - form.value, step, including=kept.high_in)

    def possible(steps: int, *, up: bool) -> bool:
        """Whether a true number this many steps under what is seen (above it, with ``up``) leaves this much chance."""
        near, far = (above, below) if up else (below, above)
        last = None if far is None else steps + far
        rarer = _between(tail, steps, last)[1]
        shown = _between(tail, None if near is None else steps - near, last)[0]
        return rarer >= doubt * shown

    low: int | float | Fraction = -math.inf
    high: int | float | Fraction = math.inf
    most = None if least is None else max(0, math.floor((form.value - least) / step))
    far = math.ceil(FAR * _deviation(form) / step) + FAR
    down = _last(lambda steps: possible(steps, up=False), most, far)
    if down is not None:
        low = _plain(form.value - down * step)
    elif least is not None:
        low = _plain(least)
    if least is not None and low < least:
        low = _plain(least)
    up = _last(lambda steps: possible(steps, up=True), None, far)
    if up is not None:
        high = _plain(form.value + up * step)
    return low, max(high, low)


def _tail(form: LinearCombination) -> tuple[Fraction, Tail]:
    """The step of the noise in a form, and an enclosure of P(noise > a number of steps), for steps from 0 on."""
    if len(form.noises) == 1:
        ((noise, coefficient),) = form.noises.items()
        law = noise.law

        def exact(steps: int) -> tuple[Fraction, Fraction]:
            found = law.tail(steps)  # type: ignore[attr-defined]  # of a law on whole numbers
            return found.low / 2, found.high / 2

        return abs(coefficient), exact
    spread = form.spread()
    step = spread.step if spread.whole else Fraction(spread.deviation) / 200

    def enclosed(steps: int) -> tuple[Fraction, Fraction]:
        beyond = 1 - Fraction(spread.within(steps * step))  # rounded up, by at most 10⁻⁶ and a little
        low = max(Fraction(0), 1 - Fraction(spread.within((steps + 1) * step)) - Fraction(2, 10**6))
        return low / 2, beyond / 2

    return step, enclosed


def _beyond(tail: Tail, steps: int) -> tuple[Fraction, Fraction]:
    """An enclosure of P(noise ≥ this many steps)."""
    if steps >= 1:
        return tail(steps - 1)
    low, high = tail(-steps)
    return 1 - high, 1 - low


def _between(tail: Tail, first: int | None, last: int | None) -> tuple[Fraction, Fraction]:
    """An enclosure of P(first ≤ noise ≤ last)."""
    low, high = (Fraction(1), Fraction(1)) if first is None else _beyond(tail, first)
    least, most = (Fraction(0), Fraction(0)) if last is None else _beyond(tail, last + 1)
    return max(Fraction(0), low - most), max(Fraction(0), high - least)


def _steps(distance: Fraction, step: Fraction, *, including: bool) -> int:
    """How many whole steps fit into a distance."""
    found = math.floor(distance / step)
    return found - 1 if not including and found * step == distance else found


def _last(possible: Callable[[int], bool], most: int | None, far: int) -> int | None:
    """The last number of steps that is possible, each before it being so too; None where that is none or no end."""
    if not possible(0):
        return 0
    low, high = 0, 1
    while possible(high):
        if most is not None and high >= most:
            return most
        if high > far:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return low if most is None else min(low, most)


def _deviation(form: LinearCombination) -> Fraction:
    squares = sum((c * c * noise.law.variance for noise, c in form.noises.items()), Fraction(0))
    return enclosures.sqrt(squares).high


def _plain(value: Fraction) -> int | Fraction:
    return int(value) if value.denominator == 1 else value
