"""A cap that is chosen privately, and then numbers with noise that fits it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import natural, positive
from sfumato.core.guarantees import Pure
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.exponential import PermuteAndFlip
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["ChosenCap"]

SPREAD = 2  # of the scores, at the most: a node that is replaced goes and comes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCap:
    """Choose one of several public caps by permute-and-flip, then add Laplace noise for that cap; release both.

    The score of the cap at place i is −(nodes in its way + ``doubling``·i): larger caps are more noise, so each step up
    has to save ``doubling`` nodes. ``spread`` bounds how differently one unit moves two scores. ``moves`` bounds for
    each cap how far one unit moves the numbers, in l1; the noise has that over ε as its scale. Behind the cap stand
    ``numbers`` numbers; where a smaller cap has fewer, zeros follow.

    Guarantee: (choice + epsilon)-DP, whatever the cap that comes out: the choice is ``choice``-DP, and the numbers are
    ε-DP for every cap. Assumes: caps are public, and scores and moves are bounded as stated. Public: all fields, and
    the cap that came out. Sensitive: how many nodes are in the way. Proof: docs/proofs/node_level.md

    >>> mechanism = ChosenCap(caps=(32, 64, 100), choice=Fraction(1, 4), epsilon=Fraction(3, 4), spread=1, doubling=5,
    ...                       moves=(32, 64, 100), numbers=1)
    >>> mechanism.scale(64)
    Fraction(256, 3)
    """

    KIND: ClassVar[str] = "mechanism.chosen_cap"
    VERSION: ClassVar[int] = 1
    caps: tuple[int, ...]
    choice: Fraction
    epsilon: Fraction
    spread: int
    doubling: int
    moves: tuple[int, ...]
    numbers: int

    def __post_init__(self) -> None:
        if not self.caps or list(self.caps) != sorted({natural(cap, "a cap") for cap in self.caps}):
            raise InvalidInput("caps are whole numbers that rise; nothing was done.")
        object.__setattr__(self, "choice", positive(self.choice, "choice"))
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        natural(self.spread, "spread", most=SPREAD)
        natural(self.doubling, "doubling", least=0)
        if len(self.moves) != len(self.caps) or list(self.moves) != sorted(
            natural(move, "moves") for move in self.moves
        ):
            raise InvalidInput(
                "every cap needs the move of one unit, and larger caps no smaller one; nothing was done."
            )
        natural(self.numbers, "numbers")

    @property
    def law(self) -> DiscreteLaplace:
        """The error at the largest cap, which bounds that at every other; how far the cap cuts is not in it."""
        return self.law_at(self.caps[-1])

    def law_at(self, cap: int) -> DiscreteLaplace:
        """The error of each number once this cap came out."""
        return DiscreteLaplace(scale=self.scale(cap))

    def scale(self, cap: int) -> Fraction:
        """The scale of the noise at a cap."""
        return self.moves[self.caps.index(cap)] / self.epsilon

    def loss(self, moved: Sensitivity) -> events.Composed:
        """The choice, then the numbers; ``moved`` must be what one unit does to them at the largest cap."""
        if known(moved.l1, "l1").value != self.moves[-1]:
            raise Refused(
                f"this noise is for numbers that a unit moves by {self.moves[-1]} at the largest cap; nothing was "
                "done. Make it for the query that is asked."
            )
        return events.Composed(events=(self._chooser.event, events.Stated(guarantee=Pure(epsilon=self.epsilon))))

    def scores(self, in_the_way: Sequence[int]) -> list[int]:
        """The score of each cap, from how many nodes are in its way. Sensitive."""
        if len(in_the_way) != len(self.caps):
            raise InvalidInput("every cap needs its number of nodes; nothing was drawn.")
        return [-(nodes + self.doubling * place) for place, nodes in enumerate(in_the_way)]

    def draw(self, exact: tuple[Sequence[int], Callable[[int], Sequence[int]]], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: tuple[Sequence[int], Callable[[int], Sequence[int]]], words: "Words") -> tuple[int, ...]:
        """Choose the cap, compute the numbers for it, add noise; ``exact`` is the nodes in the way, and the numbers."""
        from sfumato.noise import sample_discrete_laplace, saturating_sum

        in_the_way, numbers_at = exact
        cap = self.caps[self._chooser.choose(self.scores(in_the_way), words)]
        numbers = list(numbers_at(cap))
        noisy = saturating_sum(numbers, sample_discrete_laplace(self.scale(cap), len(numbers), words))
        return (cap, *noisy, *([0] * (self.numbers - len(noisy))))

    @property
    def _chooser(self) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon=self.choice, spread=Fraction(self.spread))
