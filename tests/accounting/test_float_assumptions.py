"""What accounting assumes about floats, looked at: elementary functions, the normal distribution and the transform.

Each constant of ``accounting.floats`` is compared with mpmath or with whole numbers, and must hold with a wide margin
on the machine that runs this.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import fft

from sfumato.accounting import connect_the_dots, floats, lattice, profiles, tilted_fft
from tests.core.truth import gaussian_delta, mp

UNIT = floats.UNIT


def dense(low: float, high: float, count: int = 1500) -> np.ndarray:
    """Points of a range, evenly spaced and away from round numbers."""
    return np.linspace(low, high, count) * (1 + 1e-9 * math.pi)


def both_signs(low: int, high: int, count: int = 1500) -> np.ndarray:
    """Points at all sizes from 2^low to 2^high, and their opposites."""
    sizes = 2.0 ** dense(low, high, count)
    return np.concatenate([-sizes[::-1], sizes])


def largest_error(found: np.ndarray, truth: Callable[[object], object], points: np.ndarray) -> float:
    """The largest relative error, in units."""
    errors = []
    with mpmath.workdps(40):
        for value, point in zip(found, points, strict=True):
            exact = truth(mpmath.mpf(float(point)))
            errors.append(abs(mpmath.mpf(float(value)) - exact) / abs(exact))
        return float(max(errors)) / UNIT


# ------------------------------------------------------------------------------------------ elementary functions

SHARE = 3  # how many times smaller than assumed every measured error must be


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("exp", both_signs(-60, 9)),
        ("exp", dense(-700, 700)),
        ("expm1", both_signs(-60, 9)),
        ("expm1", dense(-3, 3)),
        ("log", 2.0 ** dense(-1020, 1020)),
        ("log", dense(0.5, 2)),
        ("log1p", 2.0 ** dense(-60, 60)),
        ("log1p", -(2.0 ** dense(-60, -0.001))),
    ],
)
def test_elementary_functions_are_well_within_what_is_assumed(name, points):
    truth = getattr(mpmath, name)
    assert largest_error(getattr(np, name)(points), truth, points) < floats.ELEMENTARY / UNIT / SHARE
    alone = np.array([getattr(math, name)(point) for point in points[::5]])
    assert largest_error(alone, truth, points[::5]) < floats.ELEMENTARY / UNIT / SHARE


def test_logarithms_of_large_whole_numbers_are_as_good():
    """Rényi orders take logarithms of binomial coefficients that no float could hold."""
    for number in (math.comb(1024, k) for k in (1, 7, 300, 512)):
        with mpmath.workdps(40):
            truth = mpmath.log(number)
            assert abs(mpmath.mpf(math.log(number)) - truth) < abs(truth) * floats.ELEMENTARY / SHARE


def phi(x: object) -> object:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


@pytest.mark.few(2)
@pytest.mark.parametrize(("low", "high"), [(-30, -14), (-14, -5), (-5, 0), (0, 9)])
def test_the_normal_distribution_is_well_within_what_is_assumed(low, high):
    points = dense(low, high, 3000)
    points = points[points >= -floats.DEEPEST]
    assert largest_error(floats.ndtr(points), phi, points) < floats.NORMAL / UNIT / SHARE
    above, below = floats.normal_up(points), floats.normal_down(points)
    with mpmath.workdps(40):
        for point, low_end, high_end in zip(points[::7], below[::7], above[::7], strict=True):
            assert mpmath.mpf(float(low_end)) < phi(mpmath.mpf(float(point))) < mpmath.mpf(float(high_end))


def test_beyond_the_depth_that_is_trusted_the_bounds_are_still_bounds():
    """SciPy's own value is 0 or has few digits left there."""
    deep = np.array([-30.000001, -37.6, -38.6, -1000.0, -math.inf])
    assert floats.ndtr(-38.6) == 0 < phi(mpmath.mpf("-38.6"))
    assert np.all(floats.normal_up(deep) >= float(phi(mpmath.mpf(-30))))
    assert np.all(floats.normal_down(deep) == 0)
    assert floats.normal_up(np.array([math.inf]))[0] >= 1 > floats.normal_down(np.array([math.inf]))[0]


