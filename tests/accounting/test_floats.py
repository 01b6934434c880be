"""Rationals are rounded to the side that is named; transforms have a bound where it is proven. They kill mutants."""

import math
from fractions import Fraction

import pytest

from sfumato.accounting import floats
from sfumato.errors import InvalidInput

pytestmark = pytest.mark.kills


@pytest.mark.parametrize("value", ["1/3", "2/3", "-1/3", str(10**30 + 1), str(Fraction(1, 10**400))])
def test_floats_are_rounded_to_the_side_that_is_named(value):
    below, above = floats.float_down(Fraction(value)), floats.float_up(Fraction(value))
    assert Fraction(below) < Fraction(value) < Fraction(above)
    assert math.nextafter(below, math.inf) == above


def test_what_is_a_float_stays_itself():
    for value in (0.25, -0.25, 0.0, 2.0**60):
        assert floats.float_down(Fraction(value)) == floats.float_up(Fraction(value)) == value


def test_the_bound_of_a_transform_grows_with_its_levels():
    for bits in (5, 6, 22):
        assert floats.transform_error(1 << bits) == 8 * 2.0**-53 * bits


@pytest.mark.parametrize("size", [0, 1, 2, 16, 31, 33, 48, 63, 65, 1000])
def test_other_lengths_have_no_bound(size):
    with pytest.raises(InvalidInput, match=f"powers of two from 32 on, and {size} is not one"):
        floats.transform_error(size)
