"""The enclosures hold what mpmath, an independent implementation, computes with hundreds of bits more."""

import os
from collections.abc import Callable
from fractions import Fraction
from itertools import islice, pairwise

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.core import enclosures
from sfumato.core.enclosures import Enclosure, exp, log, monotone, normal_cdf, pi, sqrt
from sfumato.errors import InvalidInput

LONG = os.environ.get("SFUMATO_LONG") == "1"

thorough = settings(max_examples=300 if LONG else 75, deadline=None)
bits_asked = st.sampled_from([1, 8, 53, 64, 128, 200])


def rationals(limit: int) -> st.SearchStrategy[Fraction]:
    """Ordinary ones, whole ones, ones with 1,300-digit denominators, and ones of any small size."""
    huge = st.integers(1, 2**4400)
    return st.one_of(
        st.fractions(-limit, limit, max_denominator=10**6),
        st.integers(-limit, limit).map(Fraction),
        st.fractions(-8, 8, max_denominator=1000),
        st.builds(lambda p, q: Fraction(p % (2 * limit * q + 1) - limit * q, q), huge, huge),
        st.builds(lambda p, n: Fraction(p, 2**n), st.integers(-9, 9), st.integers(4, 3000)),
    )


positive = st.one_of(
    rationals(10**9).map(abs).filter(bool),
    st.builds(lambda p, n: Fraction(p) * Fraction(2) ** n, st.integers(1, 10**9), st.integers(-4000, 4000)),
    st.builds(lambda s, n: 1 + Fraction(s, 2**n), st.sampled_from([-1, 1]), st.integers(1, 3000)),
    st.builds(Fraction, st.integers(1, 2**4400), st.integers(1, 2**4400)),
    st.sampled_from([Fraction(n, 3) + d for n in (2, 4) for d in (0, Fraction(1, 9**99), -Fraction(1, 9**99))]),
)


def reference(f: Callable[[mpmath.mpf], mpmath.mpf], x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Give mpmath's value, and a bound on its error: it has 300 bits more than asked, and may lose 100."""
    with mpmath.mp.workprec(bits + 300):
        value = Fraction(*mpmath.libmp.to_rational(f(mpmath.mpf(x.numerator) / x.denominator)._mpf_))
    return value, max(abs(value), Fraction(f is mpmath.log)) / 2 ** (bits + 200)


def lower_mass(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


REFERENCES = {exp: mpmath.exp, log: mpmath.log, sqrt: mpmath.sqrt, normal_cdf: lower_mass}


def check(f: Callable[..., Enclosure], x: Fraction, bits: int, *, claims: Callable[..., Enclosure] | None = None):
    """Hold ``f`` to what it (or ``claims``) claims; the numbers are too long for pytest to print."""
    claims = claims or f
    found = f(x, bits=bits)
    value, error = reference(REFERENCES[claims], x, bits)
    above, below = found.low > value + error, found.high < value - error
    assert not above, f"the lower end exceeds the value: {found!r}"
    assert not below, f"the value exceeds the upper end: {found!r}"
    too_wide = found.width * 2**bits > (1 if claims is log else abs(found.low))
    assert not too_wide, f"{found!r} is wider than 2**-{bits} allows"


@thorough
@given(x=rationals(3000), bits=bits_asked)
@example(x=Fraction(10**6), bits=128)
@example(x=Fraction(-(10**6)), bits=128)
@example(x=Fraction(-(10**6)) / 7, bits=1)
def test_exp_encloses_and_is_relatively_narrow(x, bits):
    check(exp, x, bits)


@thorough
@given(x=positive, bits=bits_asked)
def test_log_encloses_and_is_absolutely_narrow(x, bits):
    check(log, x, bits)


@thorough
@given(x=positive, bits=bits_asked)
def test_sqrt_encloses_and_is_relatively_narrow(x, bits):
    check(sqrt, x, bits)


@thorough
@given(x=rationals(200), bits=bits_asked)
@example(x=Fraction(-40), bits=128)
@example(x=Fraction(40), bits=128)
@example(x=Fraction(-200), bits=1000)
@example(x=Fraction(-4096), bits=64)
@example(x=Fraction(-5), bits=2000)
def test_normal_cdf_encloses_and_is_relatively_narrow_in_both_tails(x, bits):
    check(normal_cdf, x, bits)


@pytest.mark.parametrize("bits", [1, 2, 53, 128, 1000, 4000])
def test_pi_encloses(bits):
    found = pi(bits=bits)
    with mpmath.mp.workprec(bits + 300):
        value = Fraction(*mpmath.libmp.to_rational((+mpmath.pi)._mpf_))
    assert found.low < value < found.high
    assert found.width <= Fraction(1, 2**bits)


@pytest.mark.few(48)
@pytest.mark.parametrize("bits", [1, 3, 128, 500])
@pytest.mark.parametrize("n", range(-60, 61))
def test_exp_near_multiples_of_ln2_where_the_reduction_changes(n, bits):
    around = log(Fraction(2), bits=bits + 40) * n
    for x in (around.low, around.high, around.low.limit_denominator(1000)):
        check(exp, x, bits)


@pytest.mark.parametrize("bits", [1, 4, 16, 64, 128, 300])
def test_normal_cdf_where_the_series_gives_way_to_the_continued_fraction(bits):
    turn = sqrt(Fraction(bits, 4), bits=200)
    for x in (turn.low, turn.high, turn.low - Fraction(1, 100), turn.high + Fraction(1, 100)):
        check(normal_cdf, x, bits)
        check(normal_cdf, -x, bits)


def test_the_largest_arguments_are_served():
    assert exp(1 << 24).low * exp(-(1 << 24)).low <= 1 <= exp(1 << 24).high * exp(-(1 << 24)).high
    assert normal_cdf(4096).high == 1
    assert normal_cdf(-4096).low > 0


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (exp(0), 1),
        (log(1), 0),
        (sqrt(0), 0),
        (sqrt(1), 1),
        (sqrt(Fraction(49, 81)), Fraction(7, 9)),
        (sqrt(10**400), 10**200),
        (normal_cdf(0), Fraction(1, 2)),
    ],
)
def test_what_is_rational_is_exact(found, value):
    assert found.low == found.high == value


