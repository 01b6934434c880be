"""Ratios of figures: shares and rates, with the set of true ratios that the noise leaves possible."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.inference.continuous_bound import combined, continuous_bound, width_of
from sfumato.inference.derived import Derived, Label, level_of
from sfumato.inference.linear_combination import LinearCombination
from sfumato.inference.many_ratios import many_ends
from sfumato.inference.population import picked_from

if TYPE_CHECKING:
    from sfumato.inference.population import Population

__all__ = ["Ratio", "ratio_ends"]

FINE = Fraction(1, 100)  # of a standard deviation: what the search for an end may add to the interval
DOUBLE = 1e-15  # what a difference of two doubles may be off, as a share of their sizes
STEPS = 9  # halvings of the bracket around an end: to a thousandth of the distance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ratio(Derived):
    """One figure over another, number by number.

    Guarantee: for the true ratio θ the figure A − θ·B is nothing but noise with a known law. The interval holds every θ
    for which the value of A − θ·B is not among the rarest (1 − confidence) of that law: so it covers θ as often as it
    says, also where A and B share noise, as a part and its total do. Where the noise leaves it open whether B is 0,
    the interval has no ends. Assumes: as for :class:`~sfumato.inference.figure.Figure`.
    """

    over: tuple[LinearCombination, ...]
    under: tuple[LinearCombination, ...]
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]
    within: tuple[float, float] = (-math.inf, math.inf)
    """What the true ratio is known to lie between; an interval is cut there."""
    rounding: float = 0.0
    """How far rounding of single values can have moved the ratio; intervals are wider by that."""
    sampled: "Callable[[], Population] | None" = None
    """What the intervals of a population are worked out from, where the ratio estimates one."""

    @property
    def values(self) -> tuple[float, ...]:
        """The ratios of the noisy numbers; not a number where the lower one is 0."""
        return tuple(
            self._held(_quotient(a.value, b.value)) if b.value else math.nan
            for a, b in zip(self.over, self.under, strict=True)
        )

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "every ratio that the noise distributions leave possible (inversion), rounded outward"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high for each ratio; with ``joint`` all of them hold at once with this confidence."""
        pairs = list(zip(self.over, self.under, strict=True))
        held = [
            LinearCombination(Fraction(0), dict.fromkeys((*over.noises, *under.noises), Fraction(1)))
            for over, under in (pairs if joint else pairs[:1])
        ]
        level = level_of(confidence, held)
        ends = many_ends(pairs, level, by_itself=lambda pair: ratio_ends(*pair, level), halvings=STEPS)
        return [(self._held(low - self.rounding), self._held(high + self.rounding)) for low, high in ends]

    @property
    def estimates_population(self) -> bool:
        """Whether it is a mean, a share or a ratio of a table, whose people are taken for a sample."""
        return self.sampled is not None

    def _population(self) -> "Population | None":
        return None if self.sampled is None else self.sampled()

    def at(self, **labels: Label) -> "Ratio":
        """The ratios whose labels are the given ones."""
        kept, left = self._picked(labels)
        return Ratio(
            over=tuple(self.over[place] for place in kept),
            under=tuple(self.under[place] for place in kept),
            labels=left,
            measure=self.measure,
            sources=self.sources,
            within=self.within,
            rounding=self.rounding,
            sampled=picked_from(self.sampled, kept),
        )

    def _held(self, value: float) -> float:
        return min(max(value, self.within[0]), self.within[1])


def _quotient(over: Fraction, under: Fraction) -> float:
    """The double that is nearest to a quotient; whole numbers divide to that."""
    return (over.numerator * under.denominator) / (over.denominator * under.numerator)


def ratio_ends(over: LinearCombination, under: LinearCombination, level: Fraction) -> tuple[float, float]:
    """Low and high of the true ratio, which lies between them with probability ``level`` at least."""
    if not _rare(under, level):
        return -math.inf, math.inf
    left_over = _LeftOver(over, under)
    centre = over.value / under.value
    guess = left_over.deviation(centre) / abs(float(under.value))
    if guess == 0:
        return float(centre), float(centre)
    step = _decimal(guess)
    low, high = (float(_end(left_over, level, centre, side * step)) for side in (-1, 1))
    return low, high


def _end(left_over: "_LeftOver", level: Fraction, centre: Fraction, step: Fraction) -> Fraction:
    """Walk outward from the centre until ratios become impossible, then close in; the outer side is the end."""
    inside, outside = centre, centre + step
    while not left_over.rare(outside, level):
        inside, outside = outside, centre + 2 * (outside - centre)
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if left_over.rare(middle, level):
            outside = middle
        else:
            inside = middle
    return outside


class _LeftOver:
    """A − θ·B for any θ: in double precision where the lattice of the noise is fine, exactly where it is not."""

    def __init__(self, over: LinearCombination, under: LinearCombination) -> None:
        self._over, self._under = over, under
        self._noises = [
            (float(over.noises.get(noise, 0)), float(under.noises.get(noise, 0)), width_of(noise.law))
            for noise in dict.fromkeys((*over.noises, *under.noises))
        ]
        self._values = float(over.value), float(under.value)

    def rare(self, ratio: Fraction, level: Fraction) -> bool:
        """Whether what is left over is rarer than the level allows, if it is nothing but noise."""
        theta = float(ratio)
        near = combined([(a - theta * b, width) for a, b, width in self._noises])
        if near is None:
            return _rare(self._over.plus(self._under, -ratio), level)
        a, b = self._values[0], theta * self._values[1]
        return near.within(abs(a - b) - DOUBLE * (abs(a) + abs(b))) >= level

    def deviation(self, ratio: Fraction) -> float:
        """The standard deviation of what is left over."""
        near = combined([(a - float(ratio) * b, width) for a, b, width in self._noises])
        return self._over.plus(self._under, -ratio).spread().deviation if near is None else near.deviation


def _rare(form: LinearCombination, level: Fraction) -> bool:
    """Whether a value this far from 0 is rarer than the level allows, if the form is nothing but noise."""
    near = continuous_bound((coefficient, noise.law) for noise, coefficient in form.noises.items())
    if near is not None:
        return near.within(float(abs(form.value))) >= level
    return form.spread(FINE).nearer(abs(form.value)) >= level


def _decimal(size: float) -> Fraction:
    """A size to three digits, so that the ratios tried are short."""
    power = math.floor(math.log10(size)) - 2
    return Fraction(10) ** power * max(1, round(size / 10.0**power))
