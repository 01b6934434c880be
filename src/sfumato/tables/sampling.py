"""Which noisy sums of an answer estimate what of a population, for intervals of sampling and noise together."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.engines.sufficient_statistics import Everyone, Powers
from sfumato.inference.population import INDEPENDENT, Residuals, SampleDesign, design_of, nearly_normal
from sfumato.inference.population_moments import CorrelationScores, CovarianceScores, MomentSums, VarianceScores
from sfumato.tables.clamped import Clamped
from sfumato.tables.estimators import Reader
from sfumato.tables.needs import Need, PowersOf, ProductsOf
from sfumato.tables.statistic_plan import Block

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = [
    "correlation_of",
    "covariance_of",
    "design",
    "mean_of",
    "ratio_of",
    "rounding_of",
    "share_of",
    "variance_of",
]


def design(reader: Reader) -> SampleDesign | None:
    """How rows were sampled, by the unit and the limit of the release; None where nothing was released yet."""
    if not reader.sources:
        return None
    said = reader.sources[0].statement
    return design_of(said.unit, said.limit)


def rounding_of(reader: Reader, of: Clamped) -> Fraction:
    """How far rounding to the lattice can move a value, and so a mean."""
    gauge = reader.block(PowersOf(of, 1)).gauge
    if not isinstance(gauge, Powers | Everyone):
        return Fraction(0)
    return of.width / (2 * gauge.lattice.steps) + of.width / (2 * gauge.height)  # and digits that squares lose


def share_of(reader: Reader, need: Need) -> Residuals:
    """The share of the rows in the first of two parts."""
    import numpy as np

    sums, noise = _parts(reader, reader.block(need))
    return Residuals(
        sums=sums,
        noise=noise,
        gaussian=nearly_normal(reader.law),
        over=np.array([1.0, 0.0]),
        under=np.ones(2),
        number=np.ones(2),
        within=(0.0, 1.0),
        half=0.5,
        exact_variance=True,
        design=design(reader) or INDEPENDENT,
    )


def mean_of(reader: Reader, of: Clamped) -> Residuals:
    """The mean of a value, brought to [0, 1]; with its squares where they were measured."""
    import numpy as np

    sums, noise, number, spots = _powers_of(reader, of)
    last = (spots == 1).astype(float)
    squared = reader.block(PowersOf(of, 1)).degree == 2
    return Residuals(
        sums=sums,
        noise=noise,
        gaussian=nearly_normal(reader.law),
        over=spots,
        under=number,
        number=number,
        squares=np.array([last, -2 * spots, number]) if squared else None,
        between=(spots == 0.5).astype(float) if squared else None,
        within=(0.0, 1.0),
        design=design(reader) or INDEPENDENT,
        rounding=float(rounding_of(reader, of) / of.width) if of.width else 0.0,
        origin=float(of.low),
        scale=float(of.width),
    )


def variance_of(reader: Reader, of: Clamped, *, root: bool) -> VarianceScores:
    """The variance of a value, or its root."""
    sums, noise, number, spots = _powers_of(reader, of)
    moments = MomentSums(
        sums=sums,
        noise=noise,
        gaussian=nearly_normal(reader.law),
        number=number,
        first=spots,
        second=spots,
        product=(spots == 1).astype(float),
        design=design(reader) or INDEPENDENT,
    )
    return VarianceScores(moments=moments, scale=float(of.width**2), root=root)


def covariance_of(reader: Reader, need: ProductsOf) -> CovarianceScores:
    """The covariance of two values; with their variances where squares were measured."""
    import numpy as np

    block = reader.block(need)
    sums, noise = _parts(reader, block)
    first, second = _spots(block.degree)

    def moments(one: "Floats", two: "Floats", product: "Floats") -> MomentSums:
        return MomentSums(
            sums=sums,
            noise=noise,
            gaussian=nearly_normal(reader.law),
            number=np.ones(len(first)),
            first=one,
            second=two,
            product=product,
            design=design(reader) or INDEPENDENT,
        )

    squared = block.degree == 2
    own = [VarianceScores(moments=moments(each, each, (each == 1).astype(float))) for each in (first, second)]
    return CovarianceScores(
        moments=moments(first, second, first * second),
        scale=float(need.first.width * need.second.width),
        first=own[0] if squared else None,
        second=own[1] if squared else None,
    )


def correlation_of(reader: Reader, need: ProductsOf) -> CorrelationScores:
    """The correlation of two values."""
    return CorrelationScores(together=covariance_of(reader, need))


def ratio_of(reader: Reader, need: ProductsOf) -> Residuals:
    """The sum of the first value over that of the second, from sums of both, of their products and squares."""
    import numpy as np

    block = reader.block(need)
    sums, noise = _parts(reader, block)
    a, b = _spots(block.degree)
    over, over_square = _powers(need.first, a)
    under, under_square = _powers(need.second, b)
    return Residuals(
        sums=sums,
        noise=noise,
        gaussian=nearly_normal(reader.law),
        over=over,
        under=under,
        number=np.ones(len(a)),
        squares=np.array([over_square, -2 * over * under, under_square]),
        design=design(reader) or INDEPENDENT,
    )


def _powers(of: Clamped, spots: "Floats") -> "tuple[Floats, Floats]":
    """By which weights parts add up to the sum of a value, and of its squares."""
    low, width = float(of.low), float(of.width)
    return low + width * spots, low**2 + 2 * low * width * spots + width**2 * (spots == 1)


def _powers_of(reader: Reader, of: Clamped) -> "tuple[Floats, Floats, Floats, Floats]":
    """The parts of a value with their noise, and by which weights they add up to the rows and to the value on [0, 1].

    Where the number of units is public it stands, without noise, in the place of the first part.
    """
    import numpy as np

    block = reader.block(PowersOf(of, 1))
    sums, noise = _parts(reader, block)
    spots = np.arange(block.degree + 1) / block.degree
    if isinstance(block.gauge, Powers) and block.gauge.missing:
        sums, noise = sums[:, :-1], noise[:-1]
    if not isinstance(block.gauge, Everyone):
        return sums, noise, np.ones(len(spots)), spots
    rows = np.full((len(sums), 1), float(reader.number or 1))
    return np.hstack([rows, sums]), np.concatenate([[0.0], noise]), (spots == 0).astype(float), spots


def _spots(degree: int) -> "tuple[Floats, Floats]":
    """Where the parts of products stand: the places of the first value and of the second."""
    import numpy as np

    places = np.arange(degree + 1) / degree
    return np.repeat(places, degree + 1), np.tile(places, degree + 1)


def _parts(reader: Reader, block: Block) -> "tuple[Floats, Floats]":
    """The noisy parts in rows, a line for each cell, and the standard deviation of the noise in each part."""
    import numpy as np

    first, parts = reader.first(block), block.reach.numbers
    values: Sequence[int] = reader.values[first : first + parts * reader.cells]
    sums = np.array(values, dtype=float).reshape(parts, reader.cells).T / block.height
    return sums, np.full(parts, math.sqrt(float(reader.law.variance)) / block.height)
