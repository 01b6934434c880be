"""Choosing one candidate by its score: the exponential mechanism and permute-and-flip."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from sfumato.core import events
from sfumato.core.exact import Exact, positive, rational
from sfumato.core.guarantees import Pure
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import largest_move

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["Exponential", "PermuteAndFlip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByScore:
    """What both have: ε, and the spread of the scores that it is for."""

    epsilon: Fraction
    spread: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "spread", positive(self.spread, "spread"))

    @classmethod
    def calibrated(cls, *, sensitivity: Exact, epsilon: Exact, monotone: bool = False) -> Self:
        """From the sensitivity of one score; ``monotone`` if a unit moves all scores in the same direction."""
        moved = positive(sensitivity, "sensitivity")
        return cls(epsilon=positive(epsilon, "epsilon"), spread=moved if monotone else 2 * moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(_ByScore):
    """Choose candidate r with probability proportional to exp(ε·u(r)/spread).

    ``spread`` bounds how differently two candidates' scores can move between neighbours: the max over candidates of
    u(D, r) − u(D', r), minus the min. It is at most twice the sensitivity, and the sensitivity alone where all scores
    move in one direction (monotone).

    Guarantee: ε-bounded range, hence ε-DP and ε²/8-zCDP. Assumes: candidates are public; scores are exact
    rationals. Sensitive: the scores. Proof: docs/proofs/exponential.md

    >>> Exponential.calibrated(sensitivity=1, epsilon=0.5).spread
    Fraction(2, 1)
    """

    KIND: ClassVar[str] = "mechanism.exponential"
    VERSION: ClassVar[int] = 1

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    @property
    def event(self) -> events.BoundedRange:
        """What happens to the privacy of a unit within the spread."""
        return self.loss(self.spread)

    def loss(self, spread: Sensitivity | Exact) -> events.BoundedRange:
        """The event for a unit that moves scores apart by at most ``spread``; a sensitivity gives twice its linf."""
        return events.BoundedRange(epsilon=self.epsilon * _apart(spread) / self.spread)

    def exponents(self, scores: Sequence[Exact]) -> list[Fraction]:
        """The exact logarithms, up to a constant, of the probabilities."""
        return [self.epsilon * score / self.spread for score in _scores(scores)]

    def draw(self, exact: Sequence[Exact], words: "Words") -> Answer:
        """The answer: the place that :meth:`choose` gives. Sensitive: ``exact``."""
        return (self.choose(exact, words),), ()

    def choose(self, scores: Sequence[Exact], words: "Words") -> int:
        """Draw a candidate with exactly its probability."""
        from sfumato.noise import sample_selection

        return int(sample_selection(self.exponents(scores), 1, words)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(_ByScore):
    """Walk the candidates in random order; stop at r with probability exp(ε·(u(r) − max u)/spread).

    Guarantee: ε-DP, never worse in expectation than the exponential mechanism with the same spread; *not*
    bounded-range, so it composes as ε²/2-zCDP. Assumes: ``spread`` as for :class:`Exponential`. Sensitive: the scores.
    Proof: docs/proofs/exponential.md

    >>> PermuteAndFlip.calibrated(sensitivity=1, epsilon=1, monotone=True).spread
    Fraction(1, 1)
    """

    KIND: ClassVar[str] = "mechanism.permute_and_flip"
    VERSION: ClassVar[int] = 1

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    @property
    def event(self) -> events.Stated:
        """What happens to the privacy of a unit within the spread."""
        return self.loss(self.spread)

    def loss(self, spread: Sensitivity | Exact) -> events.Stated:
        """The event for a unit whose spread is at most ``spread``; a sensitivity gives twice its linf."""
        return events.Stated(guarantee=Pure(epsilon=self.epsilon * _apart(spread) / self.spread))

    def exponents(self, scores: Sequence[Exact]) -> list[Fraction]:
        """The exact logarithms of the probabilities of stopping; the best candidate has 0."""
        exact = _scores(scores)
        best = max(exact)
        return [self.epsilon * (score - best) / self.spread for score in exact]

    def draw(self, exact: Sequence[Exact], words: "Words") -> Answer:
        """The answer: the place that :meth:`choose` gives. Sensitive: ``exact``."""
        return (self.choose(exact, words),), ()

    def choose(self, scores: Sequence[Exact], words: "Words") -> int:
        """Walk a random order of the candidates with exact coins."""
        from sfumato.noise import sample_bernoulli_exp, sample_permutation

        exponents = self.exponents(scores)
        for candidate in sample_permutation(len(exponents), words).tolist():
            if sample_bernoulli_exp(-exponents[candidate], 1, words)[0]:
                return int(candidate)
        raise AssertionError("the best candidate stops the walk")


def _apart(spread: Sensitivity | Exact) -> Fraction:
    """How far scores can move apart: one up and another down by as much as each can move."""
    return 2 * largest_move(spread) if isinstance(spread, Sensitivity) else rational(spread, "spread")


def _scores(scores: Sequence[Exact]) -> list[Fraction]:
    if not scores:
        raise InvalidInput("there is no candidate to choose from; nothing was drawn.")
    return [rational(score, "score") for score in scores]
