"""The Laplace mechanism on whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.core.events import DiscreteLaplace
from sfumato.core.exact import Exact, non_negative, positive
from sfumato.core.query import Answer
from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.errors import InvalidInput, WrongNorm

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Add whole-number noise z with P(z) ∝ exp(−|z|/scale) to each number of an integer answer.

    Guarantee: answers at l1 distance d become ε = d/scale apart (pure DP); for the discrete law that runs.
    Assumes: the exact answer is a vector of whole numbers; the noise of each number is drawn independently.
    Public: scale and l1. Sensitive: the exact answer. Proof: docs/proofs/discrete_laplace.md

    >>> Laplace.calibrated(l1=1, epsilon=0.5).scale
    Fraction(2, 1)
    """

    KIND: ClassVar[str] = "mechanism.laplace"
    VERSION: ClassVar[int] = 1
    PURE: ClassVar[bool] = True
    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", non_negative(self.l1, "l1"))
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(cls, *, l1: L1 | Exact, epsilon: Exact) -> "Laplace":
        """The least noise that gives ε to answers which one unit moves by at most ``l1``; scale = l1/ε exactly."""
        if isinstance(l1, L0 | L2 | LInf | Sensitivity):
            raise WrongNorm(
                f"the Laplace mechanism needs an l1 bound and was given {type(l1).__name__}; nothing was done. "
                "Pass the l1 bound of the query."
            )
        moved = positive(l1.value if isinstance(l1, L1) else l1, "l1")
        return cls(l1=moved, scale=moved / positive(epsilon, "epsilon"))

    @classmethod
    def least(cls, moved: Sensitivity, *, epsilon: Exact, delta: Exact) -> "Laplace | None":
        """The least noise for how far a unit moves an answer; none where the l1 bound is not known."""
        return None if moved.l1 is None else cls.calibrated(l1=moved.l1, epsilon=epsilon)

    @property
    def law(self) -> laws.DiscreteLaplace:
        """The distribution of the error of each number."""
        return laws.DiscreteLaplace(scale=self.scale)

    @property
    def event(self) -> DiscreteLaplace:
        """The event for the l1 bound that the noise was calibrated for."""
        return self.loss(Sensitivity(l1=L1(self.l1)))

    def loss(self, moved: Sensitivity) -> DiscreteLaplace:
        """The event for a unit that moves the answer by at most ``moved``; its l1 bound must be known."""
        if moved.l1 is None:
            raise WrongNorm("the Laplace mechanism needs an l1 bound; this sensitivity has none. Nothing was done.")
        return DiscreteLaplace(l1=moved.l1.value, scale=self.scale)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Add fresh noise to each number; sums beyond 64 bits are held at the largest that fits (post-processing)."""
        from sfumato.noise import sample_discrete_laplace, saturating_sum
        from sfumato.noise.sums import all_whole

        if not all_whole(exact):
            raise InvalidInput("the Laplace mechanism adds noise to whole numbers; nothing was drawn.")
        return saturating_sum(exact, sample_discrete_laplace(self.scale, len(exact), words))
