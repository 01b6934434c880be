"""Variances, covariances and correlations of released sums, with the values that the noise leaves possible.

A variance is the mean squared distance from the true mean, which nobody knows. Around the noisy mean the squares are a
linear form of released numbers, and a ratio of two linear forms can be inverted; what the distance between the noisy
mean and the true one can change is bounded and added. Proof: docs/proofs/moments.md
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from sfumato.core.exact import Exact, confidence_level
from sfumato.core.release import Release
from sfumato.inference.derived import Derived, Label
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.population import picked_from
from sfumato.inference.ratio import ratio_ends

if TYPE_CHECKING:
    from sfumato.inference.population import Population

__all__ = ["Correlation", "Covariance", "Moments", "Variance"]

FAR = Fraction(1, 100)  # the share of the doubt that goes to noise being far out at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Sums over the rows of one group: how many, of two values on [0, 1], of their product."""

    number: LinearCombination
    first: LinearCombination
    second: LinearCombination
    product: LinearCombination

    def centred(self) -> LinearCombination:
        """The sum of (x − a)(y − b), where a and b are the noisy means."""
        a, b = self.first.value / self.number.value, self.second.value / self.number.value
        return self.product.plus(self.second, -a).plus(self.first, -b).plus(self.number, a * b)

    def estimate(self) -> float:
        """The mean of the products around the noisy means; not a number where there is nobody."""
        return float(self.centred().value / self.number.value) if self.number.value > 0 else math.nan

    def ends(self, doubt: Fraction) -> tuple[float, float]:
        """Low and high of the true covariance, outside which it lies with probability ``doubt`` at most."""
        if self.number.value <= 0:
            return -math.inf, math.inf
        sides = [self.first] if self.first is self.second else [self.first, self.second]
        each = doubt / (2 * len(sides))
        ways = [_half_width(side, self.number, each) for side in sides]
        if not all(math.isfinite(way) for way in ways):
            return -math.inf, math.inf
        apart = [Fraction(way) for way in (ways * 2)[:2]]
        noises = {noise for form in (self.number, self.first, self.second, self.product) for noise in form.noises}
        far = doubt / 2 * FAR
        size = Fraction(0)
        for noise in noises:
            size += noise.law.margin(1 - far / len(noises)) * self._unit(noise)
        moved = (apart[0] + apart[1] + apart[0] * apart[1]) * size * 2
        slack = moved + apart[0] * apart[1] * self.number.value
        centred, level = self.centred(), 1 - (doubt / 2 - far)
        low, _ = ratio_ends(centred.shifted(-slack), self.number, level)
        _, high = ratio_ends(centred.shifted(slack), self.number, level)
        return low, high

    def _unit(self, noise: Noise) -> Fraction:
        """The largest coefficient that a noise has in the number of rows or in the sums."""
        return max(
            abs(form.noises.get(noise, Fraction(0))) for form in (self.number, self.first, self.second, self.product)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Covariance(Derived):
    """The covariance of two values in each group, in units of ``scale``.

    Guarantee: the interval covers the covariance of the values as they were held to their bounds and rounded, whatever
    the data is; the noise in the number of rows and in both means is part of it.
    """

    moments: tuple[Moments, ...]
    scale: Fraction
    within: tuple[float, float]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    sampled: "Callable[[], Population] | None" = None
    """What the intervals of a population are worked out from, where the figure estimates one."""

    @property
    def values(self) -> tuple[float, ...]:
        """The covariances of the noisy sums, held to what is possible at all."""
        return tuple(_held(float(self.scale) * each.estimate(), self.within) for each in self.moments)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "every value that the noise distributions leave possible (inversion), rounded outward"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence."""
        doubt = _doubt(confidence, len(self.moments) if joint else 1)
        found = []
        for each in self.moments:
            low, high = each.ends(doubt)
            found.append((_held(float(self.scale) * low, self.within), _held(float(self.scale) * high, self.within)))
        return found

    def at(self, **labels: Label) -> Self:
        """The numbers whose labels are the given ones."""
        kept, left = self._picked(labels)
        sampled = picked_from(self.sampled, kept)
        return replace(self, moments=tuple(self.moments[place] for place in kept), labels=left, sampled=sampled)

    @property
    def estimates_population(self) -> bool:
        """Whether it is of a table, whose people are taken for a sample."""
        return self.sampled is not None

    def _population(self) -> "Population | None":
        return None if self.sampled is None else self.sampled()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variance(Covariance):
    """The variance of a value in each group, or with ``root`` the standard deviation."""

    root: bool = False

    @property
    def values(self) -> tuple[float, ...]:
        """The variances of the noisy sums, at least 0, or their roots."""
        found = super(Variance, self).values
        return tuple(math.sqrt(value) for value in found) if self.root else found

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence."""
        found = Covariance._data_interval(self, confidence, joint=joint)
        return [(math.sqrt(low), math.sqrt(high)) for low, high in found] if self.root else found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Correlation(Derived):
    """The correlation of two values in each group.

    Guarantee: as for :class:`Covariance`; the interval is made of those of the covariance and of both variances, which
    share the doubt, and is wider than one that was made at once.
    """

    together: tuple[Moments, ...]
    first: tuple[Moments, ...]
    second: tuple[Moments, ...]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    sampled: "Callable[[], Population] | None" = None

    @property
    def values(self) -> tuple[float, ...]:
        """The correlations of the noisy sums; not a number where a noisy variance is not above 0."""
        found = []
        for both, one, two in zip(self.together, self.first, self.second, strict=True):
            a, b = one.estimate(), two.estimate()
            found.append(_held(both.estimate() / math.sqrt(a * b), (-1.0, 1.0)) if a > 0 and b > 0 else math.nan)
        return tuple(found)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "every value that the noise distributions leave possible (inversion), rounded outward"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence."""
        doubt = _doubt(confidence, len(self.together) if joint else 1) / 3
        return [
            _quotient(both.ends(doubt), _root(one.ends(doubt), two.ends(doubt)))
            for both, one, two in zip(self.together, self.first, self.second, strict=True)
        ]

    def at(self, **labels: Label) -> "Correlation":
        """The numbers whose labels are the given ones."""
        kept, left = self._picked(labels)
        together, first, second = (
            tuple(each[place] for place in kept) for each in (self.together, self.first, self.second)
        )
        sampled = picked_from(self.sampled, kept)
        return replace(self, together=together, first=first, second=second, labels=left, sampled=sampled)

    @property
    def estimates_population(self) -> bool:
        """Whether it is of a table, whose people are taken for a sample."""
        return self.sampled is not None

    def _population(self) -> "Population | None":
        return None if self.sampled is None else self.sampled()


def _half_width(side: LinearCombination, number: LinearCombination, doubt: Fraction) -> float:
    """How far the true mean can be from the noisy one."""
    centre = float(side.value / number.value)
    low, high = ratio_ends(side, number, 1 - doubt)
    return max(centre - low, high - centre)


def _root(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    """The range of √(a·b) of two variances on [0, 1], each at most a quarter."""
    low = max(one[0], 0.0) * max(two[0], 0.0)
    high = min(max(one[1], 0.0), 0.25) * min(max(two[1], 0.0), 0.25)
    return math.sqrt(low), math.sqrt(high)


def _quotient(over: tuple[float, float], under: tuple[float, float]) -> tuple[float, float]:
    low, high = under
    if low <= 0 or not (math.isfinite(over[0]) and math.isfinite(over[1])):
        return (0.0 if over[0] >= 0 else -1.0), (0.0 if over[1] <= 0 else 1.0)
    ends = [side / width for side in over for width in (low, high)]
    return _held(min(ends), (-1.0, 1.0)), _held(max(ends), (-1.0, 1.0))


def _held(value: float, within: tuple[float, float]) -> float:
    return value if math.isnan(value) else min(max(value, within[0]), within[1])


def _doubt(confidence: Exact, numbers: int) -> Fraction:
    level = confidence_level(confidence)
    return (1 - level) / numbers


def sums_of(parts: Sequence[LinearCombination], weights: Sequence[Fraction]) -> LinearCombination:
    """A linear form of several others."""
    total = LinearCombination(Fraction(0), {})
    for part, weight in zip(parts, weights, strict=True):
        if weight:
            total = total.plus(part, weight)
    return total
