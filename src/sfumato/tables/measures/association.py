"""The covariance and the correlation of two values."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from sfumato.engines.expressions import Term
from sfumato.inference.derived import Derived
from sfumato.inference.moments import Correlation, Covariance, Moments, sums_of
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader, all_of
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import ProductsOf
from sfumato.tables.sampling import correlation_of, covariance_of

__all__ = ["Association", "correlation", "covariance"]


def covariance(first: str | Term, second: str | Term) -> Asked:
    """The covariance over the rows that have both values.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(together=sf.covariance("sbp", "age")).query.measures[0].KIND
    'measure.covariance'
    """
    return Asked(
        lambda name, bounds: Association(name=name, first=clamped(first, bounds), second=clamped(second, bounds))
    )


def correlation(first: str | Term, second: str | Term) -> Asked:
    """The correlation over the rows that have both values.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(together=sf.correlation("sbp", "age")).query.measures[0].KIND
    'measure.covariance'
    """
    return Asked(
        lambda name, bounds: Association(
            name=name, first=clamped(first, bounds), second=clamped(second, bounds), scaled=True
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Association(Measure):
    """The covariance of two values over the rows that have both; or, ``scaled``, their correlation."""

    KIND: ClassVar[str] = "measure.covariance"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"covariance": covariance, "correlation": correlation}
    SQL: ClassVar = {"COVAR_POP": "covariance", "CORR": "correlation"}
    name: str
    first: Clamped
    second: Clamped
    scaled: bool = False

    @property
    def needs(self) -> tuple[ProductsOf]:
        """The sums of both values and of their products; scaled, also of their squares."""
        return (ProductsOf(self.first, self.second, 2 if self.scaled else 1),)

    def estimate(self, reader: Reader) -> Derived:
        """From the noisy moments of both values."""
        degree = reader.block(*self.needs).degree
        spots = range(degree + 1)
        places = [(Fraction(a, degree), Fraction(b, degree)) for a in spots for b in spots]
        together, ones, twos = [], [], []
        for parts in reader.parts(*self.needs):
            number = all_of(parts)
            first, second = sums_of(parts, [a for a, _ in places]), sums_of(parts, [b for _, b in places])
            product = sums_of(parts, [a * b for a, b in places])
            together.append(Moments(number=number, first=first, second=second, product=product))
            if self.scaled:
                squares = [sums_of(parts, [Fraction(place[side] == 1) for place in places]) for side in (0, 1)]
                ones.append(Moments(number=number, first=first, second=first, product=squares[0]))
                twos.append(Moments(number=number, first=second, second=second, product=squares[1]))
        if self.scaled:
            return Correlation(
                together=tuple(together),
                first=tuple(ones),
                second=tuple(twos),
                labels=reader.labels,
                measure=self.name,
                sources=reader.sources,
                sampled=partial(correlation_of, reader, *self.needs),
            )
        scale = self.first.width * self.second.width
        return Covariance(
            moments=tuple(together),
            scale=scale,
            within=(-float(scale) / 4, float(scale) / 4),
            labels=reader.labels,
            measure=self.name,
            sources=reader.sources,
            sampled=partial(covariance_of, reader, *self.needs),
        )

    def margin(self, preview: ErrorPreview) -> Fraction | None:
        """Of the covariance in a group of ``rows`` rows; that of a correlation depends on the variances."""
        if self.scaled or not preview.rows:
            return None
        block = preview.block(*self.needs)
        spots = [Fraction(place, block.degree) for place in range(block.degree + 1)]
        each = self.first.width * self.second.width / (block.height * preview.rows)
        return preview.margin([each * a * b for a in spots for b in spots])

    @property
    def words(self) -> str:
        """The covariance or the correlation."""
        return "measure.correlation" if self.scaled else "measure.covariance"

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """Scaled from -1 to 1; else at most half of the values at each bound."""
        most = Fraction(1) if self.scaled else self.first.width * self.second.width / 4
        return -most, most
