"""Linear combinations: a number computed from released numbers, and which noise it carries how often.

Two copies of one release hold the same noise, so the difference of a release and itself is exactly 0; two releases hold
independent noise. A combination therefore names the noise it holds: the identifier of the release and the place in it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.inference.continuous_bound import continuous_bound
from sfumato.inference.inversion import FINE, Spread

if TYPE_CHECKING:
    from sfumato.core.query import Law

__all__ = ["LinearCombination", "Noise"]


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise in one number of one release."""

    identifier: str
    place: int
    law: "Law"

    def __hash__(self) -> int:
        return hash((self.identifier, self.place))  # the law says no more, and is slow to hash


@dataclass(frozen=True)
class LinearCombination:
    """``value`` as it was computed, and for each noise in it the coefficient."""

    value: Fraction
    noises: Mapping[Noise, Fraction]

    def plus(self, other: "LinearCombination", times: Fraction) -> "LinearCombination":
        """This one and ``times`` another; noise that cancels is gone."""
        held = dict(self.noises)
        for noise, coefficient in other.noises.items():
            held[noise] = held.get(noise, Fraction(0)) + times * coefficient
        return LinearCombination(self.value + times * other.value, {noise: c for noise, c in held.items() if c != 0})

    def scaled(self, factor: Fraction) -> "LinearCombination":
        """A multiple of it."""
        return LinearCombination(Fraction(0), {}).plus(self, factor)

    def shifted(self, constant: Fraction) -> "LinearCombination":
        """It and a constant."""
        return LinearCombination(self.value + constant, self.noises)

    def spread(self, fine: Fraction = FINE) -> Spread:
        """The distribution of the noise in it."""
        return Spread(((coefficient, noise.law) for noise, coefficient in self.noises.items()), fine=fine)

    @cached_property
    def shape(self) -> frozenset[tuple[tuple[Fraction, "Law"], int]]:
        """How often each noise law is held with which size: those of one shape have one error distribution."""
        return frozenset(Counter((abs(c), noise.law) for noise, c in self.noises.items()).items())

    @cached_property
    def _spread(self) -> Spread:
        return self.spread()

    def margin(self, confidence: Fraction) -> Fraction:
        """How far the noise can carry it, with this confidence; for one noise alone by its own law."""
        if len(self.noises) == 1:
            ((noise, coefficient),) = self.noises.items()
            return abs(coefficient) * noise.law.margin(confidence)
        near = continuous_bound((coefficient, noise.law) for noise, coefficient in self.noises.items())
        return self._spread.margin(confidence) if near is None else near.margin(confidence)
