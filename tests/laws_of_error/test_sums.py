"""Linear combinations of errors: the enclosed tail against enumeration in rationals and against closed forms."""

from fractions import Fraction
from itertools import cycle, islice, pairwise

import mpmath
import pytest

from sfumato.core.enclosures import Enclosure
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RoundedGaussian, Sum, SumTerm
from sfumato.laws.convolution import ONE, _laid
from tests.core.truth import mp, normal_cdf, number
from tests.laws_of_error.truth import combined, encloses

F = Fraction
NARROW, UNIT = DiscreteLaplace(scale=F(1, 2)), DiscreteLaplace(scale=F(1))
ROUNDED, DISCRETE = RoundedGaussian(sigma=F(3, 4)), DiscreteGaussian(sigma_squared=F(2))
EXACT, COARSE = "exact convolution", "convolution on a coarser lattice, rounded outward"

CASES = {
    "one": [(F(1), UNIT)],
    "minus a third of one": [(F(-1, 3), UNIT)],
    "two": [(F(1), UNIT), (F(1), NARROW)],
    "a difference": [(F(1), UNIT), (F(-1), DISCRETE)],
    "a ratio": [(F(1), UNIT), (F(-3473, 10_000), ROUNDED)],
    "far apart": [(F(1, 7), DISCRETE), (F(-1000), NARROW)],
    "even": [(F(2), UNIT), (F(-4), ROUNDED)],
    "three": [(F(1, 2), UNIT), (F(-2, 3), ROUNDED), (F(1), DISCRETE)],
    "four": [(F(-5), NARROW), (F(3), NARROW), (F(1, 2), DISCRETE), (F(1, 2), DISCRETE)],
    "twenty": [(F(1), NARROW)] * 20,
    "twenty with signs": list(
        islice(zip(cycle([F(1), F(-1, 2), F(3, 2)]), cycle([NARROW, ROUNDED, DISCRETE]), strict=False), 20)
    ),
}


def made(terms: list, cells: int = 4096) -> Sum:
    return Sum(parts=tuple(SumTerm(coefficient=c, law=law) for c, law in terms), cells=cells)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[list, dict[Fraction, Fraction], Fraction]:
    """The terms, the law by enumeration, and the least distance between its values."""
    terms = CASES[request.param]
    truth = combined(terms)
    places = sorted(truth)
    return terms, truth, min(b - a for a, b in pairwise(places))


def beyond(truth: dict[Fraction, Fraction], size: Fraction) -> Fraction:
    return sum((mass for place, mass in truth.items() if abs(place) > size), F(0))


@pytest.mark.few(2)
def test_the_exact_convolution_is_that_of_the_enumeration(case: tuple) -> None:
    terms, truth, gap = case
    law = made(terms)
    assert law.method == EXACT
    widest = max(truth)
    for size in {F(0), gap, 3 * gap, gap / 2, F(1, 3), F(1), widest / 9, widest / 5, widest / 3, widest / 2}:
        tail = law.tail(size)
        assert encloses(tail.low, beyond(truth, size), tail.high, 1e-36)
        assert tail.width < F(1, 2**34)
    assert float(law.variance) == pytest.approx(float(sum(p * p * mass for p, mass in truth.items())), rel=1e-2)
    assert law.variance >= sum(p * p * mass for p, mass in truth.items()) - F(1, 10**30)
    mean = sum(abs(p) * mass for p, mass in truth.items())
    assert mean - F(1, 10**30) <= law.mean_absolute_error <= sum(abs(c) * part.mean_absolute_error for c, part in terms)


@pytest.mark.few(12)
@pytest.mark.parametrize(("confidence", "numbers"), [(F(1, 2), 1), (F(19, 20), 1), (F(19, 20), 50), (F(999, 1000), 7)])
def test_the_exact_margin_is_the_least_multiple_that_covers(case: tuple, confidence: Fraction, numbers: int) -> None:
    terms, truth, _ = case
    law = made(terms)
    margin = law.margin(confidence, numbers=numbers)
    whole = all(c.denominator == 1 for c, _ in terms)
    assert type(margin) is (int if whole else Fraction)
    step = law._ready.step
    assert margin % step == 0
    assert law.covers(margin, confidence, numbers=numbers)
    assert (1 - number(beyond(truth, margin))) ** numbers >= number(confidence) - mp.mpf(10) ** -30
    if margin:
        assert not law.covers(margin - step, confidence, numbers=numbers)
        assert (1 - number(beyond(truth, margin - step))) ** numbers < number(confidence) + mp.mpf(10) ** -8


@pytest.mark.few(4)
def test_the_exact_quantile_is_the_least_multiple_that_reaches_its_level(case: tuple) -> None:
    terms, truth, _ = case
    law = made(terms)
    for level in (F(1, 1000), F(1, 20), F(2, 5), F(1, 2), F(3, 5), F(19, 20), F(999, 1000)):
        found = law.quantile(level)
        assert sum(mass for place, mass in truth.items() if place <= found) >= level - F(1, 10**30)
        assert sum(mass for place, mass in truth.items() if place < found) < level + F(1, 10**8)


