"""The variance of a value, and its root."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from sfumato.engines.expressions import Term
from sfumato.inference.derived import Derived
from sfumato.inference.moments import Variance
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import PowersOf
from sfumato.tables.sampling import variance_of

__all__ = ["Variation", "standard_deviation", "variance"]


def variance(value: str | Term) -> Asked:
    """The variance over the rows that have a value: the mean of squared distances from the mean.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(spread=sf.variance("sbp")).query.measures[0].KIND
    'measure.variance'
    """
    return Asked(lambda name, bounds: Variation(name=name, of=clamped(value, bounds)))


def standard_deviation(value: str | Term) -> Asked:
    """The root of the variance.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(spread=sf.standard_deviation("sbp")).query.measures[0].KIND
    'measure.variance'
    """
    return Asked(lambda name, bounds: Variation(name=name, of=clamped(value, bounds), root=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation(Measure):
    """The variance of a value over the rows that have one, the mean of squared distances; or its root."""

    KIND: ClassVar[str] = "measure.variance"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"variance": variance, "standard_deviation": standard_deviation}
    SQL: ClassVar = {
        "VAR_POP": "variance",
        "VARIANCE": "variance",
        "STDDEV_POP": "standard_deviation",
        "STDDEV": "standard_deviation",
    }
    of_public_number: ClassVar[bool] = True
    name: str
    of: Clamped
    root: bool = False

    @property
    def needs(self) -> tuple[PowersOf]:
        """The number of rows that have the value, its sum and that of its squares."""
        return (PowersOf(self.of, 2),)

    def estimate(self, reader: Reader) -> Derived:
        """From the noisy moments."""
        return Variance(
            moments=tuple(reader.moments(self.of)),
            scale=self.of.width**2,
            within=(0.0, float(self.of.width**2 / 4)),
            labels=reader.labels,
            measure=self.name,
            sources=reader.sources,
            root=self.root,
            sampled=partial(variance_of, reader, self.of, root=self.root),
        )

    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """Of the variance in a group of ``rows`` rows; that of its root depends on the variance."""
        if self.root or not preview.rows:
            return None
        noises = 2 if preview.public else 1
        each = self.of.width**2 / (preview.block(*self.needs).height * preview.rows)
        return preview.margin([each] * noises)

    @property
    def words(self) -> str:
        """The variance or the deviation."""
        return "measure.deviation" if self.root else "measure.variance"

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """At most half of the values at each bound."""
        return Fraction(0), self.of.width / 2 if self.root else self.of.width**2 / 4
