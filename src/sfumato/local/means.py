"""Means of values in [−1, 1]: each person reports a randomised number whose expectation is the own one.

A value is rounded to the nearest of ``steps`` + 1 points from −1 to 1, so that all probabilities are rational; that
moves a mean by at most 1/steps. With s for the number of the point, the value is 2s/steps − 1.
Proof: docs/proofs/local_oracles.md
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import enclosures, events
from sfumato.core.exact import Exact, natural, probability, rational
from sfumato.core.guarantees import Pure
from sfumato.errors import InvalidInput
from sfumato.local.odds import local_epsilon, odds
from sfumato.local.oracle import is_below

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["MEANS", "DuchiMean", "HybridMean", "Mean", "PiecewiseMean"]

STEPS = 1 << 20
MOST_STEPS = 1 << 30


class _Averaged:
    """What all three share."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> Fraction: ...

        @property
        def steps(self) -> int: ...

        @property
        def kinds(self) -> int: ...

        def variance(self, value: Exact) -> Fraction: ...

    def _read(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        natural(self.steps, "steps", most=MOST_STEPS)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one report under two values: rational, at most e^ε."""
        return odds(self.epsilon)

    @property
    def worst_variance(self) -> Fraction:
        """The variance of one report at the value where it is largest: 0, or an end; it is a parabola, even in x."""
        return max(self.variance(0), self.variance(1))

    def loss(self) -> events.Stated:
        """The event of one report: ε-DP for its value, replaced by any other; T reports of one person are T events."""
        return events.Stated(guarantee=Pure(epsilon=self.epsilon))

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a whole number below ``kinds``."""
        return is_below(report, self.kinds)

    def step(self, value: Exact) -> int:
        """The point next to a value; what lies outside [−1, 1] is moved to its end."""
        exact: Fraction | None = None
        with suppress(InvalidInput):  # raised below, where it has no context: that would name the value
            exact = rational(value, "value")
        if exact is None:
            raise InvalidInput("the value is not a finite number; nothing was reported. Give one in [−1, 1].")
        return floor((min(max(exact, Fraction(-1)), Fraction(1)) + 1) * self.steps / 2 + Fraction(1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DuchiMean(_Averaged):
    """Report one bit, 1 with probability (1 + x·(R − 1)/(R + 1))/2, R = odds(ε) ≤ e^ε; it stands for ±(R + 1)/(R − 1).

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the value.
    Duchi, Jordan and Wainwright (2013). Proof: docs/proofs/local_oracles.md

    >>> round(float(DuchiMean(epsilon=1).worst_variance), 3)
    4.683
    """

    KIND: ClassVar[str] = "local.duchi_mean"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    steps: int = STEPS

    def __post_init__(self) -> None:
        self._read()

    @property
    def reach(self) -> Fraction:
        """The largest number that a report can stand for."""
        return (self.ratio + 1) / (self.ratio - 1)

    def variance(self, value: Exact) -> Fraction:
        """The variance of one report: reach² − x²."""
        return self.reach**2 - rational(value, "value") ** 2

    def report(self, value: Exact, bits: "Bits") -> int:
        """Draw the report of one person: 0 or 1; below the same bound, whatever the value."""
        step, (top, bottom) = self.step(value), self.ratio.as_integer_ratio()
        return int(bits.below((top + bottom) * self.steps) < top * step + bottom * (self.steps - step))

    def number(self, report: int) -> Fraction:
        """What a report stands for."""
        return self.reach if report else -self.reach

    def probability(self, report: int, step: int) -> Fraction:
        """The exact probability of a report given the point."""
        one = (self.ratio * step + self.steps - step) / ((self.ratio + 1) * self.steps)
        return one if report else 1 - one

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return 2

    def outputs(self) -> Iterator[int]:
        """Both."""
        return iter(range(self.kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseMean(_Averaged):
    """Report a point of a longer scale: the points of a window around the value are R times as likely as the others.

    The scale has ``steps`` + ``window`` points, and the window of value number s begins at point s. ``calibrated``
    takes window = steps·e^(−ε/2), which is best.

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the value.
    Wang and others (2019), here on a lattice. Proof: docs/proofs/local_oracles.md

    >>> round(float(PiecewiseMean.calibrated(epsilon=1).worst_variance), 3)
    5.224
    """

    KIND: ClassVar[str] = "local.piecewise_mean"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    window: int
    steps: int = STEPS

    def __post_init__(self) -> None:
        self._read()
        natural(self.window, "window", most=self.steps)

    @classmethod
    def calibrated(cls, *, epsilon: Exact, steps: int = STEPS) -> "PiecewiseMean":
        """With the window of least error."""
        exact = local_epsilon(epsilon)
        return cls(epsilon=exact, window=max(1, round(steps / odds(exact / 2))), steps=steps)

    @property
    def points(self) -> int:
        """How many points the scale has."""
        return self.steps + self.window

    @property
    def unit(self) -> Fraction:
        """What one step of the scale stands for."""
        return 2 * self._weight / (self.steps * (self.ratio - 1) * self.window)

    @property
    def _weight(self) -> Fraction:
        return self.window * self.ratio + self.steps

    @property
    def reach(self) -> Fraction:
        """The largest number that a report can stand for."""
        return self.unit * (self.points - 1) / 2

    def variance(self, value: Exact) -> Fraction:
        """The variance of one report; for a value between two points, that of the parabola through all points."""
        x = rational(value, "value")
        middle = x * self.steps / 2  # of the window, from the middle of the scale
        squares = Fraction(self.points * (self.points**2 - 1), 12)
        squares += (self.ratio - 1) * (self.window * middle**2 + Fraction(self.window * (self.window**2 - 1), 12))
        return self.unit**2 * squares / self._weight - x**2

    def report(self, value: Exact, bits: "Bits") -> int:
        """Draw the report of one person: a point."""
        start = self.step(value)
        top, bottom = self.ratio.as_integer_ratio()
        drawn = bits.below(self.window * top + self.steps * bottom)
        if drawn < self.window * top:
            return start + drawn // top
        other = (drawn - self.window * top) // bottom
        return other if other < start else other + self.window

    def number(self, report: int) -> Fraction:
        """What a report stands for."""
        return self.unit * (report - Fraction(self.points - 1, 2))

    def probability(self, report: int, step: int) -> Fraction:
        """The exact probability of a report given the point."""
        return (self.ratio if step <= report < step + self.window else 1) / self._weight

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return self.points

    def outputs(self) -> Iterator[int]:
        """All points."""
        return iter(range(self.kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridMean(_Averaged):
    """Toss a coin first: a piecewise report with probability ``share``, else one of Duchi's.

    With share 1 − e^(−ε/2) the error does not depend on the value, and its worst is below that of both. ``calibrated``
    takes that or, where it is no better (ε up to 0.61), no piecewise reports at all. Report: 0 or 1 is Duchi's,
    2 + point the other.

    Guarantee: ε-DP for the value of one report, replaced by any other; the coin does not look at it. Sensitive: the
    value. Wang and others (2019). Proof: docs/proofs/local_oracles.md

    >>> round(float(HybridMean.calibrated(epsilon=1).worst_variance), 3)
    4.289
    """

    KIND: ClassVar[str] = "local.hybrid_mean"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    window: int
    share: Fraction
    steps: int = STEPS

    def __post_init__(self) -> None:
        self._read()
        natural(self.window, "window", most=self.steps)
        object.__setattr__(self, "share", probability(self.share, "share"))

    @classmethod
    def calibrated(cls, *, epsilon: Exact, steps: int = STEPS) -> "HybridMean":
        """With the window and the share of least worst variance."""
        exact = local_epsilon(epsilon)
        window = PiecewiseMean.calibrated(epsilon=exact, steps=steps).window
        even = Fraction(floor((1 - enclosures.exp(-exact / 2).high) * 2**16), 2**16)
        return min(
            (cls(epsilon=exact, window=window, share=share, steps=steps) for share in (Fraction(0), even)),
            key=lambda asked: asked.worst_variance,
        )

    @property
    def duchi(self) -> DuchiMean:
        """The one part."""
        return DuchiMean(epsilon=self.epsilon, steps=self.steps)

    @property
    def piecewise(self) -> PiecewiseMean:
        """The other part."""
        return PiecewiseMean(epsilon=self.epsilon, window=self.window, steps=self.steps)

    @property
    def reach(self) -> Fraction:
        """The largest number that a report can stand for."""
        if self.share == 1:
            return self.piecewise.reach
        return max(self.duchi.reach, self.piecewise.reach) if self.share else self.duchi.reach

    def variance(self, value: Exact) -> Fraction:
        """The variance of one report."""
        return self.share * self.piecewise.variance(value) + (1 - self.share) * self.duchi.variance(value)

    def report(self, value: Exact, bits: "Bits") -> int:
        """Draw the report of one person."""
        if bits.below(self.share.denominator) < self.share.numerator:
            return 2 + self.piecewise.report(value, bits)
        return self.duchi.report(value, bits)

    def number(self, report: int) -> Fraction:
        """What a report stands for."""
        return self.duchi.number(report) if report < 2 else self.piecewise.number(report - 2)

    def probability(self, report: int, step: int) -> Fraction:
        """The exact probability of a report given the point."""
        if report < 2:
            return (1 - self.share) * self.duchi.probability(report, step)
        return self.share * self.piecewise.probability(report - 2, step)

    @property
    def kinds(self) -> int:
        """The number that all reports are below."""
        return 2 + self.piecewise.points if self.share else 2

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a number below ``kinds``, none of Duchi's where all are piecewise."""
        return is_below(report, self.kinds) and (self.share < 1 or report not in (0, 1))

    def outputs(self) -> Iterator[int]:
        """All reports that a client can send."""
        return iter(range(2 if self.share == 1 else 0, self.kinds))


Mean = DuchiMean | PiecewiseMean | HybridMean
MEANS = (DuchiMean, PiecewiseMean, HybridMean)
