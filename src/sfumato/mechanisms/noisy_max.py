"""Report noisy max: add discrete Laplace noise to each score and name the largest."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.guarantees import Pure
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import largest_move

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["NoisyMax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax:
    """Name the candidate whose whole-number score plus discrete Laplace noise is largest; the first of equals.

    Guarantee: ε = 2Δ/scale where a unit moves each score by at most Δ, and Δ/scale where it moves all in one direction.
    The name is covered, the noisy score is not. Not bounded-range: it composes as ε²/2-zCDP. Assumes: whole-number
    scores and sensitivity; ties go to the first in a public order. Proof: docs/proofs/noisy_max.md

    >>> NoisyMax.calibrated(sensitivity=1, epsilon=0.5).scale
    Fraction(4, 1)
    """

    KIND: ClassVar[str] = "mechanism.noisy_max"
    VERSION: ClassVar[int] = 1
    scale: Fraction
    monotone: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(cls, *, sensitivity: int, epsilon: Exact, monotone: bool = False) -> "NoisyMax":
        """From the whole-number sensitivity of one score."""
        moved = natural(sensitivity, "sensitivity")
        return cls(scale=(1 if monotone else 2) * moved / positive(epsilon, "epsilon"), monotone=monotone)

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    def loss(self, moved: Sensitivity | int) -> events.Stated:
        """The event for a unit that moves each score by at most ``moved``, a whole number or an linf bound."""
        reach = (1 if self.monotone else 2) * largest_move(moved)
        return events.Stated(guarantee=Pure(epsilon=reach / self.scale))

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: the place that :meth:`choose` gives. Sensitive: ``exact``."""
        return (self.choose(exact, words),), ()

    def choose(self, scores: Sequence[int], words: "Words") -> int:
        """Add fresh noise to each score and name the largest, the first of equals."""
        from sfumato.noise import sample_discrete_laplace, saturating_sum

        if not scores or any(isinstance(score, bool) or not isinstance(score, int) for score in scores):
            raise InvalidInput("noisy max needs at least one score, and whole numbers; nothing was drawn.")
        noisy = saturating_sum(scores, sample_discrete_laplace(self.scale, len(scores), words))
        return noisy.index(max(noisy))