@pytest.mark.few(5)
@pytest.mark.parametrize("cells", [16, 30, 512])
def test_with_few_cells_the_truth_is_enclosed_all_the_same(case: tuple, cells: int) -> None:
    terms, truth, gap = case
    law = made(terms, cells)
    widest = max(truth)
    for size in {F(0), gap, gap / 2, F(1, 3), F(1), widest / 30, widest / 9, widest / 5, widest / 3, widest / 2}:
        tail = law.tail(size)
        assert encloses(tail.low, beyond(truth, size), tail.high, 1e-36)
    exact = made(terms)
    for confidence in (F(1, 2), F(19, 20)):
        assert law.margin(confidence) >= exact.margin(confidence)
        assert law.quantile(confidence) >= exact.quantile(confidence)
        assert law.quantile(1 - confidence) >= exact.quantile(1 - confidence)


def test_few_cells_are_rounded_outward_and_say_so() -> None:
    terms = [(F(1), DiscreteLaplace(scale=F(60))), (F(-3473, 10_000), RoundedGaussian(sigma=F(50)))]
    exact, coarse, coarser = (made(terms, cells) for cells in (8192, 512, 64))
    assert exact.method == EXACT
    assert coarse.method == coarser.method == COARSE
    assert exact.margin(0.95) < coarse.margin(0.95) < coarser.margin(0.95)
    assert coarse.margin(0.95) < exact.margin(0.95) * F(102, 100)
    assert coarser.margin(0.95) < exact.margin(0.95) * F(114, 100)
    assert exact.quantile(0.05) < coarse.quantile(0.05) < coarser.quantile(0.05) < 0


def two_gaussians(size: Fraction) -> mpmath.mpf:
    return 2 * normal_cdf(-number(size) / mp.sqrt(9 + 16 * mp.mpf(1) / 4))


def two_laplaces(size: Fraction) -> mpmath.mpf:
    """For scales a ≠ b: (a²e^(−s/a) − b²e^(−s/b))/(a² − b²)."""
    a, b, s = mp.mpf(3), mp.mpf(1), number(size)
    return (a * a * mp.exp(-s / a) - b * b * mp.exp(-s / b)) / (a * a - b * b)


def both(size: Fraction) -> mpmath.mpf:
    """Laplace of scale 2 and N(0, 1), by integrating over the Gaussian."""
    with mpmath.workdps(30):
        s, b = mpmath.mpf(size.numerator) / size.denominator, mpmath.mpf(2)

        def above(x: mpmath.mpf) -> mpmath.mpf:
            left = s - x
            return mpmath.npdf(x) * (mpmath.exp(-left / b) / 2 if left >= 0 else 1 - mpmath.exp(left / b) / 2)

        return mp.mpf(2 * mpmath.quad(above, [-40, -10, 0, min(s, 20), max(s, 20), 60]))


