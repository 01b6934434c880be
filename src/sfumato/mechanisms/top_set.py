"""The top set: naming the k largest counts at once, as a set without an order."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["TopSet", "set_range"]


def set_range(*, candidates: int, choices: int, moved: int, monotone: bool) -> int:
    """How differently the sums of two sets of ``choices`` candidates can move, at most.

    A unit moves some counts by 1 each, ``moved`` of them in all: upward, or all downward, where ``monotone``; else half
    of them up and half down at the most. Sets of k hold min(k, ups) of those that rise, and at least as many as the
    others leave room for.

    >>> [set_range(candidates=5, choices=k, moved=2, monotone=True) for k in (1, 2, 3, 4, 5)]
    [1, 2, 2, 1, 0]
    """
    n, k = natural(candidates, "candidates"), natural(choices, "choices", most=candidates)

    def extent(ups: int, downs: int) -> int:
        rest = n - ups - downs
        most = min(k, ups) - max(0, k - ups - rest)
        least = max(0, k - downs - rest) - min(k, downs)
        return most - least

    if monotone:
        return max(extent(ups, 0) for ups in range(min(moved, n) + 1))
    half = -(-moved // 2)
    sides = range(min(half, n) + 1)
    return max(extent(ups, downs) for ups in sides for downs in sides if ups + downs <= n)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopSet:
    """Choose a set of ``choices`` of ``candidates`` with probability proportional to exp((sum of its counts)/scale).

    ``monotone`` says that a unit moves all counts in one direction.

    Guarantee: ε-bounded range with ε = :func:`set_range`/scale, hence ε-DP and ε²/8-zCDP: a set is chosen at once, and
    the cost does not grow with its size. Assumes: candidates are public; a unit moves each count by at most 1 and all
    together by its l1 bound, half up and half down at the most where it moves both ways. Sensitive: the counts.
    Proof: docs/proofs/top_set.md

    >>> TopSet.calibrated(candidates=100, choices=10, moved=2, epsilon=1, monotone=True).scale
    Fraction(2, 1)
    """

    KIND: ClassVar[str] = "mechanism.top_set"
    VERSION: ClassVar[int] = 1
    candidates: int
    choices: int
    scale: Fraction
    monotone: bool

    def __post_init__(self) -> None:
        natural(self.candidates, "candidates")
        natural(self.choices, "choices", most=self.candidates)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(
        cls, *, candidates: int, choices: int, moved: int, epsilon: Exact, monotone: bool = False
    ) -> "TopSet":
        """The least scale that gives ε to counts which one unit moves by 1 each and by ``moved`` in all."""
        apart = set_range(candidates=candidates, choices=choices, moved=moved, monotone=monotone)
        scale = Fraction(max(apart, 1)) / positive(epsilon, "epsilon")
        return cls(candidates=candidates, choices=choices, scale=scale, monotone=monotone)

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> events.BoundedRange:
        """The event for a unit that moves the counts by at most ``moved``: its l1 bound, and 1 for each."""
        if known(moved.linf, "linf").value > 1:
            raise Refused("this chooses among counts that a unit moves by 1 each at the most; nothing was done.")
        steps = known(moved.l1, "l1").value
        apart = set_range(
            candidates=self.candidates, choices=self.choices, moved=-(-steps // 1), monotone=self.monotone
        )
        return events.BoundedRange(epsilon=apart / self.scale)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`choose`. Sensitive: ``exact``."""
        return self.choose(exact, words), ()

    def choose(self, counts: Sequence[int], words: "Words") -> tuple[int, ...]:
        """The places of the chosen, in rising order; each set is drawn with exactly its probability."""
        from sfumato.noise.subsets import sample_subset

        if any(isinstance(count, bool) or not isinstance(count, int) for count in counts):
            raise InvalidInput("the top is chosen by counts, which are whole numbers; nothing was drawn.")
        if len(counts) != self.candidates:
            raise InvalidInput(f"there are {len(counts)} counts for {self.candidates} candidates; nothing was drawn.")
        return sample_subset([count / self.scale for count in counts], self.choices, words)
