"""The mean of a value."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

from sfumato.core.documents import LEFT_OUT
from sfumato.engines.expressions import Expression, Term
from sfumato.inference.derived import Derived
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.measures.proportion import proportion
from sfumato.tables.needs import PowersOf
from sfumato.tables.sampling import mean_of, rounding_of

__all__ = ["MeanValue", "mean"]


def mean(value: str | Term | Expression) -> Asked:
    """The mean over the rows that have a value; of a condition, the share of the rows that meet it.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(sbp=sf.mean("sbp")).query.measures[0].KIND
    'measure.mean'
    >>> visits().agg(old=sf.mean(sf.col("age") >= 65)).query.measures[0].KIND
    'measure.proportion'
    """
    if isinstance(value, Expression):
        return proportion(value)
    return Asked(lambda name, bounds: MeanValue(name=name, of=clamped(value, bounds), squares=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanValue(Measure):
    """The mean of a value over the rows that have one.

    With ``squares`` the sum of squares is measured too, for the interval of the population; it costs no more privacy.
    Means of earlier versions have none.
    """

    KIND: ClassVar[str] = "measure.mean"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"mean": mean}
    SQL: ClassVar = {"AVG": "mean"}
    of_public_number: ClassVar[bool] = True
    name: str
    of: Clamped
    squares: bool | None = field(default=None, metadata={LEFT_OUT: True})

    @property
    def needs(self) -> tuple[PowersOf]:
        """The number of rows that have the value, its sum, and the sum of its squares."""
        return (PowersOf(self.of, 1, squares=bool(self.squares)),)

    def estimate(self, reader: Reader) -> Derived:
        """The noisy sum over the noisy number, or over the public one."""
        sums = reader.sums(self.of)
        if reader.number is not None:
            forms = [form.scaled(Fraction(1, reader.number or 1)) for form in sums]
            return replace(reader.figure(self.name, forms), sampled=partial(mean_of, reader, self.of))
        within = float(self.of.low), float(self.of.high)
        return replace(
            reader.ratio(self.name, sums, reader.numbers(self.of), within=within),
            rounding=float(rounding_of(reader, self.of)),
            sampled=partial(mean_of, reader, self.of),
        )

    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """In a group of ``rows`` rows, whose values all lie at the bound that is worse."""
        if not preview.rows:
            return None
        if preview.public:
            return preview.margin([weight / preview.rows for weight in preview.sum_weights(self.of)])
        block = preview.block(*self.needs)
        spots = [Fraction(place, block.degree) for place in range(block.degree + 1)]
        return preview.margin([self.of.width * spot / (block.height * preview.rows) for spot in spots])

    @property
    def words(self) -> str:
        """The mean."""
        return "measure.mean"

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """The range of the value."""
        return self.of.low, self.of.high
