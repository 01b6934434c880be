"""Noise drawn again for a parametric bootstrap, and quantiles of sampling and noise together.

A bootstrap is post-processing: it draws from the *known* noise distribution of a release, never for data, and with a
generator that is seeded from the release's identifier, so that a result is the same each time it is shown.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.query import Law
from sfumato.core.release import Release
from sfumato.errors import Unsupported
from sfumato.inference import normal_laplace
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, RoundedGaussian, SkellamNoise

__all__ = ["REPLICATES", "CellNoise", "Numbers", "generator_of", "multiplier", "seeded_by"]

REPLICATES = 9_999
"""How often a bootstrap draws, unless another number is given: a p-value is then 0.0001 at the least."""
FINE = 64.0  # from this standard deviation on, in steps of the lattice, noise is drawn as if it were continuous
REACH = 40.0  # standard deviations: beyond lies less than any double can tell of a Gaussian

Numbers = NDArray[np.float64]


def generator_of(*identifiers: str) -> np.random.Generator:
    """A generator that depends on the releases alone."""
    digest = hashlib.sha256("\n".join(identifiers).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def seeded_by(release: Release) -> Callable[[], np.random.Generator]:
    """A way to make the generator of one release anew: what it draws is the same each time."""
    identifier = release.statement.identifier
    return lambda: generator_of(identifier)


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise in one number, in rows: independent draws of known laws, each times its weight.

    >>> from fractions import Fraction
    >>> noise = CellNoise.of(DiscreteLaplace(scale=Fraction(1)))
    >>> round(noise.variance, 3), noise.draw(generator_of("trial"), (2, 3)).shape
    (1.841, (2, 3))
    """

    parts: tuple[tuple[float, Law], ...]

    @classmethod
    def of(cls, law: Law, height: float = 1.0) -> "CellNoise":
        """The noise of a number that was drawn in steps of which ``height`` are one row."""
        return cls(((1.0 / height, law),))

    @property
    def variance(self) -> float:
        """Of all of it together."""
        return sum(weight**2 * float(law.variance) for weight, law in self.parts)

    @property
    def fourth(self) -> float:
        """The fourth cumulant: 0 for a Gaussian, 3·variance² and a little more for a Laplace distribution."""
        return sum(weight**4 * _fourth(law) for weight, law in self.parts)

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        """Draw it anew, independently for each place."""
        total = np.zeros(shape)
        for weight, law in self.parts:
            total += weight * _drawn(law, generator, shape)
        return total


def stacked(noises: Sequence[CellNoise], generator: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    """Draw the noise of several cells; the last axis goes through the cells."""
    if len(set(noises)) == 1:
        return noises[0].draw(generator, (*shape, len(noises)))
    return np.stack([noise.draw(generator, shape) for noise in noises], axis=-1)


def _drawn(law: Law, generator: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    deviation = float(law.variance) ** 0.5
    match law:
        case DiscreteLaplace(scale=scale):
            if deviation > FINE:
                return generator.laplace(0.0, float(scale), shape)
            stop = -np.expm1(-1.0 / float(scale))  # 1 − q
            return (generator.geometric(stop, shape) - generator.geometric(stop, shape)).astype(float)
        case DiscreteGaussian(sigma_squared=square):
            if deviation > FINE:
                return generator.normal(0.0, deviation, shape)
            values, rising = _table(float(square))
            places = np.minimum(np.searchsorted(rising, generator.random(shape), side="right"), len(values) - 1)
            return values[places]
        case RoundedGaussian(sigma=sigma):
            return np.rint(generator.normal(0.0, float(sigma), shape))
        case SkellamNoise(spread=spread):
            half = float(spread) / 2
            return (generator.poisson(half, shape) - generator.poisson(half, shape)).astype(float)
    raise Unsupported(
        f"the noise of this release ({type(law).__name__}) is not independent from number to number, or not known in "
        "full: no test follows from it. Nothing was computed."
    )


@lru_cache(maxsize=32)
def _table(square: float) -> tuple[Numbers, Numbers]:
    """Values of a discrete Gaussian and their cumulated probabilities."""
    most = int(np.ceil(REACH * max(square, 0.01) ** 0.5)) + 1
    values = np.arange(-most, most + 1, dtype=float)
    weights = np.exp(-(values**2) / (2 * square))
    return values, np.cumsum(weights) / weights.sum()


def _fourth(law: Law) -> float:
    variance = float(law.variance)
    # A discrete Laplace number is the difference of two geometric ones, a Skellam number of two Poisson ones.
    if isinstance(law, SkellamNoise):
        return variance
    return 3 * variance**2 + variance if isinstance(law, DiscreteLaplace) else 0.0


def multiplier(kurtosis: Numbers | float, level: float) -> Numbers:
    """How many standard deviations hold ``level`` of a normal number and Laplace noise together.

    ``kurtosis`` is the excess kurtosis of the sum: 0 for a normal number, 3 for Laplace noise alone. Several noises are
    as one with the same kurtosis.

    >>> [round(float(multiplier(each, 0.95)), 3) for each in (0.0, 3.0)]
    [1.96, 2.118]
    """
    return normal_laplace.multiplier(np.sqrt(np.clip(np.asarray(kurtosis, float) / 3, 0.0, 1.0)), level)
