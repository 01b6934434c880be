"""The Gaussian mechanism on whole numbers: a Gaussian error, rounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.core import enclosures, events
from sfumato.core.exact import Exact, decimal_up, non_negative, positive
from sfumato.core.noise_multiplier import classical_multiplier, exact_multiplier
from sfumato.core.query import Answer
from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.errors import InvalidInput, WrongNorm

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["Gaussian"]

DIGITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Add to each number of an integer answer the nearest whole number to an independent N(0, σ²).

    Guarantee: rounding x + N(0, σ²) with x whole is x plus the rounded noise, so every output is a function of what the
    continuous Gaussian mechanism puts out, and has its exact (ε, δ) curve, its ρ and its μ, in any dimension and on any
    lattice: no gap between a discrete law and its ideal is left to charge. Assumes: the exact answer is whole numbers.
    Public: sigma and l2_squared. Sensitive: the exact answer. Proof: docs/proofs/gaussian.md

    >>> float(Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5).sigma)
    3.730632
    """

    KIND: ClassVar[str] = "mechanism.gaussian"
    VERSION: ClassVar[int] = 1
    PURE: ClassVar[bool] = False
    l2_squared: Fraction
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2_squared", non_negative(self.l2_squared, "l2 squared"))
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    @classmethod
    def calibrated(cls, *, l2: L2 | Exact, epsilon: Exact, delta: Exact) -> "Gaussian":
        """The least noise, to seven digits and rounded up, that gives (ε, δ); valid for every ε.

        ``l2`` is the Euclidean sensitivity; pass an :class:`~sfumato.core.sensitivity.L2` where it is a square root.
        """
        bound = _l2(l2)
        sigma = enclosures.sqrt(bound.squared).high * exact_multiplier(epsilon=epsilon, delta=delta)
        return cls(l2_squared=bound.squared, sigma=Fraction(decimal_up(sigma, DIGITS)))

    @classmethod
    def classical(cls, *, l2: L2 | Exact, epsilon: Exact, delta: Exact) -> "Gaussian":
        """The textbook amount σ = l2·√(2 ln(1.25/δ))/ε, for teaching; it wastes noise, and from ε = 1 on it is refused.

        >>> round(float(Gaussian.classical(l2=1, epsilon=0.5, delta=1e-5).sigma), 4)
        9.6896
        """
        bound = _l2(l2)
        sigma = enclosures.sqrt(bound.squared).high * classical_multiplier(epsilon=epsilon, delta=delta)
        return cls(l2_squared=bound.squared, sigma=sigma)

    @classmethod
    def least(cls, moved: Sensitivity, *, epsilon: Exact, delta: Exact) -> "Gaussian | None":
        """The least noise for how far a unit moves an answer; none without a δ or where the l2 bound is not known."""
        if non_negative(delta, "delta") == 0 or moved.l2 is None:
            return None
        return cls.calibrated(l2=moved.l2, epsilon=epsilon, delta=delta)

    @property
    def law(self) -> laws.RoundedGaussian:
        """The distribution of the error of each number."""
        return laws.RoundedGaussian(sigma=self.sigma)

    @property
    def event(self) -> events.Gaussian:
        """The event for the l2 bound that the noise was calibrated for."""
        return self.loss(Sensitivity(l2=L2(self.l2_squared)))

    def loss(self, moved: Sensitivity) -> events.Gaussian:
        """The event for a unit that moves the answer by at most ``moved``; its l2 bound must be known."""
        if moved.l2 is None:
            raise WrongNorm(
                "the Gaussian mechanism needs an l2 bound; this sensitivity has none. Nothing was done. "
                "An l1 bound can be read as one with as_l2(), if that is meant."
            )
        return events.Gaussian(l2_squared=moved.l2.squared, sigma_squared=self.sigma**2)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Add fresh noise to each number; sums beyond 64 bits are held at the largest that fits (post-processing)."""
        from sfumato.noise import sample_rounded_gaussian, saturating_sum
        from sfumato.noise.sums import all_whole

        if not all_whole(exact):
            raise InvalidInput("the Gaussian mechanism adds noise to whole numbers; nothing was drawn.")
        return saturating_sum(exact, sample_rounded_gaussian(self.sigma, len(exact), words))


def _l2(l2: L2 | Exact) -> L2:
    if isinstance(l2, L0 | L1 | LInf | Sensitivity):
        raise WrongNorm(
            f"the Gaussian mechanism needs an l2 bound and was given {type(l2).__name__}; nothing was done. "
            "Pass the l2 bound of the query, or l1.as_l2() if that is meant."
        )
    bound = l2 if isinstance(l2, L2) else L2(positive(l2, "l2") ** 2)
    positive(bound.squared, "l2 squared")
    return bound
