"""Numbers are read exactly, whatever they come as, and written rounded against us."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.core.exact import decimal_up, fraction_text, natural, non_negative, positive, probability, rational
from sfumato.errors import InvalidInput


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (1e-30, Fraction(1, 10**30)),
        (-0.0, Fraction(0)),
        ("0.1", Fraction(1, 10)),
        ("1/10", Fraction(1, 10)),
        ("1e-5", Fraction(1, 10**5)),
        ("-3", Fraction(-3)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1e400"), Fraction(10) ** 400),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_a_number_is_what_it_is_written_as(value, read):
    assert rational(value, "x") == read
    assert type(rational(value, "x")) is Fraction


@pytest.mark.parametrize("text", ["1e40_1", "1e401 ", "\t1E-401\n", "1e+9_999_999_999", "1e-40_1", "1_0e99999"])
def test_an_exponent_is_short_however_it_is_written(text):
    """Fraction reads past blanks and underscores, and would multiply billions of digits out."""
    with pytest.raises(InvalidInput, match="too many digits"):
        rational(text, "epsilon")


def test_a_number_of_thousands_of_digits_is_read_like_any_other():
    assert rational(10**5000, "x") == 10**5000
    assert probability(Fraction(1, 10**5000), "x") == Fraction(1, 10**5000)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_the_decimal_that_it_prints_as(value):
    assert rational(value, "x") == Fraction(repr(value))
    assert float(rational(value, "x")) == value


@given(st.fractions())
def test_rationals_and_their_text_are_read_alike(value):
    assert rational(value, "x") == rational(str(value), "x") == value
    assert fraction_text(value) == str(value)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (float("nan"), "x = nan is not a finite number; nothing was done"),
        (float("inf"), "x = inf is not a finite number; nothing was done"),
        (float("-inf"), "x = -inf is not a finite number"),
        (Decimal("NaN"), "x = NaN is not a finite number"),
        (Decimal("sNaN"), "x = sNaN is not a finite number"),
        (Decimal("Infinity"), "x = Infinity is not a finite number"),
        (True, "x is bool; nothing was done"),
        (np.True_, "x is bool"),
        (None, "x is NoneType; nothing was done"),
        ([1], "x is list"),
        (1j, "x is complex"),
        (b"1", "x is bytes"),
        ("", "x = '' is not a number; nothing was done"),
        ("many", "x = 'many' is not a number"),
        ("nan", "x = 'nan' is not a number"),
        ("inf", "x = 'inf' is not a number"),
        ("1/0", "x = '1/0' is not a number"),
        ("1/2/3", "x = '1/2/3' is not a number"),
        ("0x10", "x = '0x10' is not a number"),
    ],
)
def test_what_is_not_a_number_is_refused_by_every_reader(bad, says):
    for read in (rational, positive, non_negative, probability):
        with pytest.raises(InvalidInput, match=says):
            read(bad, "x")


@pytest.mark.parametrize(
    ("read", "inside", "outside", "says"),
    [
        (positive, ["1e-30", 1, 10**9], [0, -1, 0.0, "-1e-30"], "must be above 0; nothing was done. Give a positive x"),
        (non_negative, [0, "1e-30", 5], [-1, "-1e-30"], "must not be below 0; nothing was done. Give x ≥ 0"),
        (probability, [0, 1, 0.5], [-1, "-1e-30", "1.0000000001", 2], "is outside 0 to 1; nothing was done. Give a x"),
    ],
)
def test_ranges_end_where_they_say(read, inside, outside, says):
    for value in inside:
        assert read(value, "x") == rational(value, "x")
    for value in outside:
        with pytest.raises(InvalidInput, match=f"x = {value} {says}"):
            read(value, "x")


def test_a_whole_number_is_an_int_of_at_least_the_least():
    assert natural(1, "n") == 1
    assert natural(0, "n", least=0) == 0
    assert natural(10**30, "n", least=5) == 10**30
    for bad in (0, -1, True, 1.0, "1", None, Fraction(1), np.int64(1)):
        with pytest.raises(InvalidInput, match=r"n = .* must be a whole number of at least 1; nothing was done"):
            natural(bad, "n")
    with pytest.raises(InvalidInput, match="at least 3"):
        natural(2, "n", least=3)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (Fraction(0), 4, "0"),
        (Fraction(2, 3), 4, "0.6667"),
        (Fraction(1, 3), 4, "0.3334"),
        (Fraction(-1, 3), 4, "-0.3333"),
        (Fraction(1, 10**6), 4, "1e-6"),
        (Fraction(1, 3) / 10**6, 4, "3.334e-7"),
        (Fraction(99999, 10**10), 4, "1e-5"),
        (Fraction(99999, 10**9), 4, "0.0001"),
        (Fraction(1, 10**4), 4, "0.0001"),
        (Fraction(12345678), 4, "12350000"),
        (Fraction(99999), 4, "100000"),
        (Fraction(-12345678), 4, "-12340000"),
        (Fraction(1001, 1000), 3, "1.01"),
        (Fraction(1, 2), 1, "0.5"),
        (Fraction(951, 10), 2, "96"),
        (Fraction(2, 3), 40, "0." + "6" * 39 + "7"),
    ],
)
def test_decimals_are_rounded_up(value, digits, shown):
    assert decimal_up(value, digits) == shown


sizes = st.builds(Fraction, st.integers(-(10**9), 10**9), st.integers(1, 10**9))
amounts = st.builds(lambda size, power: size * Fraction(10) ** power, sizes, st.integers(-40, 20))


@given(value=amounts, digits=st.integers(1, 40))
@example(value=Fraction(1, 10**5) - Fraction(1, 10**30), digits=4)
@example(value=Fraction(-1, 10**5) - Fraction(1, 10**30), digits=4)
def test_a_shown_decimal_is_never_smaller_and_off_by_less_than_its_last_digit(value, digits):
    shown = Fraction(decimal_up(value, digits))
    assert shown >= value
    assert shown - value < abs(value) * Fraction(10) ** (1 - digits) if value else shown == 0


@given(value=amounts)
def test_what_is_shown_does_not_depend_on_the_precision_that_someone_set(value):
    plainly = decimal_up(value)
    with localcontext() as context:
        context.prec = 2
        assert decimal_up(value) == plainly


def test_whatever_states_a_privacy_fact_holds_exact_numbers() -> None:
    """A float that is handed to a guarantee, a bound, an event or a mechanism is read as the decimal it prints as."""
    from sfumato.core import events
    from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
    from sfumato.core.sensitivity import L1, L2, LInf
    from sfumato.laws import DiscreteLaplace, RoundedGaussian
    from sfumato.mechanisms import Gaussian, Laplace

    tenth = Fraction(1, 10)
    assert Pure(epsilon=0.1).epsilon == tenth
    assert Approximate(epsilon="1/10", delta=0.1).delta == tenth
    assert ZCDP(rho=0.1).rho == GDP(mu=0.1).mu == tenth
    assert RDP(curve=((2, 0.1),)).curve == ((Fraction(2), tenth),)
    assert L1(0.1).value == L2(0.1).squared == LInf(0.1).value == tenth
    assert (
        events.DiscreteLaplace(l1=1, scale=0.1).scale
        == events.PoissonSampled(rate=0.1, event=events.Gaussian(l2_squared=1, sigma_squared=1)).rate
    )
    assert Laplace(l1=1, scale=0.1).scale == Gaussian(l2_squared=1, sigma=0.1).sigma == tenth
    assert DiscreteLaplace(scale=0.1).scale == RoundedGaussian(sigma=0.1).sigma == tenth
    for stated in (Pure(epsilon=0.1), L1(0.1), Laplace(l1=1, scale=0.1)):
        assert all(type(getattr(stated, name)) is Fraction for name in stated.__slots__)
