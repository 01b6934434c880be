"""Projective geometry response: a report is a point, and supports the values whose hyperplane it lies on."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import Exact
from sfumato.errors import InvalidInput
from sfumato.local.fields import coordinates, field, is_order, place, point, points
from sfumato.local.local_hash import orders_near
from sfumato.local.odds import local_epsilon, odds
from sfumato.local.oracle import Oracular, Report, is_below

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["ProjectiveResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveResponse(Oracular):
    """Report a point: those on the hyperplane of the true value are R times as likely as the others, R = odds(ε).

    A value is a point of the projective space over the field of ``order`` elements, and its hyperplane the points
    whose inner product with it is 0. All hyperplanes have the same size, and so have all intersections of two. Nearly
    the variance of subset selection for a report of one number. ``calibrated`` takes the order that errs least, about
    e^ε + 1. Feldman, Nelson, Nguyen and Talwar (2022).

    Guarantee: ε-DP for the value of one report, replaced by any other. Sensitive: the true value.
    Proof: docs/proofs/local_oracles.md

    >>> asked = ProjectiveResponse.calibrated(epsilon=2, values=128)
    >>> asked.order, asked.points, round(float(asked.variance()), 3)
    (11, 133, 0.7...)
    """

    KIND: ClassVar[str] = "local.projective_response"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int
    order: int

    def __post_init__(self) -> None:
        self._read()
        if not is_order(self.order):
            raise InvalidInput("the order of the field must be a prime or a power of two up to 4096; nothing was done.")

    @classmethod
    def calibrated(cls, *, epsilon: Exact, values: int) -> "ProjectiveResponse":
        """With the order of least variance."""
        exact = local_epsilon(epsilon)
        return min(
            (cls(epsilon=exact, values=values, order=order) for order in orders_near(odds(exact) + 1)),
            key=lambda asked: asked.variance(),
        )

    @property
    def dimension(self) -> int:
        """How many coordinates a point has: the least number, from 2, with a point for each value."""
        size = 2
        while points(self.order, size) < self.values:
            size += 1
        return size

    @property
    def points(self) -> int:
        """How many points there are."""
        return points(self.order, self.dimension)

    @property
    def _weight(self) -> Fraction:
        """R for each point on a hyperplane and 1 for each off it, added up."""
        size = self.dimension
        return points(self.order, size - 1) * self.ratio + self.points - points(self.order, size - 1)

    @property
    def hit(self) -> Fraction:
        """h·R/(h·R + order^(dimension − 1)), where h is the size of a hyperplane."""
        return points(self.order, self.dimension - 1) * self.ratio / self._weight

    @property
    def stray(self) -> Fraction:
        """(m·R + h − m)/(h·R + order^(dimension − 1)), where m is the size of the meet of two hyperplanes."""
        size, meet = (points(self.order, self.dimension - less) for less in (1, 2))
        return (meet * self.ratio + size - meet) / self._weight

    def report(self, truth: int, bits: "Bits") -> int:
        """Draw the report of one person: the number of a point.

        On the hyperplane: the other coordinates are not all 0, and the leading one makes the product 0. Off it: the
        leading one makes the product 1, which each such point does in just one scaling.
        """
        numbers, size = field(self.order), self.dimension
        vector = point(self._truth(truth), self.order, size)
        high, of = self.hit.as_integer_ratio()
        on = bits.below(of) < high
        free = bits.below(self.order ** (size - 1) - on) + on
        lead = max(j for j, entry in enumerate(vector) if entry)
        others = coordinates(free, self.order, size - 1)
        rest = [entry for j, entry in enumerate(vector) if j != lead]
        chosen = numbers.plus(int(not on), numbers.minus(numbers.inner(rest, others)))
        return place((*others[:lead], chosen, *others[lead:]), self.order)

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for the values whose product with it is 0."""
        mine, other = (point(index, self.order, self.dimension) for index in (int(report), value))
        return not field(self.order).inner(mine, other)

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        return (self.ratio if self.supports(report, truth) else 1) / self._weight

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return self.points

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a whole number below ``kinds``."""
        return is_below(report, self.kinds)

    def outputs(self) -> Iterator[int]:
        """All points."""
        return iter(range(self.kinds))
