"""What holds for every law of a single error: moments, tails, margins, quantiles and documents, by definition."""

from fractions import Fraction
from itertools import pairwise

import pytest

from sfumato import laws
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RoundedGaussian, Sum, SumTerm
from sfumato.laws.discrete_gaussian import _integrated, _summed
from sfumato.laws.margins import room
from tests.core.truth import exactly, mp, number, rounded_up
from tests.laws_of_error.truth import TINY, encloses, masses, outside, real_outside

F = Fraction
SQUARES = ("1/100", "1/7", "1/6", "1/2", "1", "10", "256", "257", "900", "5000/3")
WHOLE = [
    *(DiscreteLaplace(scale=F(scale)) for scale in ("1/10", "1/2", "2", "7/3", "20")),
    *(RoundedGaussian(sigma=F(sigma)) for sigma in ("1/5", "3/4", "1", "5/2", "20")),
    *(DiscreteGaussian(sigma_squared=F(square)) for square in SQUARES),
]
REAL = [
    *(Laplace(scale=F(scale)) for scale in ("1/1000", "2", "1000000")),
    *(Gaussian(sigma=F(sigma)) for sigma in ("1/7", "3", "1e12")),
]
LEVELS = [F(1, 2), F(9, 10), F(19, 20), F(999, 1000), 1 - F(1, 10**12)]


def name(law: object) -> str:
    return canonical(encode(law)).removeprefix('{"kind":"law.').removesuffix(',"version":1}')


@pytest.mark.few(10)
@pytest.mark.parametrize("law", WHOLE, ids=name)
def test_moments_are_those_of_the_sum_and_rounded_up(law) -> None:
    chances = masses(law)
    assert abs(mp.fsum(chances.values()) - 1) < TINY
    variance = mp.fsum(k * k * mass for k, mass in chances.items())
    error = mp.fsum(abs(k) * mass for k, mass in chances.items())
    gaussian = isinstance(law, RoundedGaussian) and law.sigma >= 1
    assert rounded_up(law.variance, variance, 1e-6 if gaussian else 1e-12)
    wide = isinstance(law, DiscreteGaussian) and law.sigma_squared > 256
    assert rounded_up(law.mean_absolute_error, error, 0.05 if gaussian else 4e-4 if wide else 1e-12)