@pytest.mark.parametrize(("mu", "epsilon"), [("1/100", "1/2"), ("1/10", "4"), (1, 30), (3, 100), (40, 1300)])
def test_the_profile_of_a_gaussian_stays_above_the_truth_also_where_floats_end(mu, epsilon):
    truth = gaussian_delta(Fraction(mu), Fraction(epsilon))
    found = profiles.gaussian(Fraction(mu) ** 2)(np.array([float(Fraction(epsilon))]))[0]
    assert mp.mpf(float(found)) >= truth > 0


# ------------------------------------------------------------------------------------------------- the transform

BITS = 160


@cache
def roots(size: int) -> list[tuple[int, int]]:
    """e^(−2πik/size) for k below size/2, times 2^BITS, to the nearest whole numbers."""
    with mpmath.workdps(60):
        turns = [mpmath.expjpi(mpmath.mpf(-2 * k) / size) for k in range(size // 2)]
        return [(int(mpmath.nint(turn.real * 2**BITS)), int(mpmath.nint(turn.imag * 2**BITS))) for turn in turns]


def exact_transform(values: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The Fourier transform of whole complex numbers, in whole numbers; what is cut off is far below one unit."""
    if len(values) == 1:
        return values
    even, odd = exact_transform(values[::2]), exact_transform(values[1::2])
    turned = [
        ((a * c - b * d) >> BITS, (a * d + b * c) >> BITS)
        for (a, b), (c, d) in zip(odd, roots(len(values)), strict=True)
    ]
    first = [(a + c, b + d) for (a, b), (c, d) in zip(even, turned, strict=True)]
    return first + [(a - c, b - d) for (a, b), (c, d) in zip(even, turned, strict=True)]


def whole(values: np.ndarray) -> list[tuple[int, int]]:
    """Floats as whole complex numbers, times 2^BITS."""
    return [(int(Fraction(value.real) * 2**BITS), int(Fraction(value.imag) * 2**BITS)) for value in values.tolist()]


def relative(found: np.ndarray, truth: list[tuple[int, int]]) -> float:
    """‖found − truth‖₂/‖truth‖₂, in whole numbers up to the last division."""
    gap = sum((a - c) ** 2 + (b - d) ** 2 for (a, b), (c, d) in zip(whole(found), truth, strict=True))
    return math.sqrt(Fraction(gap, sum(c * c + d * d for c, d in truth)))


def mirrored(half: np.ndarray) -> np.ndarray:
    """The whole spectrum of a real vector from its first half."""
    return np.concatenate([half, half[-2:0:-1].conj()])


def inputs(size: int) -> dict[str, np.ndarray]:
    draw, places = np.random.default_rng(), np.arange(size)
    return {
        "spread": np.exp(-(((places - size / 2) / (size / 10)) ** 2)),
        "peaked": np.exp(-places / 3.0),
        "flat": np.full(size, 1 / 3),
        "alternating": np.where(places % 2, 1 / 3, -1 / 3),
        "one far out": np.where(places == size - 3, 1.0, 0.0),
        "random": draw.standard_normal(size),
        "wide range": np.exp(draw.uniform(-30, 0, size)),
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", [5, 6, 9, 10, *(pytest.param(many, marks=pytest.mark.long) for many in (12, 13))])
def test_transforms_are_well_within_the_proven_constant(bits):
    """Even and odd numbers of levels: a power of two that is none of four needs one pass of radix 2."""
    size, allowed = 1 << bits, floats.transform_error(1 << bits)
    for values in inputs(size).values():
        found = fft.rfft(values)
        assert relative(mirrored(found), exact_transform(whole(values))) <= allowed / 8
        back = exact_transform(whole(mirrored(found).conj()))
        assert relative(fft.irfft(found, size) * size, back) <= allowed / 8  # times a power of two: exact


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", [5, 9, 10, 15, 16, 20])
def test_the_stored_roots_of_unity_are_well_within_what_is_assumed(bits):
    """The transform of a 1 at place 1, 2 or 3 is made by the last pass alone: it shows the roots as they are stored."""
    size = 1 << bits
    shown = range(0, size // 2 + 1, max(1, size // 2048) | 1)
    for place in (1, 2, 3):
        alone = np.zeros(size)
        alone[place] = 1.0
        found = fft.rfft(alone)
        with mpmath.workdps(40):
            errors = [abs(mpmath.mpc(found[k]) - mpmath.expjpi(mpmath.mpf(-2 * k * place) / size)) for k in shown]
        assert max(errors) <= floats.TWIDDLE / 2


def test_the_transform_is_the_one_that_the_proof_speaks_of():
    """If SciPy ever changes its implementation, "One transform" in docs/proofs/pld.md is to be read again."""
    from scipy.fft import _pocketfft

    assert _pocketfft.rfft is not None
    assert _pocketfft.pypocketfft.__name__.endswith("pypocketfft")


def test_a_twin_with_roots_in_single_precision_is_noticed():
    size = 1 << 9
    values = inputs(size)["random"]
    coarse = fft.rfft(values.astype(np.float32)).astype(np.complex128)
    assert relative(mirrored(coarse), exact_transform(whole(values))) > floats.transform_error(size)


# --------------------------------------------------------------------------------------------- what follows from it


def test_the_proof_of_the_constant_adds_up():
    """At most ⌈k/2⌉ passes multiply by a root, of √5 units and its own error each, and k levels add, one unit each."""
    for levels in range(5, 64):
        passes = -(-levels // 2)
        multiply = (1 + floats.TWIDDLE) * (1 + math.sqrt(5) * UNIT) - 1
        log_of_it = passes * math.log1p(multiply) + levels * math.log1p(UNIT)
        assert math.expm1(log_of_it) < 0.999 * floats.PASSES * UNIT * levels


def test_the_error_bounds_are_stated_and_small():
    pair = profiles.gaussian(Fraction(1, 100))
    law = connect_the_dots.connect(pair, pair, low=-800, high=800, step=connect_the_dots.rounded_step(1e-3))
    window = tilted_fft.Window(start=-2000, size=1 << 13, tilt=4.0, tail_tilt=8.0)
    composed = tilted_fft.compose([(law, 100)], window)
    assert 0 < composed.noise < 1e-10
    assert 1 < composed.growth < 1 + 1e-8
    assert composed.delta(-5.0) == 1.0
    assert composed.epsilon(1e-300) == float("inf")
    assert composed.losses[0] <= composed.epsilon(0.999) < 0


def test_a_composition_errs_less_than_it_states():
    """Randomised response four times, composed in whole numbers beside the tilted transform."""
    step = connect_the_dots.rounded_step(1 / 64)
    response = profiles._response(32 * step, 2)
    law = connect_the_dots.connect(response, response, low=-40, high=40, step=step)
    window = tilted_fft.Window(start=-256, size=512, tilt=1.5, tail_tilt=3.0)
    found = tilted_fft.compose([(law, 4)], window)
    mass = [Fraction(value) for value in law.masses.tolist()]
    product = [Fraction(1)]
    for _ in range(4):
        product = [
            sum(
                (product[i] * mass[k - i] for i in range(max(0, k - len(mass) + 1), min(k, len(product) - 1) + 1)),
                Fraction(0),
            )
            for k in range(len(product) + len(mass) - 1)
        ]
    for epsilon in (0.0, 0.7, 1.5):
        losses = [step * (4 * law.low + k) for k in range(len(product))]
        with mpmath.workdps(40):
            truth = 4 * law.infinite + mpmath.fsum(
                mpmath.mpf(p.numerator) / p.denominator * -mpmath.expm1(mpmath.mpf(epsilon) - loss)
                for p, loss in zip(product, losses, strict=True)
                if loss > epsilon
            )
            assert truth <= found.delta(epsilon) <= truth * (1 + 1e-9)


def test_tails_of_the_discrete_gaussian_err_less_than_they_state():
    for variance in (Fraction(1, 4), Fraction(9)):
        sigma_squared = mp.mpf(variance.numerator) / variance.denominator
        law = {z: mp.exp(-(mp.mpf(z) ** 2) / (2 * sigma_squared)) for z in range(-60, 61)}
        total = mp.fsum(law.values())
        (tail,) = lattice.tails(1, variance)
        for place in range(tail.reach // 2):
            truth = mp.fsum(p for z, p in law.items() if z >= place) / total
            assert abs(mp.mpf(float(tail.above[place + tail.reach])) / truth - 1) < tail.rounding / 4
