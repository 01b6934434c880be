"""Whole numbers from real vectors: each person's integers keep the norm that is charged, whatever rounding does."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidInput
from sfumato.federated import PersonRounding


def rows(count: int, dimensions: int, size: float) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    random = np.random.default_rng(5)
    found = random.standard_normal((count, dimensions))
    rows_of: np.ndarray[tuple[int, int], np.dtype[np.float64]] = (
        size * found / np.sqrt((found**2).sum(axis=1, keepdims=True))
    )
    return rows_of


@pytest.mark.parametrize(("dimensions", "unit"), [(1, "1/3"), (40, "1/4"), (2000, "1/512")])
@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 1e9, 1e300])
def test_the_integer_norms_hold_exactly_for_everybody(dimensions: int, unit: str, size: float) -> None:
    rule = PersonRounding(dimensions=dimensions, norm=Fraction(1), unit=Fraction(unit))
    whole = rule.whole(rows(20, dimensions, size))
    assert whole.dtype == np.int64
    assert int((whole.astype(object) ** 2).sum(axis=1).max()) <= rule.l2_squared
    assert int(np.abs(whole).sum(axis=1).max()) <= rule.l1


def test_rounding_alone_would_break_the_norm() -> None:
    """100,000 dimensions and 512 units: to the nearest whole number 31% more, at random about 5%."""
    rule = PersonRounding(dimensions=100_000, norm=Fraction(512), unit=Fraction(1))
    row = np.full((1, 100_000), 512 / 100_000**0.5)
    at_random = float((np.floor(row + np.random.default_rng(3).random(row.shape)) ** 2).sum() ** 0.5) / 512
    assert float((np.rint(row) ** 2).sum() ** 0.5) / 512 > 1.05 or at_random > 1.0
    assert float((rule.whole(row).astype(float) ** 2).sum()) <= rule.l2_squared


def test_unbiased_where_the_slack_leaves_room() -> None:
    rule = PersonRounding(dimensions=10, norm=Fraction(1), unit=Fraction(1, 1000))
    row = rows(1, 10, 0.9)
    mean = rule.whole(np.repeat(row, 400, axis=0)).mean(axis=0) / 1000
    assert np.abs(mean - row[0]).max() < 1e-3  # a unit is 1/1000: no mean of roundings is further off


def test_what_is_no_number_counts_as_nothing() -> None:
    rule = PersonRounding(dimensions=2, norm=Fraction(1), unit=Fraction(1, 10))
    whole = rule.whole(np.array([[np.nan, 1.0], [np.inf, 0.0], [0.6, 0.0]]))
    assert whole[:2].tolist() == [[0, 0], [0, 0]]
    assert whole[2, 0] in (5, 6, 7)


def test_shortening_ends_and_moves_towards_zero() -> None:
    rule = PersonRounding(dimensions=3, norm=Fraction(2), unit=Fraction(1), slack=Fraction(1))
    long = np.array([[2, 2, 2], [5, 0, 0], [1, 1, 1], [2, 0, 0], [-3, 2, 1]])
    short = rule.shortened(long)
    assert (np.abs(short) <= np.abs(long)).all()
    assert (short * long >= 0).all()
    assert short[2:4].tolist() == long[2:4].tolist()
    assert int((short**2).sum(axis=1).max()) <= 4


def test_bounds_that_no_unit_fits_are_refused() -> None:
    for wrong in ({"unit": Fraction(10)}, {"unit": Fraction(1, 2**40)}, {"slack": Fraction(1, 2)}):
        with pytest.raises(InvalidInput, match="nothing was rounded"):
            PersonRounding(**{"dimensions": 2, "norm": Fraction(1), "unit": Fraction(1, 4), **wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="rows have 2 numbers"):
        PersonRounding(dimensions=2, norm=Fraction(1), unit=Fraction(1, 4)).whole(np.zeros((1, 3)))


@pytest.mark.parametrize("dimensions", [1, 8, 2048, 3000, 4096])
def test_the_bound_holds_whatever_the_unit_and_the_length(dimensions: int) -> None:
    """Steps that are no floats any more, and squares that would wrap in 64 bits: neither makes a vector longer."""
    tried = 0
    for exponent in (*range(-1100, -260, 60), -299, -40, 0, 40, 290, 900):
        try:
            rule = PersonRounding(
                dimensions=dimensions, norm=Fraction(2) ** exponent, unit=Fraction(2) ** (exponent - 10)
            )
        except InvalidInput:
            continue
        tried += 1
        given = np.array([[1.0], [-1e300], [0.0], [5e-324], [np.nan]]) * np.ones(dimensions)
        whole = rule.whole(given)
        assert max(sum(int(one) ** 2 for one in row) for row in whole.tolist()) <= rule.l2_squared
        assert not whole[2].any()
        assert not whole[4].any()
    assert tried >= 4
    rule = PersonRounding(dimensions=dimensions, norm=Fraction(1), unit=Fraction(1, 1024))
    longest = rule.shortened(np.full((1, dimensions), 2**62))
    assert sum(int(one) ** 2 for one in longest[0].tolist()) <= rule.l2_squared


def test_what_is_no_float_is_refused() -> None:
    for norm in (Fraction(1, 2**1065), Fraction(10**400), Fraction(2**301)):
        with pytest.raises(InvalidInput, match="not computed with"):
            PersonRounding(dimensions=2, norm=norm, unit=norm / 1024)
    with pytest.raises(InvalidInput, match="64 bits"):
        PersonRounding(dimensions=2**30, norm=Fraction(1), unit=Fraction(1, 2**20))
