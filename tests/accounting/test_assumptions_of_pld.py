"""The two assumptions of docs/proofs/pld.md, looked at: how accurate SciPy's FFT and special functions are here."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import fft
from scipy.special import gammaln, ndtr

from sfumato.accounting import dots, profiles, tilted


def precise_fft(values: np.ndarray) -> np.ndarray:
    """Radix 2 in extended precision, with twiddles to the last bit of it."""
    size = len(values)
    if size == 1:
        return values.astype(np.clongdouble)
    even, odd = precise_fft(values[::2]), precise_fft(values[1::2])
    angles = (
        -2 * np.longdouble("3.14159265358979323846264338327950288") * np.arange(size // 2, dtype=np.longdouble) / size
    )
    turned = (np.cos(angles) + 1j * np.sin(angles)) * odd
    return np.concatenate([even + turned, even - turned])


@pytest.mark.parametrize("bits", [9, 15])
@pytest.mark.parametrize("kind", ["spread", "peaked", "flat", "random signs"])
def test_the_fft_is_well_within_the_assumed_constant(bits, kind):
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision on this machine")
    size, draw = 1 << bits, np.random.default_rng()
    values = {
        "spread": np.exp(-((np.arange(size) - size / 2) ** 2) / (size / 10) ** 2),
        "peaked": np.exp(-np.arange(size) / 3.0),
        "flat": np.ones(size),
        "random signs": draw.standard_normal(size),
    }[kind]
    truth = precise_fft(values)[: size // 2 + 1]
    assumed = tilted.FFT_CONSTANT * tilted.UNIT * bits
    error = np.linalg.norm((fft.rfft(values) - truth).astype(complex)) / np.linalg.norm(truth.astype(complex))
    assert error <= assumed / 4
    back = fft.irfft(truth.astype(complex), size)
    assert np.linalg.norm(back - values) / np.linalg.norm(values) <= assumed / 4


@pytest.mark.parametrize("low", [-37.0, -20.0, -6.0, -1.0])
def test_special_functions_are_well_within_what_is_added_outward(low):
    points = np.random.default_rng().uniform(low, 6.0, 200)
    with mpmath.workdps(40):
        for point, found in zip(points, ndtr(points), strict=True):
            truth = mpmath.erfc(-mpmath.mpf(float(point)) / mpmath.sqrt(2)) / 2
            assert abs(mpmath.mpf(float(found)) / truth - 1) < profiles.TINY / 2
        for point in points:
            for ours, theirs in ((np.exp, mpmath.exp), (np.expm1, mpmath.expm1)):
                truth = theirs(mpmath.mpf(float(point)))
                assert abs(mpmath.mpf(float(ours(point))) / truth - 1) < profiles.NUDGE / 2
            truth = mpmath.log(mpmath.mpf(float(-point + 7)))
            assert abs(mpmath.mpf(float(np.log(-point + 7))) - truth) < profiles.NUDGE / 2
        for order in (3, 100, 1025):
            truth = mpmath.loggamma(order)
            assert abs(mpmath.mpf(float(gammaln(order))) - truth) < abs(truth) * mpmath.mpf(2) ** -48


def test_the_error_bounds_are_stated_and_small():
    pair = profiles.gaussian(Fraction(1, 100))
    law = dots.connect(pair, low=-800, high=800, step=dots.rounded_step(1e-3))
    window = tilted.Window(start=-2000, size=1 << 13, tilt=4.0, tail_tilt=8.0)
    composed = tilted.compose([(law, 100)], window)
    assert 0 < composed.noise < 1e-10
    assert 1 < composed.growth < 1 + 1e-8
    assert composed.delta(-5.0) == 1.0
    assert composed.epsilon(1e-300) == float("inf")
    assert composed.losses[0] <= composed.epsilon(0.999) < 0