@pytest.mark.parametrize("law", WHOLE, ids=name)
def test_whole_tails_are_enclosed_tight_and_falling(law) -> None:
    reach = max(masses(law))
    sizes = sorted({*range(min(reach, 12)), *(reach * k // 16 for k in range(16))})
    tails = [law.tail(size) for size in sizes]
    for size, tail in zip(sizes, tails, strict=True):
        truth = outside(law, size)
        assert encloses(tail.low, truth, tail.high)
        assert tail.width <= tail.high * F(1, 10**20)
    assert all(a.high > b.high and a.low >= b.low for a, b in pairwise(tails))
    assert law.tail(10**40).high < F(1, 2**20_000)


@pytest.mark.few(28)
@pytest.mark.parametrize("numbers", [1, 50, 10**6])
@pytest.mark.parametrize("law", WHOLE, ids=name)
def test_a_whole_margin_is_the_least_that_covers(law, numbers: int) -> None:
    for level in LEVELS:
        found = law.margin(level, numbers=numbers)
        assert type(found) is int
        assert law.covers(found, level, numbers=numbers)
        assert (1 - outside(law, found)) ** numbers >= number(level) - TINY * numbers
        if found:
            assert not law.covers(found - 1, level, numbers=numbers)
            assert (1 - outside(law, found - 1)) ** numbers < number(level) + TINY * numbers


@pytest.mark.few(8)
@pytest.mark.parametrize("law", WHOLE, ids=name)
def test_a_whole_quantile_is_the_least_that_reaches_its_level(law) -> None:
    for level in (F(1, 10**6), F(1, 20), F(49, 100), F(1, 2), F(51, 100), F(19, 20), 1 - F(1, 10**6)):
        found = law.quantile(level)
        assert type(found) is int
        below = mp.fsum(mass for k, mass in masses(law).items() if k <= found)
        before = mp.fsum(mass for k, mass in masses(law).items() if k < found)
        assert before - TINY <= number(level) <= below + TINY


@pytest.mark.parametrize("law", REAL, ids=name)
def test_continuous_moments_and_tails(law) -> None:
    if isinstance(law, Laplace):
        assert law.variance == 2 * law.scale**2
        assert law.mean_absolute_error == law.scale
        unit = law.scale
    else:
        assert law.variance == law.sigma**2
        assert rounded_up(law.mean_absolute_error, number(law.sigma) * mp.sqrt(2 / mp.pi), 1e-30)
        unit = law.sigma
    tails = []
    for share in (0, F(1, 3), 1, F(196, 100), 5, 20):
        tail, truth = law.tail(share * unit), real_outside(law, share * unit)
        assert rounded_up(tail.high, truth, 1e-30)
        assert rounded_up(-tail.low, -truth, 1e-30)
        tails.append(tail.high)
    assert tails == sorted(tails, reverse=True)
    assert law.tail(10**30 * unit).low == 0
    assert law.tail(10**30 * unit).high < F(1, 2**20_000)


@pytest.mark.parametrize("numbers", [1, 50])
@pytest.mark.parametrize("law", REAL, ids=name)
def test_a_continuous_margin_has_nine_digits_rounded_up(law, numbers: int) -> None:
    for level in LEVELS:
        found = law.margin(level, numbers=numbers)
        assert isinstance(found, Fraction)
        assert law.covers(found, level, numbers=numbers)
        assert (1 - real_outside(law, found)) ** numbers >= number(level)
        less = found * (1 - F(1, 10**8))
        assert not law.covers(less, level, numbers=numbers)
        assert (1 - real_outside(law, less)) ** numbers < number(level)


@pytest.mark.parametrize("law", REAL, ids=name)
def test_a_continuous_quantile_has_nine_digits_rounded_up(law) -> None:
    def below(value: Fraction) -> object:
        return 1 - real_outside(law, value) / 2 if value >= 0 else real_outside(law, -value) / 2

    for level in (F(1, 10**6), F(1, 20), F(19, 20), 1 - F(1, 10**6)):
        found = law.quantile(level)
        assert below(found) >= number(level) > below(found - abs(found) / 10**8)
    assert law.quantile(F(1, 2)) == 0


@pytest.mark.parametrize("exponent", [-4, 0, 4, 5, 9, 20, 31, 45])
def test_a_discrete_gaussian_of_any_width_is_tight_at_its_margin(exponent: int) -> None:
    """From σ = 1/10 to 2^45 the tail at the 95% point is known to far more than six digits, and near the continuous."""
    for square in (F(4) ** exponent if exponent >= 0 else F(1, 100), F(4) ** exponent * F(10, 7)):
        law = DiscreteGaussian(sigma_squared=square)
        margin = law.margin(0.95)
        tail = law.tail(margin)
        assert tail.width <= tail.high / 10**25
        if exponent >= 9:
            ideal = mp.sqrt(number(square)) * number(Gaussian(sigma=F(1)).margin(0.95))
            assert abs(margin + mp.mpf(1) / 2 - ideal) < 1 + mp.mpf(10) ** -7 * ideal


@pytest.mark.few(1)
@pytest.mark.parametrize("square", ["1/50", "3/2", "200", "257", "300", "1000", "123457/7", "10000"])
def test_both_ways_to_the_tail_of_a_discrete_gaussian_enclose_it_to_the_last_bit(square: str) -> None:
    """Term by term and by Euler-Maclaurin, against a sum to 75 digits: no slack is allowed, and both are narrow."""
    exact = F(square)
    twice, deviation = 2 * number(exact), float(exact) ** 0.5
    terms = [mp.exp(-(mp.mpf(k) ** 2) / twice) for k in range(int(40 * deviation) + 20)]
    for steps in range(17):
        within = int(steps * deviation)
        truth = exactly(mp.fsum(terms[within + 1 :]))
        ways = [_summed(exact, within + 1)]
        if exact > 256:
            ways.append(_integrated(exact, within))
        for way in ways:
            assert way.low <= truth * (1 + F(1, 10**70))
            assert truth * (1 - F(1, 10**70)) <= way.high
            assert way.width < way.low / 10**20


def test_the_room_for_several_is_rounded_down() -> None:
    """(1 − room)^n ≥ confidence in exact rationals, and by less than 2^-120."""
    for level in LEVELS:
        for numbers in (2, 3, 7, 50):
            kept = (1 - room(level, numbers)) ** numbers
            assert level <= kept < level + F(1, 2**120)
    assert room(F(19, 20)) == F(1, 20)


def test_certainty_has_no_margin_and_bad_parameters_no_law() -> None:
    for law in (*WHOLE[::5], *REAL[::3]):
        for ask in (law.margin, law.quantile):
            with pytest.raises(InvalidInput, match="confidence = 1 has no finite margin"):
                ask(1)
        with pytest.raises(InvalidInput, match="numbers"):
            law.margin(0.9, numbers=0)
        with pytest.raises(InvalidInput, match=r"size|margin"):
            law.covers(-1, 0.9)
    for make in (Laplace, DiscreteLaplace):
        with pytest.raises(InvalidInput, match="scale = 0 must be above 0"):
            make(scale=0)
    for make in (Gaussian, RoundedGaussian):
        with pytest.raises(InvalidInput, match="sigma = -1 must be above 0"):
            make(sigma=-1)
    with pytest.raises(InvalidInput, match="sigma_squared = 0 must be above 0"):
        DiscreteGaussian(sigma_squared=0)


def test_every_law_is_a_document() -> None:
    registry = Registry(laws.LAWS)
    half = SumTerm(coefficient=F(-1, 2), law=WHOLE[0])
    for law in (*WHOLE, *REAL, Sum(parts=(half, *WHOLE[5:8], REAL[0]), cells=512)):
        text = canonical(encode(law))
        assert registry.decode(parse(text)) == law
    names = ("discrete_gaussian", "discrete_laplace", "gaussian", "laplace", "rounded_gaussian", "sum", "term")
    assert {f"law.{name}" for name in names} <= registry.kinds
    assert {law.VERSION for law in laws.LAWS} == {1}
