"""The sum of one value over the sum of another."""

import math
from dataclasses import dataclass
from typing import ClassVar

from sfumato.engines.expressions import Term
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import SumOf

__all__ = ["Quotient", "ratio"]


def ratio(over: str | Term, under: str | Term) -> Asked:
    """The sum of one value over the sum of another.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(by_age=sf.ratio("sbp", "age")).query.measures[0].KIND
    'measure.ratio'
    """
    return Asked(lambda name, bounds: Quotient(name=name, over=clamped(over, bounds), under=clamped(under, bounds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(Measure):
    """The sum of one value over the sum of another."""

    KIND: ClassVar[str] = "measure.ratio"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"ratio": ratio}
    name: str
    over: Clamped
    under: Clamped

    @property
    def needs(self) -> tuple[SumOf, SumOf]:
        """Both sums."""
        return SumOf(self.over), SumOf(self.under)

    def estimate(self, reader: Reader) -> Derived:
        """One noisy sum over the other."""
        over, under = reader.sums(self.over), reader.sums(self.under)
        return reader.ratio(self.name, over, under, within=(-math.inf, math.inf))

    def margin(self, preview: ErrorPreview) -> None:
        """It depends on both sums, and is not known beforehand."""
        return

    @property
    def words(self) -> str:
        """The ratio."""
        return "measure.ratio"
