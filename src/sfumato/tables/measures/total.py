"""The sum of a value."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.engines.expressions import Expression, Term
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.measures.row_count import count
from sfumato.tables.needs import SumOf

__all__ = ["Total", "sum_of"]


def sum_of(value: str | Term | Expression) -> Asked:
    """The sum of a column, or of a value computed from columns; rows without one add nothing.

    The sum of a condition is the number of rows that meet it.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(years=sf.sum("age")).query.measures[0].KIND
    'measure.sum'
    >>> visits().agg(old=sf.sum(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.count'
    """
    if isinstance(value, Expression):
        return count(value)
    return Asked(lambda name, bounds: Total(name=name, of=clamped(value, bounds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(Measure):
    """The sum of a value; rows without one add nothing."""

    KIND: ClassVar[str] = "measure.sum"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"sum": sum_of}
    SQL: ClassVar = {"SUM": "sum"}
    of_public_number: ClassVar[bool] = True
    name: str
    of: Clamped

    @property
    def needs(self) -> tuple[SumOf]:
        """The sum, which the parts of a mean of the same value may tell."""
        return (SumOf(self.of),)

    def estimate(self, reader: Reader) -> Derived:
        """The noisy sum."""
        return reader.figure(self.name, reader.sums(self.of))

    def margin(self, preview: ErrorPreview) -> Fraction:
        """Of the noises of all parts."""
        return preview.margin(preview.sum_weights(self.of))

    def over_rows(self, rows: int) -> tuple[Fraction, Fraction]:
        """All rows at the lower bound, or all at the upper one; none, if that is more extreme."""
        return rows * min(self.of.low, Fraction(0)), rows * max(self.of.high, Fraction(0))

    @property
    def words(self) -> str:
        """The sum."""
        return "measure.sum"
