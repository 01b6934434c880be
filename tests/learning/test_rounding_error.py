"""The sensitivity of rounded sums: it covers the sums and their rounding, at the pitch that it leads to itself."""

import math
from fractions import Fraction

import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.learning.rounding_error import FARTHEST, ROUNDING, WIDTH, rounded_l2

pytestmark = pytest.mark.kills


@pytest.mark.parametrize(("dimension", "multiplier"), [(1, 1), (203_530, "1/2"), (10**6, 100), (25_000_000, "13/10")])
def test_the_sensitivity_covers_the_sums_and_their_rounding_at_its_own_pitch(
    dimension: int, multiplier: object
) -> None:
    moved = Fraction(3, 2)
    delta = rounded_l2(moved, dimension=dimension, multiplier=multiplier)  # type: ignore[arg-type]
    pitch = Fraction(multiplier) * delta / WIDTH  # type: ignore[arg-type]
    exact = moved + 2 * ROUNDING * pitch * Fraction(math.isqrt(dimension * 4**60) + 1, 2**60)
    assert 0 <= delta - exact + Fraction(1, 10**15) <= Fraction(1, 10**14) * delta
    assert delta < Fraction(4, 3) * moved + moved


def test_noise_without_room_for_rounding_is_refused_and_no_less() -> None:
    assert rounded_l2(1, dimension=2**30, multiplier=Fraction(79, 10)) < Fraction(3, 2)
    with pytest.raises(Refused, match="nothing was spent"):
        rounded_l2(1, dimension=2**30, multiplier=8)
    assert rounded_l2(0, dimension=5, multiplier=1) == 0
    for moved, dimension, multiplier in ((-1, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(InvalidInput):
            rounded_l2(moved, dimension=dimension, multiplier=multiplier)


def test_the_floats_of_the_quotient_err_by_less_than_what_the_bound_leaves_them() -> None:
    spare = ROUNDING - Fraction(1, 2)
    most = FARTHEST * ((1 + Fraction(1, 2**53)) ** 2 - 1)
    assert most < spare < Fraction(21, 10) * most
    assert WIDTH == 2**20
