"""Figures at the edges: noise narrower than its lattice, near-certain confidence, no noise at all, forged sources."""

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.query import Law
from sfumato.core.release import Release, presenter_of
from sfumato.inference.inversion import Spread
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.ratio import Ratio, ratio_ends
from sfumato.laws import DiscreteLaplace, RoundedGaussian, Sum

NARROW: list[Law] = [
    DiscreteLaplace(scale=Fraction(1, 8)),
    DiscreteLaplace(scale=Fraction(1, 1000)),
    RoundedGaussian(sigma=Fraction(1, 10)),
    RoundedGaussian(sigma=Fraction(1, 100)),
    RoundedGaussian(sigma=Fraction(1, 1000)),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("law", NARROW, ids=str)
def test_noise_narrower_than_its_lattice(law: Law) -> None:
    spread = Spread([(Fraction(1), law), (Fraction(-1), law)])
    for level in (Fraction(1, 2), Fraction(19, 20), Fraction(999999, 10**6)):
        assert spread.margin(level) == Sum(parts=(law, law)).margin(level)


@pytest.mark.parametrize("sure", [7, 9, 11])
def test_near_certain_confidence_ends_and_covers(sure: int) -> None:
    """There Chernoff's bound takes over: at most half as wide again as the exact law asks for."""
    level = 1 - Fraction(1, 10**sure)
    law = DiscreteLaplace(scale=Fraction(2))
    found, exact = Spread([(Fraction(1), law), (Fraction(1), law)]).margin(level), Sum(parts=(law, law)).margin(level)
    assert exact <= found <= Fraction(3, 2) * exact
    with pytest.raises(errors.InvalidInput, match="a little less"):
        Spread([(Fraction(1), law)]).margin(1 - Fraction(1, 10**13))


@pytest.mark.long
def test_absurd_sizes_are_refused_and_huge_ones_worked_out() -> None:
    law = DiscreteLaplace(scale=Fraction(2**60))
    assert float(Spread([(Fraction(1), law), (Fraction(1), law)]).margin(Fraction(19, 20))) == pytest.approx(
        float(Sum(parts=(law, law)).margin(Fraction(19, 20))), rel=0.01
    )
    for coefficient in (Fraction(10) ** -200, Fraction(10) ** 200):
        with pytest.raises(errors.Unsupported, match="too large or too small"):
            Spread([(coefficient, law), (2 * coefficient, law)])


def releases(epsilon: object = 8) -> tuple[Release, Release]:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=100), name="trial")
    table = vault.table(pa.table({"r": ["a"] * 9 + ["b"]}), name="t", version="1", keys={"r": ["a", "b"]})
    return table.group_by("r").count().release(epsilon=epsilon), table.count().release(epsilon=epsilon)


@pytest.mark.long
def test_arithmetic_at_large_epsilon() -> None:
    by_group, everyone = releases()
    assert len((by_group - everyone).interval()) == 2
    assert len((by_group / everyone).interval()) == 2
    assert by_group.figure.total().interval()[0][0] <= 10


def test_figures_without_noise_divide_like_numbers() -> None:
    one, _ = releases(1)
    five = one * 0 + 5
    assert [high - low for low, high in (one / five).interval()] == pytest.approx(
        [float(high - low) / 5 for low, high in one.interval()], rel=0.05, abs=1e-3
    )
    assert ((one - one) / five).interval() == [(0.0, 0.0)] * 2
    assert (one / (one * 0)).interval() == [(-math.inf, math.inf)] * 2


@pytest.mark.long
@pytest.mark.parametrize("many", [5, pytest.param(50, marks=pytest.mark.long)])
def test_joint_ratios_that_share_noise_share_their_doubt(many: int) -> None:
    law = DiscreteLaplace(scale=Fraction(2))
    total = LinearCombination(Fraction(1000), {Noise("t", 0, law): Fraction(1)})
    parts = tuple(
        LinearCombination(Fraction(100), {Noise("r", place, law): Fraction(1), Noise("t", 0, law): Fraction(-1)})
        for place in range(many)
    )
    ratio = Ratio(over=parts, under=(total,) * many, labels={}, measure="ratio", sources=())
    assert ratio.interval(joint=True)[0] == ratio_ends(parts[0], total, 1 - Fraction(1, 20) / many)


def test_two_releases_with_one_identifier_that_differ_are_refused() -> None:
    one, _ = releases(1)
    forged = replace(
        one,
        presenter=presenter_of(one),
        statement=replace(one.statement, values=tuple(value + 1000 for value in one.values)),
    )
    with pytest.raises(errors.InvalidInput, match="forged"):
        one - forged
