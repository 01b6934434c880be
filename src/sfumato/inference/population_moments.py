"""Intervals for the variance and the covariance of a population: by bounds that hold for any bounded values.

Nothing about fourth moments is measured, and skewed data have variances that no method based on normal errors covers.
So the sampling error is bounded by inequalities of concentration; the interval is wide, and holds. Proof:
docs/proofs/population.md
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from sfumato.inference.moments import Moments
from sfumato.inference.population import Design

__all__ = ["CorrelationBounds", "MomentBounds", "covariance_ends", "deviation_ends"]

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentBounds:
    """The covariance of two values in a population, or the variance of one; with ``root`` the standard deviation.

    Guarantee: the interval holds the population's value with the stated probability at least, for all values within
    their bounds. Assumes: persons (or rows, where these are protected) are independent and drawn alike.
    """

    moments: tuple[Moments, ...]
    scale: float
    within: Ends
    design: Design
    of_one: bool = False
    """Whether both values are the same, so that it is a variance."""
    root: bool = False

    @property
    def quality(self) -> str:
        """At least the stated confidence."""
        return "population.conservative"

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        return replace(self, moments=tuple(self.moments[place] for place in places))

    def ends(self, level: float) -> list[Ends]:
        """Low and high in each group, each with probability ``level`` by itself."""
        found = []
        for each in self.moments:
            low, high = _bounded(each, 1 - level, self.design, of_one=self.of_one)
            held = [min(max(self.scale * end, self.within[0]), self.within[1]) for end in (low, high)]
            found.append((math.sqrt(max(held[0], 0.0)), math.sqrt(max(held[1], 0.0))) if self.root else tuple(held))
        return found  # type: ignore[return-value]  # pairs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrelationBounds:
    """The correlation in a population, from bounds of the covariance and of both variances, which share the doubt."""

    together: tuple[Moments, ...]
    first: tuple[Moments, ...]
    second: tuple[Moments, ...]
    design: Design

    @property
    def quality(self) -> str:
        """At least the stated confidence."""
        return "population.conservative"

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        together, first, second = (
            tuple(moments[place] for place in places) for moments in (self.together, self.first, self.second)
        )
        return replace(self, together=together, first=first, second=second)

    def ends(self, level: float) -> list[Ends]:
        """Low and high in each group, each with probability ``level`` by itself."""
        from sfumato.inference.moments import correlation_ends

        doubt = (1 - level) / 3
        return [
            correlation_ends(
                _bounded(both, doubt, self.design, of_one=False),
                _bounded(one, doubt, self.design, of_one=True),
                _bounded(two, doubt, self.design, of_one=True),
            )
            for both, one, two in zip(self.together, self.first, self.second, strict=True)
        ]


def _bounded(moments: Moments, doubt: float, design: Design, *, of_one: bool) -> Ends:
    """Low and high of a covariance in the population, of values on [0, 1].

    Half of the doubt goes to the noise in the covariance of these data, an eighth to the number of rows.
    """
    exact = Fraction(math.floor(doubt * 10**12), 10**12)  # a short one, rounded down
    rows = float(moments.number.value)
    if moments.number.noises:
        rows -= float(moments.number.margin(1 - exact / 8))
    low, high = moments.ends(exact / 2)
    if rows <= 1 or not (math.isfinite(low) and math.isfinite(high)):
        return -math.inf, math.inf
    if of_one and design.rows == 1:
        return deviation_ends(low, high, rows, 3 * doubt / 8)
    return covariance_ends(low, high, rows, 3 * doubt / 8, most=design.rows)


def deviation_ends(low: float, high: float, rows: float, doubt: float) -> Ends:
    """The variance of a population on [0, 1] whose sample of ``rows`` has one from low to high (Maurer and Pontil).

    >>> [round(end, 3) for end in deviation_ends(0.04, 0.04, 10_000, 0.05)]
    [0.03, 0.052]
    """
    reach = math.sqrt(2 * math.log(2 / doubt) / (rows - 1))
    least = max(math.sqrt(max(low, 0.0)) - reach, 0.0)
    most = math.sqrt(max(high, 0.0) * rows / (rows - 1)) + reach
    return least**2, min(most**2, 0.25)


def covariance_ends(low: float, high: float, rows: float, doubt: float, *, most: int = 1) -> Ends:
    """The covariance of a population on [0, 1]² whose sample of ``rows`` has one from low to high (Hoeffding).

    A unit has up to ``most`` rows, whatever they have to do with its values.

    >>> [round(end, 3) for end in covariance_ends(0.0, 0.0, 10_000, 0.05)]
    [-0.015, 0.015]
    """
    products = most * math.sqrt(math.log(3 / doubt) / (2 * rows))  # two thirds of the doubt, in two tails
    means = most * math.sqrt(math.log(12 / doubt) / (2 * rows))  # a sixth for each of the two means
    reach = products + means**2
    return max(low - reach, -0.25), min(high + reach, 0.25)
