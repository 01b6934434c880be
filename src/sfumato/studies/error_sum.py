"""The distribution of a sampling error with privacy noise on top: normal, Laplace and Gaussian parts together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.query import Law
from sfumato.errors import InvalidInput

__all__ = ["ErrorSum", "NoiseShape", "drawn"]

Array = NDArray[np.float64]
SPAN = 48.0  # standard deviations that the period of the sum covers: what wraps around is below 1e-9
SMALLEST = 1e-13  # where the characteristic function is cut off
MOST = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseShape:
    """What a design must know of the noise in one released number: its variance, and whether it is Laplace.

    >>> NoiseShape(variance=2.0, laplace=True).scale
    1.0
    """

    variance: float
    laplace: bool

    @classmethod
    def of(cls, law: Law) -> "NoiseShape":
        """The noise of a law; every law that is not Laplace is taken as normal with its variance.

        >>> from sfumato.laws import Laplace
        >>> NoiseShape.of(Laplace(scale=2))
        NoiseShape(variance=8.0, laplace=True)
        """
        return cls(variance=float(law.variance), laplace="laplace" in law.KIND)

    @property
    def scale(self) -> float:
        """The scale b of Laplace noise, whose variance is 2b²."""
        return float(np.sqrt(self.variance / 2))


def drawn(noise: NoiseShape, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Copies of the noise for a simulation from public figures; no released number ever gets them.

    >>> drawn(NoiseShape(variance=0.0, laplace=True), (2,), np.random.default_rng(1)).tolist()
    [0.0, 0.0]
    """
    if noise.laplace:
        return random.laplace(0.0, 1.0, shape) * noise.scale
    return np.asarray(random.standard_normal(shape) * np.sqrt(noise.variance))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSum:
    """A normal error of this variance, plus independent Laplace errors of these scales. Symmetric around 0.

    The distribution function is the inverse of the characteristic function exp(−vt²/2)·Π 1/(1 + b²t²), summed at
    equal steps; the sum converges faster than any power of the step. Proof: docs/proofs/design.md

    >>> error = ErrorSum(variance=1.0, scales=())
    >>> round(float(error.below(1.959964)), 6), round(error.quantile(0.975), 4)
    (0.975, 1.96)
    """

    variance: float
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (self.variance > 0 and np.isfinite(self.variance)):
            raise InvalidInput("the variance of an error must be above 0; nothing was computed.")

    @classmethod
    def made(cls, sampling: float, noises: Sequence[tuple[float, NoiseShape]]) -> "ErrorSum":
        """Sampling variance, and noises each with its coefficient."""
        normal = sum(c * c * each.variance for c, each in noises if not each.laplace)
        scales = tuple(abs(c) * each.scale for c, each in noises if each.laplace and c)
        return cls(variance=sampling + normal, scales=tuple(each for each in scales if each > 0))

    @property
    def total(self) -> float:
        """The variance of the sum: 2b² for each Laplace error beside the normal one."""
        return self.variance + 2 * sum(scale * scale for scale in self.scales)

    def below(self, at: ArrayLike) -> Array:
        """P(error ≤ at)."""
        spread = np.sqrt(self.total)
        step = 2 * np.pi / (SPAN * spread)
        last = np.sqrt(-2 * np.log(SMALLEST) / self.variance)
        times = step * (np.arange(min(int(last / step) + 1, MOST)) + 0.5)
        size = np.exp(-self.variance * times**2 / 2)
        for scale in self.scales:
            size = size / (1 + (scale * times) ** 2)
        at = np.clip(np.asarray(at, dtype=float), -SPAN / 4 * spread, SPAN / 4 * spread)
        waves = np.sin(np.multiply.outer(at, times)) @ (size / times)
        return np.asarray(np.clip(0.5 + step / np.pi * waves, 0.0, 1.0))

    def quantile(self, level: float) -> float:
        """The value that the error stays below with this probability."""
        from scipy.optimize import brentq

        far = SPAN / 4 * float(np.sqrt(self.total))
        return float(brentq(lambda x: float(self.below(x)) - level, -far, far, xtol=1e-12 * far))

    def rejected(self, difference: float, critical: float) -> float:
        """How often a difference with this error lies beyond ±critical."""
        return float(1 - self.below(critical - difference) + self.below(-critical - difference))
