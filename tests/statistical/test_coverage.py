"""Intervals cover as often as they say: drawn noise against each law's own coverage, and never below the nominal level.

Each comparison is an exact binomial test at α = 1e-10, some 100 in all. The twin draws noise 5% too wide and must be
refuted by the same test.
"""

from collections.abc import Callable
from fractions import Fraction
from math import sqrt

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binomtest

from sfumato import laws, noise
from sfumato.core.query import Law
from sfumato.inference.inversion import Spread
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.ratio import FINE, ratio_ends

ALPHA = 1e-10
LEVELS = [Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)]

Counts = npt.NDArray[np.int64]


def draw(law: Law, size: int, factor: Fraction = Fraction(1)) -> Counts:
    if isinstance(law, laws.DiscreteLaplace):
        return noise.discrete_laplace(scale=law.scale * factor, size=size)
    assert isinstance(law, laws.RoundedGaussian)
    return noise.rounded_gaussian(sigma=law.sigma * factor, size=size)


def agrees(hits: int, size: int, coverage: float) -> bool:
    return bool(binomtest(hits, size, min(1.0, max(0.0, coverage))).pvalue >= ALPHA)


LAWS: list[Law] = [
    laws.DiscreteLaplace(scale=Fraction(1, 2)),
    laws.DiscreteLaplace(scale=Fraction(2)),
    laws.DiscreteLaplace(scale=Fraction(10)),
    laws.RoundedGaussian(sigma=Fraction(1)),
    laws.RoundedGaussian(sigma=Fraction(25, 2)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.alpha(4 * ALPHA)
def test_one_number(law: Law) -> None:
    sizes = np.abs(draw(law, 400_000))
    for level in LEVELS:
        margin = law.margin(level)
        coverage = 1 - law.tail(margin).high  # type: ignore[attr-defined]
        assert coverage >= level
        assert agrees(int((sizes <= margin).sum()), len(sizes), float(coverage))


@pytest.mark.few(2)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.alpha(4 * ALPHA)
def test_fifty_numbers_at_once(law: Law) -> None:
    largest = np.abs(draw(law, 50 * 40_000).reshape(-1, 50)).max(axis=1)
    for level in LEVELS:
        margin = law.margin(level, numbers=50)
        coverage = float(1 - law.tail(margin).high) ** 50  # type: ignore[attr-defined]
        assert coverage >= float(level)
        assert agrees(int((largest <= margin).sum()), len(largest), coverage)


@pytest.mark.alpha(ALPHA)
def test_a_law_that_is_5_percent_too_narrow_is_refuted() -> None:
    law = laws.DiscreteLaplace(scale=Fraction(10))
    sizes = np.abs(draw(law, 400_000, factor=Fraction(105, 100)))
    margin = law.margin(LEVELS[2])
    assert not agrees(int((sizes <= margin).sum()), len(sizes), float(1 - law.tail(margin).high))


@pytest.mark.alpha(8 * ALPHA)
def test_continuous_laws_cover_what_is_drawn_on_a_fine_lattice() -> None:
    """Noise on the lattice 2⁻³⁰ is the continuous law but for steps that no count of 400,000 can see."""
    fine = 2**30
    drawn = {
        laws.Laplace(scale=Fraction(2)): noise.discrete_laplace(scale=2 * fine, size=400_000),
        laws.Gaussian(sigma=Fraction(3)): noise.rounded_gaussian(sigma=3 * fine, size=400_000),
    }
    for law, values in drawn.items():
        for level in LEVELS:
            margin = law.margin(level)
            coverage = 1 - law.tail(margin).high
            assert level <= coverage <= level + Fraction(1, 10**7)
            assert agrees(int((np.abs(values) <= float(margin) * fine).sum()), len(values), float(coverage))


SUMS = [
    [(Fraction(1), LAWS[1]), (Fraction(-1), LAWS[1])],
    [(Fraction(1), LAWS[0]), (Fraction(2), LAWS[1]), (Fraction(-1), LAWS[3])],
    [(Fraction(1, 5), law) for law in LAWS],
    [(Fraction(3, 7), LAWS[2]), (Fraction(-5, 11), LAWS[4])] * 5,
    [(Fraction(1), LAWS[2])] * 20,
]


@pytest.mark.few(3)
@pytest.mark.parametrize("terms", SUMS, ids=lambda terms: f"{len(terms)} parts")
@pytest.mark.alpha(8 * ALPHA)
def test_sums(terms: list[tuple[Fraction, Law]]) -> None:
    size = 100_000
    total = sum(float(coefficient) * draw(law, size) for coefficient, law in terms)
    spread = Spread(terms)
    for level in LEVELS:
        margin = spread.margin(level)
        hits = int((np.abs(total) <= float(margin) * (1 + 1e-12)).sum())
        assert binomtest(hits, size, float(level), alternative="less").pvalue >= ALPHA
        if spread.whole:
            assert spread.within(margin) >= float(level)
            assert agrees(hits, size, spread.within(margin))
        else:  # a very fine lattice: the margin may be wider by a 250th of a standard deviation
            assert agrees(hits, size, float(level)) or hits / size <= float(level) + 0.01


Shared = Callable[[LinearCombination, LinearCombination], LinearCombination]
RATIOS: list[tuple[int, int, Law, Law, Shared]] = [
    (500, 2_000, LAWS[2], LAWS[1], lambda over, under: under),
    (30, 90, LAWS[1], LAWS[4], lambda over, under: under),
    (40, 60, LAWS[2], LAWS[2], lambda over, under: over.plus(under, Fraction(1))),  # a part of its total
]


def forms(
    value: int, other: int, law: Law, other_law: Law, name: str = "r"
) -> tuple[LinearCombination, LinearCombination]:
    return (
        LinearCombination(Fraction(value), {Noise(name, 0, law): Fraction(1)}),
        LinearCombination(Fraction(other), {Noise(name, 1, other_law): Fraction(1)}),
    )


@pytest.mark.parametrize(("value", "other", "law", "other_law", "shared"), RATIOS)
@pytest.mark.alpha(4 * ALPHA)
def test_the_true_ratio_is_left_possible_as_often_as_stated(
    value: int, other: int, law: Law, other_law: Law, shared: Shared
) -> None:
    size = 100_000
    over, under = forms(value, other, law, other_law)
    under = shared(over, under)
    true = over.value / under.value
    pivot = over.plus(under, -true)
    drawn = sum(float(coefficient) * draw(one.law, size) for one, coefficient in pivot.noises.items())
    sizes = np.sort(np.abs(drawn))
    spread = pivot.spread(FINE)
    for level in LEVELS:
        low, high = 0, size  # the sizes below ``low`` are left possible; the bound grows with the size
        while low < high:
            middle = (low + high) // 2
            if spread.nearer(Fraction(float(sizes[middle]))) >= level:
                high = middle
            else:
                low = middle + 1
        assert binomtest(low, size, float(level), alternative="less").pvalue >= ALPHA
        assert low / size <= float(level) + 0.03 + 5 / sqrt(size)


@pytest.mark.long
@pytest.mark.parametrize(
    ("level", "size"), [(Fraction(1, 2), 50), pytest.param(Fraction(9, 10), 150, marks=pytest.mark.long)]
)
@pytest.mark.alpha(2 * ALPHA)
def test_whole_intervals_of_ratios(level: Fraction, size: int) -> None:
    """At one half also few draws leave some outside: all of 50 within, with up to 0.6 covered, has P < 1e-11."""
    law = LAWS[2]
    drawn = draw(law, 2 * size).reshape(-1, 2)
    hits = 0
    for noisy, other in (drawn + np.array([60, 240])).tolist():
        low, high = ratio_ends(*forms(noisy, other, law, law), level)
        hits += low <= 60 / 240 <= high
    assert binomtest(hits, size, float(level), alternative="less").pvalue >= ALPHA
    assert hits < size


@pytest.mark.long
def test_an_interval_of_a_ratio_holds_all_ratios_that_are_possible() -> None:
    """The search walks outward and stops at the first impossible ratio; on a grid nothing possible lies beyond."""
    for value, other, law, other_law in [
        (60, 240, LAWS[2], LAWS[2]),
        (3, 30, LAWS[1], LAWS[4]),
        (-5, 40, LAWS[2], LAWS[1]),
    ]:
        over, under = forms(value, other, law, other_law)
        low, high = ratio_ends(over, under, LEVELS[2])
        width = high - low
        for step in range(1, 60):
            for ratio in (low - width * step / 20, high + width * step / 20):
                form = over.plus(under, -Fraction(ratio))
                assert form.spread(FINE).nearer(abs(form.value)) >= LEVELS[2]
