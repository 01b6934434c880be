"""Error distributions as an inversion uses them: characteristic function, a bound on their moments, lattice."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sfumato import laws
from sfumato.errors import Unsupported
from sfumato.laws.margins import WholeNumberLaw

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.core.query import Law

    Floats = npt.NDArray[np.float64]

__all__ = ["Spectrum", "spectrum"]

LEAST = 1 / 700  # of a Laplace scale: e^(−700) is near the least that a double holds
NOTHING = 1 / 40  # a σ below which noise on whole numbers is 0 but for 10^-80


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """``wave`` is E cos(tz), ``log_moment`` bounds log E e^(sz) from above, ``step`` is the lattice (0: none).

    ``log_moment`` is finite for |s| below ``fastest``.
    """

    wave: "Callable[[Floats], Floats]"
    log_moment: Callable[[float], float]
    variance: float
    step: Fraction
    fastest: float = math.inf


@runtime_checkable
class Waved(Protocol):
    """A law that brings its own characteristic function, with the bound on its moments."""

    @property
    def fastest(self) -> float:
        """The rate below which :meth:`log_moment` is finite."""
        ...

    def wave(self, t: "Floats") -> "Floats":
        """E cos(tz)."""
        ...

    def log_moment(self, s: float) -> float:
        """An upper bound of log E e^(sz)."""
        ...


def spectrum(law: "Law | laws.Laplace | laws.Gaussian") -> Spectrum:
    """What an inversion needs to know of a law.

    >>> spectrum(laws.DiscreteLaplace(scale=Fraction(2))).log_moment(0.0)
    0.0
    """
    match law:
        case laws.DiscreteLaplace():
            return _discrete_laplace(law)
        case laws.RoundedGaussian():
            return _rounded_gaussian(law)
        case laws.DiscreteGaussian():
            return _discrete_gaussian(law)
        case laws.Laplace():
            return _laplace(law)
        case laws.Gaussian():
            return _gaussian(law)
        case Waved():
            step, variance = Fraction(isinstance(law, WholeNumberLaw)), float(law.variance)
            return Spectrum(wave=law.wave, log_moment=law.log_moment, variance=variance, step=step, fastest=law.fastest)
    raise Unsupported(f"there is no characteristic function of {law.KIND} here; nothing was computed.")


def _discrete_laplace(law: laws.DiscreteLaplace) -> Spectrum:
    scale = max(float(law.scale), LEAST)  # what is narrower is 0 but for 10^-300
    # With q = e^(−1/scale): (1 − q)²/((1 − q)² + 4q·sin²(t/2)), divided by q so that 1 − q loses no digits.
    square = 4 * math.sinh(1 / (2 * scale)) ** 2

    def wave(t: "Floats") -> "Floats":
        import numpy as np

        return np.asarray(square / (square + 4 * np.sin(t / 2) ** 2))

    def log_moment(s: float) -> float:
        if abs(s) * scale >= 1:
            return math.inf
        return -math.log1p(-4 * math.sinh(s / 2) ** 2 / square)

    variance, fastest = float(law.variance), 1 / scale
    return Spectrum(wave=wave, log_moment=log_moment, variance=variance, step=Fraction(1), fastest=fastest)


def _rounded_gaussian(law: laws.RoundedGaussian) -> Spectrum:
    sigma = float(law.sigma)

    def wave(t: "Floats") -> "Floats":
        import numpy as np

        if sigma < NOTHING:
            return np.ones_like(t)
        # Rounding is adding a uniform on [−½, ½] and reading off at whole numbers: a sum over all aliases t + 2πk.
        turned = np.remainder(t + np.pi, 2 * np.pi) - np.pi
        total = np.zeros_like(turned)
        for alias in range(-_aliases(sigma), _aliases(sigma) + 1):
            moved = turned + 2 * np.pi * alias
            total += np.sinc(moved / (2 * np.pi)) * np.exp(-((sigma * moved) ** 2) / 2)
        return total

    def log_moment(s: float) -> float:
        return (sigma * s) ** 2 / 2 + abs(s) / 2  # rounding moves by at most a half

    return Spectrum(wave=wave, log_moment=log_moment, variance=float(law.variance), step=Fraction(1))


def _discrete_gaussian(law: laws.DiscreteGaussian) -> Spectrum:
    sigma = math.sqrt(law.sigma_squared)
    around = range(-_aliases(sigma), _aliases(sigma) + 1)
    whole = (
        1.0 if sigma < NOTHING else math.fsum(math.exp(-((sigma * 2 * math.pi * alias) ** 2) / 2) for alias in around)
    )

    def wave(t: "Floats") -> "Floats":
        import numpy as np

        if sigma < NOTHING:
            return np.ones_like(t)
        # By Poisson's summation formula: a sum over all aliases t + 2πk, and the same at 0 to divide by.
        turned = np.remainder(t + np.pi, 2 * np.pi) - np.pi
        total = np.zeros_like(turned)
        for alias in around:
            total += np.exp(-((sigma * (turned + 2 * np.pi * alias)) ** 2) / 2)
        return total / whole

    def log_moment(s: float) -> float:
        return (sigma * s) ** 2 / 2  # at most that of the continuous law

    return Spectrum(wave=wave, log_moment=log_moment, variance=float(law.variance), step=Fraction(1))


def _laplace(law: laws.Laplace) -> Spectrum:
    scale = float(law.scale)

    def wave(t: "Floats") -> "Floats":
        return 1 / (1 + (scale * t) ** 2)

    def log_moment(s: float) -> float:
        return math.inf if abs(s) * scale >= 1 else -math.log1p(-((s * scale) ** 2))

    variance, fastest = float(law.variance), 1 / scale
    return Spectrum(wave=wave, log_moment=log_moment, variance=variance, step=Fraction(0), fastest=fastest)


def _gaussian(law: laws.Gaussian) -> Spectrum:
    sigma = float(law.sigma)

    def wave(t: "Floats") -> "Floats":
        import numpy as np

        return np.asarray(np.exp(-((sigma * t) ** 2) / 2))

    def log_moment(s: float) -> float:
        return (sigma * s) ** 2 / 2

    return Spectrum(wave=wave, log_moment=log_moment, variance=float(law.variance), step=Fraction(0))


def _aliases(sigma: float) -> int:
    """Beyond this alias a term is below e^(−50): (σ·(2k − 1)π)²/2 > 50."""
    return max(1, math.ceil((10 / (sigma * math.pi) + 1) / 2))
