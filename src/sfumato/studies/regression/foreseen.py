"""What noise will do to a regression, before anything is spent: the fit itself, on the counts that public facts expect.

Nobody knows the data beforehand, so a population is assumed and named: as many rows in each cell of the factors,
numbers that fill their ranges evenly, an outcome that no covariate moves. Where people crowd in a part of a range, or a
covariate is close to others, noise is a larger part than is foreseen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import inf, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.studies.regression.cells import CellFit
from sfumato.studies.regression.design import ColumnProduct, Design, product_table
from sfumato.studies.regression.fieller import fieller_limits
from sfumato.studies.regression.linear import LinearFit, fit_linear
from sfumato.studies.regression.spline_fit import ScoreModel, SplineDesign, SplineFit, fit_splines
from sfumato.studies.regression.splines import STEPS

__all__ = ["NoiseForeseen", "foreseen_in_cells", "foreseen_in_products", "foreseen_in_splines", "outcome_shares"]

NORMAL = 1.96
COPIES, SELDOM = 400, 0.99
Fitted = SplineFit | CellFit | LinearFit


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseForeseen:
    """Of the coefficient that noise moves most: which part of its variance is noise, and how much wider it makes it."""

    share: float
    wider: float
    """The width of its interval over that without noise; ``inf`` where there would be no finite interval."""
    clear: float
    """How many standard deviations of its noise the information on a coefficient is, for the one where that is least:
    at 1.96 an interval of 95% has no ends."""


def outcome_shares(mean: float, deviation: float, low: float, high: float) -> NDArray[np.float64]:
    """The three parts of one row on average, (1 − t)², 2t(1 − t), t², of an outcome t of the way between its bounds.

    >>> outcome_shares(5, 0, 0, 10).tolist()
    [0.25, 0.5, 0.25]
    """
    way = (mean - low) / (high - low)
    square = way**2 + (deviation / (high - low)) ** 2
    return np.array([1 - 2 * way + square, 2 * (way - square), square])


def foreseen_in_splines(
    made: SplineDesign, family: ScoreModel, shares: NDArray[np.float64], rows: int, variance: float
) -> NoiseForeseen:
    """What noise of this variance in each count does; ``shares`` are those of the parts of the outcome."""
    spread = [basis.at(np.arange(STEPS + 1)).mean(axis=0) for basis in made.bases]
    places = reduce(lambda one, two: np.multiply.outer(one, two).ravel(), spread, np.ones(1))
    counts = rows / made.levels * np.multiply.outer(shares, np.multiply.outer(np.ones(made.levels), places))
    return _compared(*(fit_splines(made, family, counts, each) for each in (variance, 0.0)))


def foreseen_in_products(design: Design, shares: NDArray[np.float64], rows: int, variance: float) -> NoiseForeseen:
    """The same for a linear regression from sums of products, with noise of this variance in each.

    Noise makes the matrix of products smaller as often as larger, which widens intervals more than it narrows them.
    Therefore noisy copies of the expected sums are fitted, and medians told.
    """
    square = float(shares @ (1, -1, 1))  # of the coded outcome, whose mean is 0
    levels = {factor.name: len(factor.levels) for factor in design.factors}

    def expected(product: ColumnProduct) -> float:
        powers = dict(product.powers)
        of_outcome = {0: 1.0, 1: 0.0, 2: square}[powers.pop(design.outcome.name, 0)]
        of_numbers = prod(0.0 if power % 2 else 1 / (power + 1) for power in powers.values())
        return of_outcome * of_numbers * (not product.signs) / prod(levels[name] for name, _ in product.levels)

    sums = rows * np.array([expected(product) for product in product_table(design).products])
    drawn = np.random.default_rng(0).normal(0, sqrt(variance), (COPIES, len(sums)))
    noisy, silent = fit_linear(design, sums + drawn, variance), fit_linear(design, sums, 0.0)
    start = 1 if silent.estimates.shape[-1] > 1 else 0
    variances, alone = (np.einsum("...ii->...i", each.covariance)[..., start:] for each in (noisy, silent))
    low, high = fieller_limits(
        np.zeros_like(variances), variances, noisy.doubt[..., start:], noisy.leaning[..., start:], NORMAL
    )
    found = noisy.definite[:, None] & np.isfinite(high - low)
    wide = np.where(found, high - low, inf) / np.maximum(_width(silent)[start:], 1e-150)
    share = np.where(noisy.definite[:, None], 1 - alone / np.maximum(variances, 1e-150), 1.0)
    return NoiseForeseen(
        share=float(np.median(share, axis=0).max()),
        wider=float(np.median(wide, axis=0).max()),
        clear=inf if found.mean(axis=0).min() > SELDOM else 0.0,
    )


def foreseen_in_cells(fit: Callable[[float], CellFit], variance: float) -> NoiseForeseen:
    """The same where a fit on the expected counts of cells is given for each variance of the noise."""
    return _compared(fit(variance), fit(0.0))


def _compared(noisy: Fitted, silent: Fitted) -> NoiseForeseen:
    start = 1 if noisy.noise.shape[-1] > 1 else 0  # the intercept is seldom what is asked for
    variances, alone = (np.diagonal(each.covariance)[start:] for each in (noisy, silent))
    share = float(np.maximum(1 - alone / np.maximum(variances, 1e-150), 0).max())
    if not bool(noisy.definite):
        return NoiseForeseen(share=share, wider=inf, clear=0.0)
    with_noise, without = (_width(each)[start:] for each in (noisy, silent))
    clear = 1 / np.sqrt(np.maximum(noisy.doubt[start:], 1e-150))
    wider = float((with_noise / np.maximum(without, 1e-150)).max())
    return NoiseForeseen(share=share, wider=wider, clear=float(clear.min()))


def _width(fit: Fitted) -> NDArray[np.float64]:
    total = np.diagonal(fit.covariance)
    none = np.zeros_like(total)
    low, high = fieller_limits(none, total, fit.doubt, fit.leaning, NORMAL)
    return np.asarray(high - low)
