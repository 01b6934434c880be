"""The number of rows."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import CountRows

__all__ = ["RowCount", "count"]


def count(where: Expression | None = None) -> Asked:
    """How many rows there are, or how many meet a condition.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(old=sf.count(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.count'
    """
    if where is not None and not isinstance(where, Expression):
        raise InvalidInput("count(where=...) takes a predicate such as sf.col('age') >= 65; nothing was done.")
    return Asked(lambda name, _: RowCount(name=name, condition=where))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount(Measure):
    """How many rows there are, or how many meet a condition."""

    KIND: ClassVar[str] = "measure.count"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"count": count}
    counts: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    name: str
    condition: Expression | None = None

    @property
    def needs(self) -> tuple[CountRows]:
        """One number, which the parts of another measure may tell."""
        return (CountRows(self.condition),)

    def estimate(self, reader: Reader) -> Derived:
        """All parts together."""
        return reader.figure(self.name, reader.counts(*self.needs), whole=True)

    def margin(self, preview: ErrorPreview) -> Fraction:
        """Of as many noises as there are parts."""
        block = preview.block(*self.needs)
        return preview.margin([Fraction(1, block.height)] * block.reach.numbers)

    @property
    def words(self) -> str:
        """With the condition, if there is one."""
        return "measure.rows" if self.condition is None else "measure.rows_where"
