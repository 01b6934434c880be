"""The sum of one value over the sum of another."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

from sfumato.core.documents import LEFT_OUT
from sfumato.engines.expressions import Term
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import Need, ProductsOf, SumOf
from sfumato.tables.sampling import ratio_of

__all__ = ["Quotient", "ratio"]


def ratio(over: str | Term, under: str | Term) -> Asked:
    """The sum of one value over the sum of another, over the rows that have both.

    Of a table with one row for each person (:meth:`Table.per_person`) its interval for the population takes persons for
    what was sampled, however many rows each of them had.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(by_age=sf.ratio("sbp", "age")).query.measures[0].KIND
    'measure.ratio'
    """
    return Asked(
        lambda name, bounds: Quotient(
            name=name, over=clamped(over, bounds), under=clamped(under, bounds), together=True
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(Measure):
    """The sum of one value over the sum of another.

    Measured ``together``, the sums of squares and products of both values tell how residuals scatter, which the
    interval of a population needs; rows count that have both values. Ratios of earlier versions are of two sums apart.
    """

    KIND: ClassVar[str] = "measure.ratio"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"ratio": ratio}
    name: str
    over: Clamped
    under: Clamped
    together: bool | None = field(default=None, metadata={LEFT_OUT: True})

    @property
    def needs(self) -> tuple[Need, ...]:
        """Both sums, and those of squares and products."""
        if self.together:
            return (ProductsOf(self.over, self.under, 2),)
        return SumOf(self.over), SumOf(self.under)

    def estimate(self, reader: Reader) -> Derived:
        """One noisy sum over the other."""
        if self.together:
            need = ProductsOf(self.over, self.under, 2)
            spots = [Fraction(place, 2) for place in range(3)]
            over = reader.weighted(need, [self.over.low + self.over.width * a for a in spots for _ in spots])
            under = reader.weighted(need, [self.under.low + self.under.width * b for _ in spots for b in spots])
            ratio = reader.ratio(self.name, over, under, within=(-math.inf, math.inf))
            return replace(ratio, sampled=partial(ratio_of, reader, need))
        over, under = reader.sums(self.over), reader.sums(self.under)
        return reader.ratio(self.name, over, under, within=(-math.inf, math.inf))

    def margin(self, preview: ErrorPreview) -> None:
        """It depends on both sums, and is not known beforehand."""
        return

    @property
    def words(self) -> str:
        """The ratio."""
        return "measure.ratio"
