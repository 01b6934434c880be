"""What can be said of the error of a ladder: for every graph from public facts, or from bounds of its rungs.

The law itself depends on the data and is as private as they are. Proof: docs/proofs/ladder.md
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.ladder_widths import Rungs
from sfumato.core.search import least_whole, over
from sfumato.laws.margins import WholeNumberLaw, level_of
from sfumato.laws.tails import exponential

__all__ = ["LadderBound", "bounded_margin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderBound(WholeNumberLaw):
    """No rung is wider than ``widest``: P(|z| > j·widest) ≤ r^j, r = exp(−ε/2), whatever the data.

    Guarantee: an upper bound of every tail, margin, variance and mean error; the error of most data is far smaller.

    >>> law = LadderBound(epsilon=Fraction(1), widest=100)
    >>> law.margin(0.95), law.covers(600, 0.95), law.covers(599, 0.95)
    (600, True, False)
    """

    KIND: ClassVar[str] = "law.ladder_bound"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    widest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        natural(self.widest, "widest")

    def tail(self, size: int) -> Enclosure:
        """P(|z| > size), of which only an upper bound is known."""
        rungs = natural(size, "size", least=0) // self.widest
        return Enclosure(Fraction(0), min(Fraction(1), exponential(rungs * self.epsilon / 2).high))

    @property
    def variance(self) -> Fraction:
        """At most widest²·(1 + r)/(1 − r)²."""
        r = self._ratio()
        return self.widest**2 * (1 + r) / (1 - r) ** 2

    @property
    def mean_absolute_error(self) -> Fraction:
        """At most widest/(1 − r)."""
        return self.widest / (1 - self._ratio())

    def quantile(self, level: Exact) -> int:
        """A whole number that the error is at most with at least this probability; symmetric."""
        wanted = level_of(level)
        if 2 * wanted == 1:
            return 0
        side = max(wanted, 1 - wanted)
        size = least_whole(lambda m: over(self.tail(m).high, 2 * (1 - side)), near=self.widest)
        return size if 2 * wanted > 1 else -size

    def _ratio(self) -> Fraction:
        return exponential(self.epsilon / 2, bits=128 + (1 / self.epsilon).__ceil__().bit_length()).high


def bounded_margin(bounds: Iterable[tuple[Rungs, Rungs]], epsilon: Fraction, confidence: Fraction) -> int:
    """The least m with P(|z| > m) ≤ 1 − confidence for every ladder whose widths lie between one of some bounds.

    Guarantee: what lies beyond m weighs at most what it weighs for the upper widths, and what lies within m at least
    what it weighs for the lower ones of the same pair.

    >>> from sfumato.core.ladder_widths import WidthSteps
    >>> rungs = Rungs.of([WidthSteps(0, 1, 1, 100)])
    >>> bounded_margin([(rungs, rungs)], Fraction(1), Fraction(19, 20))
    599
    """
    doubt, margin = 1 - level_of(confidence), 0
    for lower, upper in bounds:
        least, most = _Mass(lower, epsilon), _Mass(upper, epsilon)

        def excess(m: int, least: _Mass = least, most: _Mass = most) -> float:
            beyond, within = most.beyond(m).high, least.all.low - 2 * least.beyond(m).high
            return over(2 * beyond, doubt * (2 * beyond + max(within, Fraction(1))))

        if excess(margin) > 0:
            margin = least_whole(excess, near=max(1, int(2 * upper.width(0) / epsilon)))
    return margin


class _Mass:
    """The weights of a ladder, in units of the weight of its centre."""

    def __init__(self, rungs: Rungs, epsilon: Fraction) -> None:
        self._rungs, self._rate = rungs, epsilon / 2
        self._bits = 128 + (1 / self._rate).__ceil__().bit_length()
        self._ratio = self._power(1)
        self.all = (2 * self.beyond(0) + 1).outward(bits=256)

    def beyond(self, m: int) -> Enclosure:
        """What lies further than m from the centre on one side."""
        rungs = self._rungs
        if not rungs.runs:
            return Enclosure(Fraction(0), Fraction(0))
        t = rungs.rung(m)
        later = self._power(t + 1) * rungs.width(t)
        for run in rungs.runs:
            left = min(run.count, (run.last - t + run.step - 1) // run.step) if run.last > t else 0
            if not left:
                continue
            first = run.last - run.step * (left - 1)
            some = self._power(first + 1) * run.amount
            if left > 1:
                some = some * (1 - self._power(run.step * left)) / (1 - self._power(run.step))
            later = (later + some).outward(bits=256)
        rest = self._power(t) * (rungs.reach(t) - m)
        return (later / (1 - self._ratio) + rest).outward(bits=256)

    def _power(self, places: int) -> Enclosure:
        return exponential(self._rate * places, bits=self._bits)
