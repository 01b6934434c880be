"""The search for a limit: the first of several rising limits that few enough persons are above."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.guarantees import Pure
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import largest_move
from sfumato.mechanisms.sparse_vector import SparseVector

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["LimitSearch"]

FIRST = Fraction(13, 20)  # of ε for the noise of the threshold, which all comparisons of a walk share
PERSONS, NOISE, RISE = 2, 2, Fraction(3, 4)  # of 1/ε of a planned question, and of the search; and for each candidate
# passed, of 1/ε of the search: docs/proofs/choosing_limits.md


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSearch:
    """Walk upward over ``candidates`` and stop at the first that fewer persons are above than a threshold, both noisy.

    One walk for each list of candidates, each a sparse vector with one alarm; the last candidate of a list is taken
    where the walk does not stop before it. The threshold ``rises`` with each candidate that is passed.

    Guarantee: the sum of the ε of all ``walks``, where a unit moves each count of persons above a candidate by at most
    the sensitivity of the walk, and those of one list all in one direction. That holds for one person under add/remove
    and under replace: whoever is replaced by someone with more rows is above more candidates, and above none fewer.
    Public: every field. Sensitive: the counts. Proof: docs/proofs/choosing_limits.md

    >>> search = LimitSearch.calibrated(candidates=[(1, 2, 4)], epsilon=1, spend=[Fraction(1, 2)])
    >>> search.threshold(0, 0), search.threshold(0, 2)
    (4, 5)
    """

    KIND: ClassVar[str] = "mechanism.limit_search"
    VERSION: ClassVar[int] = 1
    candidates: tuple[tuple[int, ...], ...]
    thresholds: tuple[int, ...]
    rises: tuple[Fraction, ...]
    walks: tuple[SparseVector, ...]

    def __post_init__(self) -> None:
        parts = (self.candidates, self.thresholds, self.rises, self.walks)
        if not self.candidates or len({len(part) for part in parts}) > 1:
            raise InvalidInput("a search has a threshold and a walk for each list of candidates; nothing was drawn.")
        for listed, threshold, rise, walk in zip(*parts, strict=True):
            if not listed or any(low >= high for low, high in pairwise(listed)):
                raise InvalidInput("the candidates of a search rise; nothing was drawn.")
            for limit in listed:
                natural(limit, "candidate")
            natural(threshold, "threshold")
            positive(rise, "rise")
            if walk.alarms != 1 or not walk.monotone:
                raise InvalidInput("a walk stops once, and its counts move in one direction; nothing was drawn.")

    @classmethod
    def calibrated(
        cls, *, candidates: Sequence[Sequence[int]], epsilon: Exact, spend: Sequence[Exact], sensitivity: int = 1
    ) -> "LimitSearch":
        """Divide ε equally between the walks; ``spend`` is, for each, the ε that a planned question has for its noise.

        The threshold begins at 2/spend persons, whose rows weigh about as much as the noise, and no less than 2/ε of
        the walk. It rises by 3/4 of 1/ε with each candidate, so that a walk whose noise was large does not go on to
        limits that nobody needs.
        """
        each = positive(epsilon, "epsilon") / max(1, len(candidates))
        walk = SparseVector(
            sensitivity=sensitivity, alarms=1, first=FIRST * each, each=(1 - FIRST) * each, monotone=True
        )
        planned = [positive(amount, "spend") for amount in spend]
        return cls(
            candidates=tuple(tuple(listed) for listed in candidates),
            thresholds=tuple(ceil(max(PERSONS / amount, NOISE * sensitivity / each)) for amount in planned),
            rises=(RISE * sensitivity / each,) * len(candidates),
            walks=(walk,) * len(candidates),
        )

    def threshold(self, listed: int, place: int) -> int:
        """What the persons above the candidate at a place of a list are compared with."""
        return self.thresholds[listed] + floor(place * self.rises[listed])

    @property
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    def loss(self, moved: Sensitivity | int) -> events.Stated:
        """The event for a unit that moves each count by at most ``moved``, a whole number or an linf bound."""
        most = largest_move(moved)
        spent = (most / walk.sensitivity * (walk.first + walk.each) for walk in self.walks)
        return events.Stated(guarantee=Pure(epsilon=sum(spent, Fraction(0))))

    def draw(self, exact: Sequence[Sequence[int]], words: "Words") -> Answer:
        """The answer: :meth:`search`. Sensitive: ``exact``."""
        return self.search(exact, words), ()

    def search(self, above: Sequence[Sequence[int]], words: "Words") -> tuple[int, ...]:
        """For each list the candidate that was stopped at; ``above`` counts persons above each but the last."""
        if [len(counts) for counts in above] != [len(listed) - 1 for listed in self.candidates]:
            raise InvalidInput("a search needs the persons above each candidate but the last; nothing was drawn.")
        return tuple(
            listed[self._stop(number, counts, words)]
            for number, (listed, counts) in enumerate(zip(self.candidates, above, strict=True))
        )

    def _stop(self, number: int, above: Sequence[int], words: "Words") -> int:
        """The place of the first candidate with fewer persons above it than the threshold says, both noisy.

        A sparse vector alarms where a number is at least its threshold: so the signs are turned round, and fewer than
        a threshold is at most one less. How far the threshold has risen is taken off the count.
        """
        first = self.thresholds[number]
        watch = self.walks[number].watch(1 - first, words=words)
        for place, count in enumerate(above):
            if watch.check(self.threshold(number, place) - first - count).alarm:
                return place
        return len(above)
