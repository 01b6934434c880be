"""Sums of errors: the enclosed tail against a convolution in high precision, and against fresh draws."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace, RoundedGaussian, Sum
from sfumato.noise import discrete_laplace, rounded_gaussian

F = Fraction
CASES = [
    (DiscreteLaplace(scale=F(2)),),
    (DiscreteLaplace(scale=F(2)), DiscreteLaplace(scale=F(1, 2))),
    (DiscreteLaplace(scale=F(3)), RoundedGaussian(sigma=F(5, 2))),
    (RoundedGaussian(sigma=F(1)),) * 3,
    (DiscreteLaplace(scale=F(1)),) * 20,
]


def mass(part: object, reach: int) -> list[mpmath.mpf]:
    if isinstance(part, DiscreteLaplace):
        q = mpmath.exp(-1 / mpmath.mpf(part.scale.numerator) * part.scale.denominator)
        return [(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)]
    s = mpmath.mpf(part.sigma.numerator) / part.sigma.denominator  # type: ignore[attr-defined]
    half = mpmath.mpf(1) / 2
    return [mpmath.ncdf((k + half) / s) - mpmath.ncdf((k - half) / s) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize("parts", CASES, ids=[str(len(parts)) for parts in CASES])
def test_the_tail_is_enclosed(parts: tuple) -> None:
    law, reach = Sum(parts=parts), 90
    assert law.shift == 0
    with mpmath.workdps(40):
        total = mass(parts[0], reach)
        for part in parts[1:]:
            other = mass(part, reach)
            total = [
                mpmath.fsum(total[i] * other[k - i] for i in range(max(0, k - 2 * reach), min(len(total), k + 1)))
                for k in range(len(total) + len(other) - 1)
            ]
            middle = len(total) // 2
            total = total[middle - reach : middle + reach + 1]
        for size in (0, 1, 3, 8, 20):
            truth = mpmath.fsum(p for k, p in enumerate(total) if abs(k - reach) > size)
            tail = law.tail(size)
            slack = mpmath.mpf("1e-9") * len(parts)  # what the reference itself cuts off
            assert mpmath.mpf(tail.low.numerator) / tail.low.denominator <= truth + slack
            assert truth - slack <= mpmath.mpf(tail.high.numerator) / tail.high.denominator
            assert tail.width < F(1, 2**90)
    assert float(law.variance) == pytest.approx(sum(float(part.variance) for part in parts))
    assert law.margin(0.95) <= sum(part.margin(0.95) for part in parts)
    assert law.quantile(0.5) == 0


@pytest.mark.parametrize(("confidence", "numbers"), [(0.95, 1), (0.99, 1), (0.95, 50)])
def test_simulated_coverage_is_the_laws_own_and_never_below_the_nominal(confidence: float, numbers: int) -> None:
    """A difference of two errors; 400,000 draws at ±4.75 standard errors; half the margin would fail."""
    law = Sum(parts=(DiscreteLaplace(scale=F(3)), RoundedGaussian(sigma=F(4))))
    margin, runs = law.margin(confidence, numbers=numbers), 400_000 // numbers
    errors = discrete_laplace(scale=3, size=runs * numbers) - rounded_gaussian(sigma=4, size=runs * numbers)
    covered = float((np.abs(errors.reshape(runs, numbers)) <= margin).all(axis=1).mean())
    own = float(1 - law.tail(margin).high) ** numbers
    limit = 4.75 * math.sqrt(own * (1 - own) / runs)
    assert own >= confidence
    assert abs(covered - own) <= limit
    half = float((np.abs(errors.reshape(runs, numbers)) <= margin // 2).all(axis=1).mean())
    assert abs(half - own) > limit


def test_on_a_lattice_too_fine_to_convolve_it_is_rounded_outward() -> None:
    fine = Sum(parts=(DiscreteLaplace(scale=F(2**40)), RoundedGaussian(sigma=F(2**40))))
    assert fine.shift > 20
    coarse = Sum(parts=(DiscreteLaplace(scale=F(32)), RoundedGaussian(sigma=F(32))))
    assert coarse.shift == 0
    ratio = fine.margin(0.95) / 2**40 / ((coarse.margin(0.95) + 0.5) / 32)
    assert 0.98 < ratio < 1.03
    assert fine.tail(10).low == 0
    assert fine.tail(10).high == 1
    size = 200_000
    errors = discrete_laplace(scale=2**40, size=size) - rounded_gaussian(sigma=2**40, size=size)
    assert float((np.abs(errors) > fine.margin(0.95)).mean()) <= 0.05 + 4.75 * math.sqrt(0.05 * 0.95 / size)


def test_a_sum_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no errors"):
        Sum(parts=())
