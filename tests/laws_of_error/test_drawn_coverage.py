"""Fresh draws are covered as often as the law says, for one error and for 50 together; 5% less noise is seen.

Each comparison is by the binomial law of a count at α = 1e-9. A law whose scale is 5% too small is off by 17 standard
errors or more, and passes with a chance below 1e-20.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, Sum, SumTerm
from sfumato.noise import discrete_gaussian, discrete_laplace, rounded_gaussian
from tests.alpha import likely

F = Fraction
DRAWS = 2_000_000
ALPHA = 1e-9
SMALLER = F(19, 20)


def laplace(factor: Fraction) -> DiscreteLaplace:
    return DiscreteLaplace(scale=20 * factor)


def rounded(factor: Fraction) -> RoundedGaussian:
    return RoundedGaussian(sigma=25 * factor)


def discrete(factor: Fraction) -> DiscreteGaussian:
    return DiscreteGaussian(sigma_squared=900 * factor**2)


def difference(factor: Fraction) -> Sum:
    """2·z₁ − z₂/3 + z₃; with few cells the law would be rounded outward, here it is exact."""
    third = SumTerm(coefficient=F(-1, 3), law=rounded(factor))
    return Sum(parts=(SumTerm(coefficient=F(2), law=laplace(factor)), third, discrete(factor)), cells=2**14)


def draws_of_difference(size: int) -> np.ndarray:
    """Six times the sum, so that it stays whole: 6·(2·z₁ − z₂/3 + z₃) = 12·z₁ − 2·z₂ + 6·z₃."""
    one, two = discrete_laplace(scale=20, size=size), rounded_gaussian(sigma=25, size=size)
    return 12 * one - 2 * two + 6 * discrete_gaussian(sigma_squared=900, size=size)


CASES: dict[str, tuple[Callable, Callable[[int], np.ndarray], int]] = {
    "discrete Laplace": (laplace, lambda size: discrete_laplace(scale=20, size=size), 1),
    "rounded Gaussian": (rounded, lambda size: rounded_gaussian(sigma=25, size=size), 1),
    "discrete Gaussian": (discrete, lambda size: discrete_gaussian(sigma_squared=900, size=size), 1),
    "a combination": (difference, draws_of_difference, 6),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Callable, np.ndarray, int]:
    law, draw, times = CASES[request.param]
    return law, np.abs(draw(DRAWS)), times


@pytest.mark.few(2)
@pytest.mark.parametrize(("confidence", "numbers"), [(F(19, 20), 1), (F(99, 100), 1), (F(19, 20), 50)])
@pytest.mark.alpha(ALPHA)
def test_draws_are_covered_as_often_as_the_law_says(case: tuple, confidence: Fraction, numbers: int) -> None:
    law, sizes, times = case

    def fits(stated: object) -> bool:
        """Whether the stated law's margin covers as many as that law says."""
        margin = stated.margin(confidence, numbers=numbers)  # type: ignore[attr-defined]
        tail = stated.tail(margin)  # type: ignore[attr-defined]
        assert tail.width < F(1, 10**9)
        own = float(1 - tail.high) ** numbers
        assert own >= confidence
        groups = sizes[: DRAWS // numbers * numbers].reshape(-1, numbers)
        return likely(int((groups <= int(margin * times)).all(axis=1).sum()), len(groups), own, alpha=ALPHA)

    assert fits(law(F(1)))
    assert not fits(law(SMALLER))


@pytest.mark.alpha(ALPHA)
def test_a_rounded_sum_covers_at_least_what_it_says() -> None:
    """On a lattice of 2^40 with 256 cells: at least 95% by the binomial law, and not more than 96%."""
    wide = DiscreteLaplace(scale=F(2**40))
    law = Sum(parts=(wide, SumTerm(coefficient=F(-1, 3), law=wide)), cells=256)
    errors = 3 * discrete_laplace(scale=2**40, size=DRAWS) - discrete_laplace(scale=2**40, size=DRAWS)
    covered = int((np.abs(errors) <= int(3 * law.margin(F(19, 20)))).sum())
    assert binom.ppf(ALPHA, DRAWS, 0.95) <= covered <= 0.96 * DRAWS
    assert float((np.abs(errors) <= int(3 * law.margin(F(19, 20)) * 9 / 10)).mean()) < 0.95 - 0.004
