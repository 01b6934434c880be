"""A quantile of a value, read off a noisy histogram: beside other measures, and with an interval."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar

from sfumato.core.exact import Exact, probability
from sfumato.engines.expressions import Expression, Nearest, Term, surely_whole
from sfumato.engines.lattice import Lattice
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.inference.histogram_quantiles import MOST_VALUES, HistogramQuantile
from sfumato.tables.clamped import Clamped, clamped
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.needs import RowsByBin
from sfumato.tables.sampling import design

__all__ = ["Bins", "QuantileValue", "median", "quantile"]

BINS = 200  # docs/decisions/0024-quantiles-from-histograms.md: more are noisier, fewer are wider


def median(value: str | Term) -> Asked:
    """The median over the rows that have a value, with an interval: :func:`quantile` at a half.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(n=sf.count(), middle=sf.median("sbp")).query.measures[1].KIND
    'measure.quantile'
    """
    return quantile(value, Fraction(1, 2))


def quantile(value: str | Term, level: Exact) -> Asked:
    """The value at or below which the share ``level`` of the rows lies, over the rows that have one.

    It is read off a histogram of the value, which all quantiles of that value share. A value that is known to be whole
    has a bin for each of up to 400 numbers, and then bins of several; any other value has 200 bins of equal width
    between its bounds, and the ends of an interval are edges of bins. Narrower bounds, such as ``.clip(0, 100)``, make
    finer bins and leave quantiles inside them as they are.

    Guarantee: one row moves one bin. Proof: docs/proofs/quantiles.md

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().agg(high=sf.quantile("sbp", 0.9)).query.measures[0].level
    Fraction(9, 10)
    """
    exact = probability(level, "quantile")
    return Asked(lambda name, bounds: QuantileValue(name=name, of=clamped(value, bounds), level=exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Bins of equal width; ``low`` and ``high`` are the middles of the first and the last of ``number``.

    >>> Bins.of(Fraction(0), Fraction(10), whole=True).ends[:2]
    ((0, 0), (1, 1))
    >>> Bins.of(Fraction(0), Fraction(999), whole=True).ends[:2]
    ((0, 4), (5, 9))
    >>> Bins.of(Fraction(0), Fraction(10), whole=False).ends[:2]
    ((Fraction(0, 1), Fraction(1, 20)), (Fraction(1, 20), Fraction(1, 10)))
    """

    first: Fraction
    """The least value of the first bin."""
    width: Fraction
    number: int
    whole: bool
    last: Fraction
    """The greatest value of the last bin."""

    @classmethod
    def of(cls, low: Fraction, high: Fraction, *, whole: bool) -> "Bins":
        """Bins of a range: one for each whole number, or for several next to each other; or 200."""
        least, most = ceil(low), floor(high)
        if not whole or most <= least:
            return cls(first=low, width=(high - low) / BINS, number=BINS, whole=False, last=high)
        values = most - least + 1
        width = 1 if values <= MOST_VALUES else -(-values // BINS)
        return cls(
            first=Fraction(least),
            width=Fraction(width),
            number=-(-values // width),
            whole=True,
            last=Fraction(most),
        )

    def lattice(self, value: Clamped) -> Lattice:
        """The lattice whose points are the middles of the bins: what is nearest to a point is in its bin."""
        middle = self.first + (self.width - self.whole) / 2
        return Lattice(
            value=value.value, low=middle, high=middle + self.width * (self.number - 1), steps=self.number - 1
        )

    @property
    def ends(self) -> tuple[tuple[int | Fraction, int | Fraction], ...]:
        """The least and the greatest value in each bin; where values are not whole, bins share their edges."""
        firsts = [self.first + self.width * place for place in range(self.number)]
        if self.whole:
            return tuple((int(first), int(min(first + self.width - 1, self.last))) for first in firsts)
        return tuple((first, first + self.width) for first in firsts)

    @property
    def middles(self) -> tuple[int | Fraction, ...]:
        """One value for each bin; of whole numbers a whole one."""
        middles = [Fraction(low + high) / 2 for low, high in self.ends]
        return tuple(floor(middle) for middle in middles) if self.whole else tuple(middles)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileValue(Measure):
    """The value at or below which the share ``level`` of the rows lies that have one; the least such value."""

    KIND: ClassVar[str] = "measure.quantile"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {"median": median, "quantile": quantile}
    name: str
    of: Clamped
    level: Fraction

    def __post_init__(self) -> None:
        Measure.__post_init__(self)
        if not 0 < self.level < 1:
            raise InvalidInput(
                "quantiles lie strictly between 0 and 1: the smallest and the largest value are one person's own. "
                "Nothing was done."
            )

    @property
    def bins(self) -> Bins:
        """Where its value can lie; whole numbers where the expression says that it is whole."""
        return Bins.of(self.of.low, self.of.high, whole=surely_whole(self.of.value, ()))

    @property
    def needs(self) -> tuple[RowsByBin]:
        """The number of rows in each bin."""
        return (RowsByBin(self.bins.lattice(self.of)),)

    def of_whole_columns(self, columns: Container[str]) -> "QuantileValue":
        """Where its value is whole because some columns are, it says so itself."""
        value = self.of.value
        if surely_whole(value, ()) or not surely_whole(value, columns):
            return self
        return replace(self, of=replace(self.of, value=Nearest(part=value)))

    def estimate(self, reader: Reader) -> Derived:
        """The first bin up to which the share of the noisy rows lies."""
        bins = self.bins
        return HistogramQuantile(
            level=self.level,
            numbers=bins.middles,
            counts=tuple(map(tuple, reader.parts(*self.needs))),
            labels=reader.labels,
            measure=self.name,
            sources=reader.sources,
            ends=bins.ends,
            design=design(reader),
        )

    def margin(self, preview: ErrorPreview) -> None:
        """Not known beforehand: it depends on how densely the values lie there."""
        return

    @property
    def words(self) -> str:
        """The median, or which quantile."""
        return "measure.median" if self.level == Fraction(1, 2) else "measure.quantile"

    @property
    def parts(self) -> Mapping[str, Clamped | Expression | Fraction]:
        """The value, and its level in percent unless a word says it."""
        return {"value": self.of} | ({} if self.level == Fraction(1, 2) else {"percent": 100 * self.level})

    @property
    def possible(self) -> tuple[Fraction, Fraction]:
        """The range of the value."""
        return self.of.low, self.of.high
