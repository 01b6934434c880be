"""Numbers as people read them: two digits of their margin, ends rounded outward, and never a row of zeros."""

import math
import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.rounding import rounded, short

NUMBERS = st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**12)
MARGINS = st.integers(-18, 9).flatmap(lambda power: st.integers(1, 999).map(lambda it: it * Fraction(10) ** power))


@given(NUMBERS, MARGINS, MARGINS)
def test_ends_are_rounded_outward_and_the_number_stays_between_them(value: Fraction, left: Fraction, right: Fraction):
    texts = rounded(value, value - left, value + right)
    assert texts is not None
    middle, low, high = (Fraction(text.replace(",", "")) for text in texts)
    assert low <= value - left
    assert high >= value + right
    assert low <= middle <= high
    margin = max(left, right)
    assert high - low <= left + right + margin / 2 or margin < Fraction(1, 10**11) or margin <= 10


def test_a_number_without_digits_is_not_a_row_of_zeros():
    for texts in (rounded(0, 0.0, 0.0), rounded(Fraction(0), 0, 0), rounded(1e-15, 0.0, 2e-15), (short(0.0),)):
        assert texts is not None
        assert not any(re.fullmatch(r"-?0\.0+", text) for text in texts), texts
    assert rounded(1e-15, 0.0, 2e-15) == ("1.0e-15", "0", "2.1e-15")


def test_whole_numbers_and_counts_have_no_digits_after_the_point():
    assert rounded(1234, 1200, 1300) == ("1,234", "1,200", "1,300")
    assert rounded(Fraction(12345, 10), 1200.5, 1300.2, whole=True) == ("1,234", "1,200", "1,301")
    assert rounded(0.5, -math.inf, 1) is None
