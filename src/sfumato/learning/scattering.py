"""Scattering features of images: wavelets, moduli and means that no data chose, so that they cost nothing.

The transform is that of Mallat's scattering networks as Oyallon and Mallat (2015) built it and Tramèr and Boneh (2021)
used it before private training. An image is filtered with Morlet wavelets of ``scales`` sizes and ``angles``
directions; the moduli are filtered once more with all wider wavelets; every modulus is averaged over 2^scales pixels.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from sfumato.errors import InvalidInput

__all__ = ["Scattering", "group_normalised"]

WIDTH = 0.8  # the standard deviation of the narrowest wavelet, in pixels
CENTRE = 3 * math.pi / 4  # the frequency of the narrowest wavelet, in radians a pixel
TURNS = 2  # how many periods of the image are folded onto it when a filter is sampled


class Scattering:
    """Scattering features of order 0, 1 and 2 of square images.

    Guarantee: none is needed. Every feature is a function of its own image alone: no statistic of other records enters.
    ``channels`` is 1 + scales·angles + angles²·scales·(scales − 1)/2, and every channel has ``side`` × ``side`` places.

    >>> import torch
    >>> features = Scattering(size=28)
    >>> features.channels, features.side, tuple(features(torch.zeros(2, 28, 28)).shape)
    (81, 7, (2, 81, 7, 7))
    """

    def __init__(self, *, size: int, scales: int = 2, angles: int = 8) -> None:
        if scales < 1 or angles < 1:
            raise InvalidInput(
                f"a scattering transform has at least one scale and one angle, not {scales} and {angles}; nothing was "
                "built"
            )
        step = 2**scales
        if size < 2 * step or size % step:
            raise InvalidInput(
                f"an image of {size} pixels a side cannot be averaged over {step}; nothing was built. Take a multiple "
                f"of {step} from {2 * step} on"
            )
        self.size, self.scales, self.angles = size, scales, angles
        self.side, self.edge = size // step, step
        self.channels = 1 + scales * angles + angles**2 * scales * (scales - 1) // 2

    def __call__(self, images: Tensor) -> Tensor:
        """The features of images (…, size, size), as (…, channels, side, side) of the same type."""
        if tuple(images.shape[-2:]) != (self.size, self.size):
            raise InvalidInput(
                f"these images are {tuple(images.shape[-2:])} and not {(self.size, self.size)}; no feature was computed"
            )
        ahead, flat = images.shape[:-2], images.reshape(-1, 1, self.size, self.size).float()
        room = (self.edge,) * 4
        padded = torch.nn.functional.pad(flat, room, mode="reflect")
        kept = [self._averaged(padded, 0)]
        later: list[Tensor] = []
        spectrum = torch.fft.fft2(padded)
        for j in range(self.scales):
            first = self._moduli(spectrum, j, 0)
            kept.append(self._averaged(first, j))
            inner = torch.fft.fft2(first)
            for wider in range(j + 1, self.scales):
                second = self._moduli(inner.unsqueeze(2), wider, j).flatten(1, 2)
                later.append(self._averaged(second, wider))
        features = torch.cat(kept + later, dim=1)
        return features.reshape(*ahead, self.channels, self.side, self.side).to(images.dtype)

    def _moduli(self, spectrum: Tensor, j: int, taken: int) -> Tensor:
        """Moduli of the wavelets of scale j at every angle, at every 2^j-th pixel; the input has every 2^taken-th."""
        full = self.size + 2 * self.edge
        bank = _bank(full, self.scales, self.angles, taken)[j].to(spectrum.device)
        fold = 2 ** (j - taken)
        side = spectrum.shape[-1] // fold
        # Taking every fold-th pixel is folding the spectrum: the mean of its fold² blocks.
        folded = torch.zeros(())
        for down in range(0, fold * side, side):
            for right in range(0, fold * side, side):
                block = (..., slice(down, down + side), slice(right, right + side))
                folded = folded + spectrum[block] * bank[block]
        folded = folded / fold**2
        moduli: Tensor = torch.fft.ifft2(folded).abs()
        return moduli

    def _averaged(self, moduli: Tensor, taken: int) -> Tensor:
        """The Gaussian mean around the middle of every cell, margins dropped."""
        mean = _means(self.size, self.scales, taken).to(moduli.device)
        return mean @ moduli @ mean.T


def group_normalised(features: Tensor, *, groups: int, floor: float = 1e-5) -> Tensor:
    """Channels in groups, each with mean 0 and variance 1 *within its own record*: (records, channels, …).

    No statistic of another record enters, so the normalisation is free of charge.

    >>> import torch
    >>> group_normalised(torch.tensor([[[1.0, 3.0], [5.0, 9.0]]]), groups=2).round(decimals=2).tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    if features.ndim < 2 or features.shape[1] % groups:
        raise InvalidInput(f"{features.shape[1:2]} channels are not {groups} equal groups; nothing was normalised")
    return torch.nn.functional.group_norm(features, groups, eps=floor)


@lru_cache(maxsize=32)
def _bank(full: int, scales: int, angles: int, taken: int) -> list[Tensor]:
    """Spectra of the wavelets of every scale, for signals of which every 2^taken-th pixel is left."""
    banks = []
    for j in range(scales):
        waves = torch.stack([_morlet(full, j, angle, angles) for angle in range(angles)])
        spectra = torch.fft.fft2(waves)
        fold = 2**taken
        if j >= taken:
            side = full // fold
            spectra = spectra.unflatten(-1, (fold, side)).unflatten(-3, (fold, side)).sum(dim=(-4, -2))
        banks.append(spectra.to(torch.complex64))
    return banks


def _morlet(full: int, j: int, angle: int, angles: int) -> Tensor:
    """A Morlet wavelet on a torus of ``full`` pixels: a wave under a slanted Gaussian, less what gives it mean zero."""
    sigma, frequency, slant = WIDTH * 2**j, CENTRE / 2**j, 4 / angles
    theta = (angles // 2 - 1 - angle) * math.pi / angles
    gauss, wave = torch.zeros(full, full, dtype=torch.float64), torch.zeros(full, full, dtype=torch.complex128)
    for down in range(-TURNS, TURNS + 1):
        for right in range(-TURNS, TURNS + 1):
            y, x = torch.meshgrid(
                torch.arange(full, dtype=torch.float64) + down * full,
                torch.arange(full, dtype=torch.float64) + right * full,
                indexing="ij",
            )
            along, across = (
                x * math.cos(theta) + y * math.sin(theta),
                y * math.cos(theta) - x * math.sin(theta),
            )
            bell = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2))
            gauss += bell
            wave += bell * torch.exp(1j * frequency * along)
    whole: Tensor = (wave - wave.sum() / gauss.sum() * gauss) * slant / (2 * math.pi * sigma**2)
    return whole


@lru_cache(maxsize=32)
def _means(size: int, scales: int, taken: int) -> Tensor:
    """The matrix of Gaussian means around the cells of the image, over every 2^taken-th pixel of the padded one."""
    step, edge = 2**scales, 2**scales
    full, sigma = size + 2 * edge, WIDTH * 2 ** (scales - 1)
    places = torch.arange(0, full, 2**taken, dtype=torch.float64)
    centres = edge + step * torch.arange(size // step, dtype=torch.float64)
    away = (places[None] - centres[:, None] + full / 2) % full - full / 2
    weights = torch.exp(-(away**2) / (2 * sigma**2))
    return (weights / weights.sum(dim=1, keepdim=True)).float()