@pytest.mark.parametrize("f", [exp, log, sqrt, normal_cdf])
@pytest.mark.parametrize("bits", [16, 128, 512])
def test_a_result_is_dyadic_and_no_longer_than_its_precision_needs(f, bits):
    x = Fraction(3**701, 7**250)  # about 2**409.2, in lowest terms, no square
    for argument in (x / 2**407, x / 2**411):
        for end in (f(argument, bits=bits).low, f(argument, bits=bits).high):
            n, d = end.numerator, end.denominator
            assert d & (d - 1) == 0
            assert (n // (n & -n)).bit_length() <= bits * 5 // 4 + 48


@pytest.mark.parametrize("a", [Fraction(1, 2), Fraction(2), Fraction(7, 2), Fraction(6)])
def test_two_independent_ways_to_the_tail_agree_and_go_on_narrowing(a):
    ways = [enclosures._tail_by_series(a, 64), enclosures._tail_by_fraction(a, 64)]
    found = [[enclosures._between(*tail) for tail in islice(way, 4)] for way in ways]
    everything = [one for way in found for one in way]
    assert max(one.low for one in everything) <= min(one.high for one in everything)
    for way in found:
        assert all(later.width < earlier.width for earlier, later in pairwise(way))


@pytest.mark.parametrize("w", [10, 64, 65, 200, 1001])
@pytest.mark.parametrize(
    ("constant", "value", "units"),
    [
        (enclosures._ln2, lambda: mpmath.log(2), 2),
        (enclosures._pi, lambda: +mpmath.pi, 2),
        (enclosures._peak, lambda: 1 / mpmath.sqrt(2 * mpmath.pi), 3),
    ],
)
def test_a_constant_lies_within_the_units_that_the_proofs_count_on(constant, value, units, w):
    low, high = constant(w)
    with mpmath.mp.workprec(w + 300):
        assert low < value() * 2**w < high
    assert high - low <= units


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("y", [Fraction(1, 3), Fraction(1, 5), Fraction(1, 7), Fraction(1, 9**99), Fraction(0)])
def test_the_series_stays_within_its_slack(y, sign):
    for w in range(10, 300, 7):
        low, high = enclosures._arc(y.numerator, y.denominator, w, sign=sign)
        with mpmath.mp.workprec(w + 300):
            x = mpmath.mpf(y.numerator) / y.denominator
            assert low < (mpmath.atanh(x) if sign == 1 else mpmath.atan(x)) * 2**w < high


def test_a_tail_that_is_too_wide_is_not_returned(monkeypatch):
    attempts = iter([(1, 1 << 20, -20), (1 << 300, (1 << 300) + 1, -310), (0, 1 << 20, -20)])
    monkeypatch.setattr(enclosures, "_tail_by_fraction", lambda a, bits: attempts)
    assert normal_cdf(-30).low == Fraction(1, 1 << 10)


@pytest.mark.parametrize("bits", [53, 128, 400])
def test_the_first_attempt_at_a_tail_is_narrow_enough(bits):
    """Not needed for truth: it keeps normal_cdf fast."""
    for a in (Fraction(n, 4) for n in range(1, 200)):
        by = enclosures._tail_by_series if 4 * a * a < bits else enclosures._tail_by_fraction
        low, high, _ = next(by(a, bits + 2))
        assert (high - low) << (bits + 2) <= low, f"a = {a}"


def exp_without_remainder(x: Fraction, *, bits: int) -> Enclosure:
    term, total = Fraction(1), Fraction(0)
    for n in range(1, 40):
        total, term = total + term, term * x / n
    return Enclosure(total, total)


def exp_rounded_inward(x: Fraction, *, bits: int) -> Enclosure:
    found = exp(x, bits=bits + 20)
    down, up = Enclosure(found.high, found.high).outward(bits=bits), found.outward(bits=bits)
    return Enclosure(down.high, max(down.high, up.high))


def log_without_remainder(x: Fraction, *, bits: int) -> Enclosure:
    y = (x - 1) / (x + 1)
    total = 2 * sum(y ** (2 * n + 1) / (2 * n + 1) for n in range(12))
    return Enclosure(total, total)


def normal_cdf_by_one_convergent(x: Fraction, *, bits: int) -> Enclosure:
    t = -x
    for k in range(60, 0, -1):
        t = -x + k / t
    return exp(-x * x / 2, bits=bits + 8) / sqrt(2) / monotone(sqrt, pi(bits=bits + 8)) / t


def sqrt_without_the_upper_end(x: Fraction, *, bits: int) -> Enclosure:
    found = sqrt(x, bits=bits)
    return Enclosure(found.low, found.low)


@pytest.mark.parametrize(
    ("twin", "claims", "x"),
    [
        (exp_without_remainder, exp, Fraction(3)),
        (exp_without_remainder, exp, Fraction(-3)),
        (exp_rounded_inward, exp, Fraction(1, 3)),
        (log_without_remainder, log, Fraction(4, 3)),
        (normal_cdf_by_one_convergent, normal_cdf, Fraction(-5)),
        (sqrt_without_the_upper_end, sqrt, Fraction(2)),
    ],
)
def test_a_twin_without_its_remainder_is_caught(twin, claims, x):
    check(claims, x, 128)
    with pytest.raises(AssertionError, match="exceeds"):
        check(twin, x, 128, claims=claims)


def test_a_twin_that_is_true_but_too_wide_is_caught():
    with pytest.raises(AssertionError, match="wider"):
        check(lambda x, bits: exp(x, bits=bits - 40), Fraction(1, 3), 128, claims=exp)


@pytest.mark.parametrize("f", [exp, log, sqrt, normal_cdf])
@pytest.mark.parametrize("bad", [0.5, float("nan"), float("inf"), "1/2", None, 1j])
def test_anything_but_an_exact_number_is_refused_with_what_to_pass(f, bad):
    with pytest.raises(InvalidInput, match=rf"takes a Fraction.*not a {type(bad).__name__}.*Pass Fraction"):
        f(bad)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: log(0), "x > 0"),
        (lambda: log(Fraction(-1, 2)), "x > 0"),
        (lambda: sqrt(-1), "x >= 0"),
        (lambda: exp((1 << 24) + Fraction(1, 3)), r"\|x\| <= 16777216.*at least 2\*\*24"),
        (lambda: exp(-(10**9999)), r"at least 2\*\*33215"),
        (lambda: normal_cdf(-4097), r"\|x\| <= 4096"),
        (lambda: exp(1, bits=0), "bits must be"),
        (lambda: pi(bits=1 << 17), "bits must be"),
        (lambda: sqrt(2, bits=12.5), "bits must be"),
        (lambda: exp(1).outward(bits=-1), "bits must be"),
        (lambda: Enclosure(Fraction(2), Fraction(1)), "low > high"),
        (lambda: Enclosure(0.5, Fraction(1)), "Fractions"),
        (lambda: exp(1) + 0.5, "takes a Fraction"),
        (lambda: 1 / Enclosure(Fraction(-1), Fraction(1)), "holds 0"),
        (lambda: exp(1) / 0, "holds 0"),
    ],
)
def test_bad_input_is_refused(call, says):
    with pytest.raises(InvalidInput, match=says):
        call()


