"""The top groups: naming several of the largest counts, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.guarantees import ZCDP
from sfumato.core.query import Answer
from sfumato.core.search import least_decimal, over
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import largest_move

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["TopChoice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopChoice:
    """Choose ``choices`` candidates one by one, each of those left with probability proportional to exp(count/scale).

    ``monotone`` says that a unit moves all counts in one direction: add/remove for counts, never replace, under which
    one count falls while another rises.

    Guarantee: each choice is ε-bounded range with ε = 2Δ/scale where a unit moves each count by at most Δ, and Δ/scale
    where monotone; all together are ``choices``·ε-DP, and ``choices``·ε²/8-zCDP. The names and their order are covered,
    the counts are not. Assumes: candidates are public; ``monotone`` is true of the unit. Sensitive: the counts.
    Proof: docs/proofs/top.md

    >>> TopChoice.calibrated(choices=5, sensitivity=1, epsilon=1, monotone=True).scale
    Fraction(5, 1)
    """

    KIND: ClassVar[str] = "mechanism.top"
    VERSION: ClassVar[int] = 1
    choices: int
    scale: Fraction
    monotone: bool

    def __post_init__(self) -> None:
        natural(self.choices, "choices")
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(
        cls, *, choices: int, sensitivity: int, epsilon: Exact, delta: Exact = 0, monotone: bool = False
    ) -> "TopChoice":
        """From the whole-number sensitivity of one count; with a δ, by zCDP where that allows a smaller scale.

        >>> float(TopChoice.calibrated(choices=100, sensitivity=1, epsilon=1, delta=1e-6, monotone=True).scale)
        22.66
        """
        count, allowed = natural(choices, "choices"), probability(delta, "delta")
        reach, budget = (1 if monotone else 2) * natural(sensitivity, "sensitivity"), positive(epsilon, "epsilon")
        scale = count * reach / budget

        def excess(some: Fraction) -> float:
            return over(ZCDP(rho=count * (reach / some) ** 2 / 8).epsilon_at(allowed), budget)

        if allowed:
            scale = min(scale, least_decimal(excess, digits=4, near=scale))
        return cls(choices=count, scale=scale, monotone=monotone)

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    def loss(self, moved: Sensitivity | int) -> events.Repeated:
        """The event for a unit that moves each count by at most ``moved``, a whole number or an linf bound."""
        reach = (1 if self.monotone else 2) * largest_move(moved)
        return events.Repeated(event=events.BoundedRange(epsilon=reach / self.scale), times=self.choices)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`choose`. Sensitive: ``exact``."""
        return self.choose(exact, words), ()

    def choose(self, counts: Sequence[int], words: "Words") -> tuple[int, ...]:
        """The places of the chosen, in the order of choice; each is drawn with exactly its probability."""
        from sfumato.noise.selection import sample_level
        from sfumato.noise.words import WordBits

        if any(isinstance(count, bool) or not isinstance(count, int) for count in counts):
            raise InvalidInput("the top is chosen by counts, which are whole numbers; nothing was drawn.")
        if len(counts) < self.choices:
            raise InvalidInput(f"there are {len(counts)} candidates for {self.choices} choices; nothing was drawn.")
        owners: dict[int, list[int]] = {}
        for place, count in enumerate(counts):
            owners.setdefault(count, []).append(place)
        chosen = []
        for _ in range(self.choices):
            top, left = max(owners), list(owners)
            drawn = left[sample_level([((top - count) / self.scale, len(owners[count])) for count in left], words)]
            chosen.append(owners[drawn].pop(WordBits(words).below(len(owners[drawn]))))
            if not owners[drawn]:
                del owners[drawn]
        return tuple(chosen)