CONTINUOUS = {
    "two Gaussians": ((Gaussian(sigma=F(3)), SumTerm(coefficient=F(-1, 2), law=Gaussian(sigma=F(4)))), two_gaussians),
    "two Laplaces": ((Laplace(scale=F(3)), SumTerm(coefficient=F(1, 7), law=Laplace(scale=F(7)))), two_laplaces),
    "one of each": ((Laplace(scale=F(2)), Gaussian(sigma=F(1))), both),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize(("cells", "excess"), [(512, 0.025), (4096, 0.003)])
def test_continuous_errors_are_enclosed(name: str, cells: int, excess: float) -> None:
    parts, truth = CONTINUOUS[name]
    law = Sum(parts=parts, cells=cells)
    assert law.method == COARSE
    for size in (F(0), F(1, 2), F(3), F(8), F(30)):
        tail = law.tail(size)
        assert encloses(tail.low, truth(size), tail.high, 1e-18)
    margin = law.margin(0.95)
    assert isinstance(margin, Fraction)
    assert truth(margin) <= 0.05
    assert truth(margin * (1 - Fraction(excess))) > 0.05
    lower = -law.quantile(0.05)
    assert truth(lower) >= 0.1
    assert truth(lower * (1 + Fraction(excess) * 2)) < 0.1


@pytest.mark.parametrize("cells", [512, 4096])
@pytest.mark.long
def test_a_fine_lattice_is_close_to_the_continuous_law(cells: int) -> None:
    scale = F(2**40)
    for parts, ideal in (
        ((DiscreteLaplace(scale=3 * scale), DiscreteLaplace(scale=scale)), two_laplaces),
        ((RoundedGaussian(sigma=3 * scale), DiscreteGaussian(sigma_squared=(2 * scale) ** 2)), two_gaussians),
    ):
        law = Sum(parts=parts, cells=cells)
        assert law.method == COARSE
        for share in (F(1, 2), F(3), F(8), F(30)):
            tail = law.tail(share * scale)
            assert encloses(tail.low, ideal(share), tail.high, 1e-11)  # the lattice itself moves it by about 2^-40
        margin = law.margin(0.95)
        assert type(margin) is int
        assert ideal(F(margin) / scale) <= 0.05 + 1e-11
        assert ideal(F(margin) / scale * F(975 if cells == 512 else 996, 1000)) > 0.05


@pytest.mark.long
def test_far_beyond_what_was_convolved_a_margin_is_still_found() -> None:
    """The mass left out at the ends is 2^-40 or 2^-64 of each part; beyond, the union bound takes over."""
    for parts in ((UNIT, NARROW), (DiscreteLaplace(scale=F(2**40)), Laplace(scale=F(2**40)))):
        law = Sum(parts=parts)
        deep = law.margin(1 - F(1, 2**120))
        assert law.tail(deep).high <= F(1, 2**120)
        assert deep <= 2 * sum(part.margin(1 - F(1, 2**121)) for part in parts)
        assert law.tail(10**9 * deep).high < F(1, 2**20_000)


@pytest.mark.long
def test_errors_that_are_nearly_always_0() -> None:
    """Tails of e^-200 and e^-1200: margins are 0 until a confidence asks for more."""
    still, stiller = DiscreteLaplace(scale=F(1, 200)), RoundedGaussian(sigma=F(1, 100))
    law = made([(F(1), still), (F(-1, 3), stiller)])
    assert law.method == EXACT
    assert law.margin(0.95) == law.quantile(0.95) == law.quantile(0.05) == 0
    assert law.tail(0).low <= still.tail(0).high
    assert law.tail(0).high >= still.tail(0).low
    assert law.margin(1 - F(1, 2**400)) >= 1
    assert made([(F(1, 3), still)], 16).margin(0.95) == 0
    assert Sum(parts=(still, Gaussian(sigma=F(1, 10**9)))).margin(0.95) < F(21, 10**10)


@pytest.mark.parametrize("far", [1, 2, 5, 40])
def test_what_is_cut_off_is_counted(far: int) -> None:
    """Wherever the lattice is cut, what is kept, rounded up, and what was left out make up all of the mass."""
    lattice = _laid(((F(1), UNIT), (F(2), NARROW), (F(1), DISCRETE)), F(1), F(far), 64, F(0))
    assert len(lattice.lows) == len(lattice.highs) == 2 * far + 1 or far == 40
    kept = sum((mass for mass in lattice.lows), 0)
    assert kept <= ONE <= sum(lattice.highs) + lattice.dropped
    assert lattice.dropped == pytest.approx(ONE - kept, rel=1e-9) or far == 40
    assert lattice.highs == lattice.highs[::-1]


def test_tails_fall() -> None:
    for law in (made(CASES["a ratio"]), made(CASES["three"], 64), Sum(parts=CONTINUOUS["one of each"][0], cells=64)):
        tails = [law.tail(F(k, 7)) for k in range(300)]
        assert all(a.high >= b.high and a.low >= b.low for a, b in pairwise(tails))
        assert all(isinstance(tail, Enclosure) and tail.low >= 0 and tail.high <= 1 for tail in tails)


def test_a_law_alone_stands_for_once_that_law() -> None:
    plain, termed = Sum(parts=(UNIT, NARROW)), made([(F(1), UNIT), (F(1), NARROW)])
    assert plain == termed
    assert plain.terms == plain.parts == termed.parts
    assert made([(F(1), UNIT), (F(0), NARROW)]).margin(0.95) == UNIT.margin(0.95)
    assert made([(F(-3), UNIT)]).margin(0.95) == 3 * UNIT.margin(0.95)
    assert made([(F(1, 3), UNIT)]).margin(0.95) == F(UNIT.margin(0.95), 3)


def test_what_is_no_sum_is_refused() -> None:
    for parts in ((), (SumTerm(coefficient=F(0), law=UNIT),)):
        with pytest.raises(InvalidInput, match="no errors"):
            Sum(parts=parts)
    with pytest.raises(InvalidInput, match="needs one error distribution"):
        Sum(parts=(Sum(parts=(UNIT,)),))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="coefficient"):
        SumTerm(coefficient="half", law=UNIT)  # type: ignore[arg-type]
    for cells in (0, 15, True, 2**16 + 1):
        with pytest.raises(InvalidInput, match="cells"):
            Sum(parts=(UNIT,), cells=cells)
    law = Sum(parts=(UNIT, NARROW))
    with pytest.raises(InvalidInput, match="confidence = 0 has no finite margin"):
        law.margin(0)
    with pytest.raises(InvalidInput, match="size = -1"):
        law.tail(-1)
