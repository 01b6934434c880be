"""The share of the rows that meet a condition."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

from sfumato.engines.expressions import Expression, col
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import SplitRows
from sfumato.tables.sampling import share_of

__all__ = ["Proportion", "proportion"]


def proportion(condition: Expression | str) -> Asked:
    """The share of the rows that meet a condition; of a column of truth values, named by its text, of those that do.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(old=sf.proportion(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.proportion'
    """
    met = col(condition) == True if isinstance(condition, str) else condition  # noqa: E712 - an expression
    if not isinstance(met, Expression):
        raise InvalidInput(
            "proportion(...) takes a predicate such as sf.col('age') >= 65, or the name of a column of truth values; "
            "nothing was done."
        )
    return Asked(lambda name, _: Proportion(name=name, condition=met))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(Measure):
    """The share of the rows that meet a condition."""

    KIND: ClassVar[str] = "measure.proportion"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"proportion": proportion}
    name: str
    condition: Expression

    @property
    def needs(self) -> tuple[SplitRows]:
        """The rows that meet the condition, and those that do not."""
        return (SplitRows(self.condition),)

    def estimate(self, reader: Reader) -> Derived:
        """The first part over both."""
        firsts = [parts[0] for parts in reader.parts(*self.needs)]
        ratio = reader.ratio(self.name, firsts, reader.counts(*self.needs), within=(0.0, 1.0))
        return replace(ratio, sampled=partial(share_of, reader, *self.needs))

    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """In a group of ``rows`` rows, of which all or none meet the condition."""
        if not preview.rows:
            return None
        return preview.margin([Fraction(1, preview.block(*self.needs).height * preview.rows)])

    @property
    def words(self) -> str:
        """The share."""
        return "measure.share"

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """From none to all."""
        return Fraction(0), Fraction(1)
