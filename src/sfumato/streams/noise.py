"""Noise on the measurements of a stream: the mechanism that a certificate states."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.core import enclosures, events
from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up, positive
from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.doubling import Doubling
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.rows import Rows
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words
    from sfumato.noise.sampler import IntArray

__all__ = ["SeriesNoise"]

DIGITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesNoise:
    """Release the measurements of a strategy, step by step, each with fresh noise; totals are worked out from these.

    ``norm`` "l2" is a Gaussian error of σ = ``noise``, rounded to the lattice; "l1" a discrete Laplace one of that
    scale.

    Guarantee: the exact (ε, δ) curve of a Gaussian, or ε, for the whole stream, inputs chosen after seeing outputs
    included. Assumes: a unit moves each step of its ``pattern`` by at most linf, and no other. Public: all of this.
    Sensitive: the inputs. Proof: docs/proofs/streams.md

    >>> tree = SeriesNoise(strategy=Tree(arity=2, horizon=4, bits=0), norm="l1", noise=Fraction(6),
    ...                    pattern=Pattern(times=1, separation=1, change="added"))
    >>> tree.loss(Sensitivity.of(linf=1))
    DiscreteLaplace(l1=Fraction(3, 1), scale=Fraction(6, 1))
    """

    KIND: ClassVar[str] = "mechanism.series"
    VERSION: ClassVar[int] = 1
    strategy: Toeplitz | Buffers | Tree | Rows | Doubling
    pattern: Pattern
    norm: str
    noise: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", positive(self.noise, "noise"))
        if self.norm not in ("l1", "l2"):
            raise InvalidInput("the norm of a series is 'l1' or 'l2'; nothing was done.")

    @classmethod
    def calibrated(
        cls, strategy: Toeplitz | Buffers | Tree | Rows | Doubling, pattern: Pattern, *, each: int, spend: Budget
    ) -> "SeriesNoise":
        """The least noise for a spend: Gaussian where it has a δ, to seven digits and rounded up; else Laplace."""
        if spend.delta == 0:
            scale = each * strategy.absolute(pattern) / spend.epsilon
            return cls(strategy=strategy, pattern=pattern, norm="l1", noise=scale)
        far = enclosures.sqrt(Fraction(each**2 * strategy.squared(pattern))).high
        sigma = far * _multiplier(spend.epsilon, spend.delta)
        return cls(strategy=strategy, pattern=pattern, norm="l2", noise=Fraction(decimal_up(sigma, DIGITS)))

    @property
    def law(self) -> laws.RoundedGaussian | laws.DiscreteLaplace:
        """The error of each measurement, in units of 2^−bits."""
        return laws.DiscreteLaplace(scale=self.noise) if self.norm == "l1" else laws.RoundedGaussian(sigma=self.noise)

    def loss(self, moved: Sensitivity) -> events.Gaussian | events.DiscreteLaplace:
        """The event of the whole stream for a unit that moves each step of the pattern by at most linf."""
        each = known(moved.linf, "linf").value
        if self.norm == "l1":
            return events.DiscreteLaplace(l1=each * self.strategy.absolute(self.pattern), scale=self.noise)
        squared = each**2 * self.strategy.squared(self.pattern)
        return events.Gaussian(l2_squared=squared, sigma_squared=self.noise**2)

    def drawn(self, size: int, words: "Words") -> "IntArray":
        """Fresh noise for a number of measurements."""
        from sfumato.noise import sample_discrete_laplace, sample_rounded_gaussian

        if self.norm == "l1":
            import numpy as np

            return np.asarray(sample_discrete_laplace(self.noise, size, words)).astype(np.int64)
        return sample_rounded_gaussian(self.noise, size, words)


@lru_cache(maxsize=256)
def _multiplier(epsilon: Fraction, delta: Fraction) -> Fraction:
    return exact_multiplier(epsilon=epsilon, delta=delta)
