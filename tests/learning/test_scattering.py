"""Scattering features against a slow computation of the same, by sums over pixels and no Fourier transform."""

import cmath
import math

import pytest

from sfumato.errors import InvalidInput
from tests import parts

parts.package("torch")

import torch  # noqa: E402

from sfumato.learning.scattering import Scattering, group_normalised  # noqa: E402


def wavelet(full: int, j: int, theta: float, slant: float) -> torch.Tensor:
    """A Morlet wavelet on a torus, written out pixel by pixel."""
    sigma, frequency = 0.8 * 2**j, 3 * math.pi / 4 / 2**j
    bells, waves = torch.zeros(full, full, dtype=torch.complex128), torch.zeros(full, full, dtype=torch.complex128)
    for y in range(full):
        for x in range(full):
            for down in (y - 2 * full, y - full, y, y + full):
                for right in (x - 2 * full, x - full, x, x + full):
                    along = right * math.cos(theta) + down * math.sin(theta)
                    across = down * math.cos(theta) - right * math.sin(theta)
                    bell = math.exp(-(along**2 + slant**2 * across**2) / (2 * sigma**2))
                    bells[y, x] += bell
                    waves[y, x] += bell * cmath.exp(1j * frequency * along)
    return (waves - bells * waves.sum() / bells.sum()) * slant / (2 * math.pi * sigma**2)


def around(image: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """The convolution on a torus, one shift at a time."""
    size = len(image)
    total = torch.zeros(size, size, dtype=torch.complex128)
    for y in range(size):
        for x in range(size):
            total += kernel[y, x] * torch.roll(image, (y, x), (0, 1))
    return total


def averaged(image: torch.Tensor, size: int, edge: int, sigma: float) -> torch.Tensor:
    """Gaussian means around every edge-th pixel, over all pixels on the torus."""
    full = size + 2 * edge
    out = torch.zeros(size // edge, size // edge, dtype=torch.float64)
    step = full // len(image)
    for i in range(size // edge):
        for k in range(size // edge):
            weight = total = 0.0
            for y in range(len(image)):
                for x in range(len(image)):
                    away = [
                        min((p - c) % full, (c - p) % full)
                        for p, c in ((step * y, edge * (i + 1)), (step * x, edge * (k + 1)))
                    ]
                    bell = math.exp(-(away[0] ** 2 + away[1] ** 2) / (2 * sigma**2))
                    weight, total = weight + bell, total + bell * float(image[y, x])
            out[i, k] = total / weight
    return out


@pytest.mark.long
def test_features_are_those_of_the_slow_computation() -> None:
    """Two scales and two angles on 8 × 8 pixels: 1 + 4 + 4 channels."""
    size, angles, edge = 8, 2, 4
    image = torch.rand(size, size, dtype=torch.float64)
    fast = Scattering(size=size, scales=2, angles=angles)(image)
    padded = torch.nn.functional.pad(image[None, None], (edge,) * 4, mode="reflect")[0, 0]
    turns = [(angles // 2 - 1 - angle) * math.pi / angles for angle in range(angles)]
    bank = {(j, k): wavelet(size + 2 * edge, j, turns[k], 4 / angles) for j in (0, 1) for k in range(angles)}
    first = {at: around(padded, kernel).abs() for at, kernel in bank.items()}
    narrow = [first[0, k] for k in range(angles)]
    wide = [first[1, k][::2, ::2] for k in range(angles)]
    second = [around(narrow[k], bank[1, turn]).abs()[::2, ::2] for k in range(angles) for turn in range(angles)]
    slow = [averaged(part, size, edge, 1.6) for part in (padded, *narrow, *wide, *second)]
    assert fast.shape == (9, 2, 2)
    torch.testing.assert_close(fast, torch.stack(slow), rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_a_modulus_of_which_pixels_were_left_out_is_filtered_again() -> None:
    """The last channel of three scales: the second wavelet after the first, then the third on every other pixel."""
    size, edge, full = 16, 8, 32
    image = torch.rand(size, size, dtype=torch.float64)
    fast = Scattering(size=size, scales=3, angles=1)(image)[-1]
    padded = torch.nn.functional.pad(image[None, None], (edge,) * 4, mode="reflect")[0, 0]
    turn = -math.pi
    first = around(padded, wavelet(full, 1, turn, 4)).abs()[::2, ::2]
    second = around(first, 4 * wavelet(full, 2, turn, 4)[::2, ::2]).abs()[::2, ::2]
    torch.testing.assert_close(fast, averaged(second, size, edge, 3.2), rtol=1e-4, atol=1e-5)


def test_an_even_picture_has_its_level_and_nothing_else() -> None:
    features = Scattering(size=16)(torch.full((16, 16), 0.7))
    torch.testing.assert_close(features[0], torch.full((4, 4), 0.7))
    assert features[1:].abs().max() < 1e-5


def test_stripes_are_seen_by_the_wavelet_across_them() -> None:
    stripes = torch.cos(torch.arange(32) * 3 * math.pi / 4).expand(32, 32)
    strengths = Scattering(size=32)(stripes)[1:9].mean(dim=(1, 2))
    assert int(strengths.argmax()) == 3  # the wave of angle 0 runs along x
    assert int(Scattering(size=32)(stripes.T)[1:9].mean(dim=(1, 2)).argmax()) == 7


def test_a_picture_is_transformed_by_itself() -> None:
    """No statistic of other pictures enters: this is what makes the features free."""
    transform = Scattering(size=12)
    one, other = torch.rand(1, 12, 12), torch.rand(4, 12, 12) * 100
    alone = group_normalised(transform(one), groups=27)
    among = group_normalised(transform(torch.cat([one, other])), groups=27)
    torch.testing.assert_close(among[:1], alone)


def test_twins_that_would_mix_pictures_are_told_apart() -> None:
    """A broken twin, which normalises over the batch, does not pass the test above."""
    transform = Scattering(size=12)
    one, other = torch.rand(1, 12, 12), torch.rand(4, 12, 12) * 100
    features = transform(torch.cat([one, other]))
    mixed = (features - features.mean(dim=0)) / features.std(dim=0)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(mixed[:1], group_normalised(transform(one), groups=27))


@pytest.mark.parametrize(("scales", "angles", "channels"), [(1, 4, 5), (2, 8, 81), (3, 2, 19)])
def test_channels_and_places(scales: int, angles: int, channels: int) -> None:
    features = Scattering(size=32, scales=scales, angles=angles)
    assert features.channels == channels
    assert features(torch.rand(2, 3, 32, 32)).shape == (2, 3, channels, 32 // 2**scales, 32 // 2**scales)


def test_what_cannot_be_transformed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="multiple of 4"):
        Scattering(size=30)
    with pytest.raises(InvalidInput, match="at least one scale"):
        Scattering(size=28, angles=0)
    with pytest.raises(InvalidInput, match="no feature was computed"):
        Scattering(size=28)(torch.zeros(32, 32))
    with pytest.raises(InvalidInput, match="equal groups"):
        group_normalised(torch.zeros(1, 81, 2), groups=10)
