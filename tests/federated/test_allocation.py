"""Dividing ε among clients: the figures of the requirement, the total kept exactly, and no division is better."""

from fractions import Fraction

import pytest
from scipy.optimize import minimize

from sfumato.errors import InvalidInput
from sfumato.federated import CountedNoise, allocate

ROUNDS, SIZES = (1, 5, 20), (Fraction(1, 2), Fraction(1), Fraction(4))


@pytest.mark.claim("S3-15")
def test_the_figures_of_both_ways_of_counting() -> None:
    each = allocate(rounds=ROUNDS, sensitivities=SIZES, total=3)
    once = allocate(rounds=ROUNDS, sensitivities=SIZES, total=3, counted=CountedNoise.CLIENT)
    assert [float(round(one, 4)) for one in each.each] == [0.0337, 0.0535, 0.1349]
    assert [float(round(one, 4)) for one in once.each] == [0.0854, 0.0793, 0.1259]
    equal = sum(count * 2 * size**2 for count, size in zip(ROUNDS, SIZES, strict=True)) / Fraction(3, 26) ** 2
    assert float(round(equal / each.variance(), 2)) == 1.25


@pytest.mark.claim("S3-15")
@pytest.mark.parametrize("counted", list(CountedNoise))
def test_the_total_is_kept_and_no_division_has_less_variance(counted: CountedNoise) -> None:
    found = allocate(rounds=ROUNDS, sensitivities=SIZES, total=3, counted=counted)
    assert 3 - Fraction(1, 10**9) < found.total <= 3
    assert found.by_client == tuple(count * one for count, one in zip(ROUNDS, found.each, strict=True))
    power = 1 if counted is CountedNoise.ZCDP else 2
    times = (1, 1, 1) if counted is CountedNoise.CLIENT else ROUNDS

    def variance(parts: "list[float]") -> float:
        return sum(t * float(s) ** 2 / p**power for t, s, p in zip(times, SIZES, parts, strict=True))

    kept = {"type": "eq", "fun": lambda parts: sum(r * p for r, p in zip(ROUNDS, parts, strict=True)) - 3}
    best = minimize(variance, [3 / 26] * 3, constraints=[kept], bounds=[(1e-4, 3)] * 3, tol=1e-10)
    assert variance([float(one) for one in found.each]) <= best.fun * (1 + 1e-6)


@pytest.mark.claim("S3-15")
def test_in_zcdp_variances_are_in_proportion_to_sensitivities() -> None:
    found = allocate(rounds=ROUNDS, sensitivities=SIZES, total=1, counted=CountedNoise.ZCDP)
    variances = [size**2 / (2 * rho) for size, rho in zip(SIZES, found.each, strict=True)]
    assert [float(round(v / variances[0], 6)) for v in variances] == [1, 2, 8]


def test_clients_without_a_part_are_refused() -> None:
    with pytest.raises(InvalidInput, match="every client"):
        allocate(rounds=(1,), sensitivities=(1, 2), total=1)
    with pytest.raises(InvalidInput, match="left with nothing"):
        allocate(rounds=(1, 1), sensitivities=("1/1000000000000000000000", 1), total=1)