points = st.fractions(-100, 100, max_denominator=50)
triples = st.lists(points, min_size=3, max_size=3).map(sorted)


@given(a=triples, b=triples, bits=st.integers(1, 12))
def test_arithmetic_on_enclosures_holds_arithmetic_on_what_they_enclose(a, b, bits):
    x, y = Enclosure(a[0], a[2]), Enclosure(b[0], b[2])

    def holds(found: Enclosure, value: Fraction) -> bool:
        rough = found.outward(bits=bits)
        return rough.low <= found.low <= value <= found.high <= rough.high

    assert holds(x + y, a[1] + b[1])
    assert holds(x - y, a[1] - b[1])
    assert holds(x * y, a[1] * b[1])
    assert holds(-x, -a[1])
    assert holds(b[1] + x, b[1] + a[1])
    assert holds(b[1] - x, b[1] - a[1])
    assert holds(b[1] * x, b[1] * a[1])
    if not y.low <= 0 <= y.high:
        assert holds(x / y, a[1] / b[1])
        assert holds(a[1] / y, a[1] / b[1])
    assert x.width == a[2] - a[0]


def test_monotone_spans_both_ends():
    over = Enclosure(Fraction(1, 3), Fraction(1, 2))
    for f in (exp, log, sqrt, normal_cdf):
        found = monotone(f, over, bits=64)
        assert found == Enclosure(f(over.low, bits=64).low, f(over.high, bits=64).high)


def test_a_result_too_long_to_print_is_shown_all_the_same():
    assert repr(exp(-20000)).startswith("Enclosure(about 1.")
    assert repr(exp(0)) == "Enclosure(about 1, width 0)"
