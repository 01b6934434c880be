"""Which noisy sums of an answer estimate what of a population, for intervals of sampling and noise together."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.engines.sufficient_statistics import Everyone, Powers
from sfumato.inference.population import INDEPENDENT, Design, Residuals, design_of, nearly_normal
from sfumato.tables.clamped import Clamped
from sfumato.tables.estimators import Reader
from sfumato.tables.needs import Need, PowersOf, ProductsOf
from sfumato.tables.statistic_plan import Block

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["design", "mean_of", "ratio_of", "rounding_of", "share_of"]


def design(reader: Reader) -> Design | None:
    """How rows were sampled, by the unit and the limit of the release; None where nothing was released yet."""
    if not reader.sources:
        return None
    said = reader.sources[0].statement
    return design_of(said.unit, said.limit)


def rounding_of(reader: Reader, of: Clamped) -> Fraction:
    """How far rounding to the lattice can move a value, and so a mean."""
    gauge = reader.block(PowersOf(of, 1)).gauge
    return of.width / (2 * gauge.lattice.steps) if isinstance(gauge, Powers | Everyone) else Fraction(0)


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

    block = reader.block(PowersOf(of, 1))
    sums, noise = _parts(reader, block)
    degree, everyone = block.degree, isinstance(block.gauge, Everyone)
    if isinstance(block.gauge, Powers) and block.gauge.missing:
        sums, noise = sums[:, :-1], noise[:-1]
    spots = np.arange(degree + 1) / degree
    ones, last = np.ones(degree + 1), (np.arange(degree + 1) == degree).astype(float)
    if everyone:  # the number is public, and stands without noise in the place of the first part
        rows = np.full((len(sums), 1), float(reader.number or 1))
        sums, noise = np.hstack([rows, sums]), np.concatenate([[0.0], noise])
        ones = (np.arange(degree + 1) == 0).astype(float)
    return Residuals(
        sums=sums,
        noise=noise,
        gaussian=nearly_normal(reader.law),
        over=spots,
        under=ones,
        number=ones,
        squares=np.array([last, -2 * spots, ones]) if degree == 2 else None,
        within=(0.0, 1.0),
        design=design(reader) or INDEPENDENT,
        rounding=float(rounding_of(reader, of) / of.width) if of.width else 0.0,
        origin=float(of.low),
        scale=float(of.width),
    )


def ratio_of(reader: Reader, need: ProductsOf) -> Residuals:
    """The sum of the first value over that of the second, from sums of both, of their products and squares."""
    import numpy as np

    block = reader.block(need)
    sums, noise = _parts(reader, block)
    places = range(block.degree + 1)
    a, b = (
        np.array(each, dtype=float) / block.degree
        for each in zip(*[(x, y) for x in places for y in places], strict=True)
    )
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


def _parts(reader: Reader, block: Block) -> "tuple[Floats, Floats]":
    """The noisy parts in rows, a line for each cell, and the standard deviation of the noise in each part."""
    import numpy as np

    first, parts = reader.first(block), block.reach.numbers
    values: Sequence[int] = reader.values[first : first + parts * reader.cells]
    sums = np.array(values, dtype=float).reshape(parts, reader.cells).T / block.height
    return sums, np.full(parts, math.sqrt(float(reader.law.variance)) / block.height)
