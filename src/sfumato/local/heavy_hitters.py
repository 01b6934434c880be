"""Heavy hitters: frequent texts of a public length over a public alphabet, found prefix by prefix.

Persons are divided into rounds without looking at their texts. In each round those asked report, once and at the full
ε, which of the candidate prefixes theirs is, or that it is not among them. The server keeps the most frequent ones,
extends them by a few symbols, and asks the next round. Everybody reports once, and the device sees to it
(:class:`~sfumato.local.search_client.SearchClient`): the whole costs each person ε.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from sfumato.core import events
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.exact import Exact, natural
from sfumato.core.guarantees import Pure
from sfumato.errors import InvalidInput, Refused
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.kary import KaryResponse
from sfumato.local.local_hash import LocalHash
from sfumato.local.odds import local_epsilon
from sfumato.local.oracle import Oracle
from sfumato.local.projective import ProjectiveResponse

__all__ = ["HeavyHitters", "Hitter", "PrefixSearch", "advised", "search_from_json"]

MOST_CANDIDATES = 1 << 14
MOST_SYMBOLS = 4096


def advised(*, epsilon: Exact, values: int) -> Oracle:
    """The oracle of least variance among those whose report is one number.

    >>> advised(epsilon=1, values=4).KIND, advised(epsilon=2, values=1000).KIND
    ('local.kary_response', 'local.projective_response')
    """
    exact = local_epsilon(epsilon)
    asked: list[Oracle] = [
        KaryResponse(epsilon=exact, values=values),
        HadamardResponse(epsilon=exact, values=values),
        LocalHash.calibrated(epsilon=exact, values=values),
        ProjectiveResponse.calibrated(epsilon=exact, values=values),
    ]
    return min(asked, key=lambda oracle: oracle.variance())


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSearch:
    """The public plan: alphabet, length of texts, symbols added in a round, prefixes kept from one round to the next.

    A shorter text is filled up with the first symbol of the alphabet; what is longer is cut. A text with a symbol that
    is not in the alphabet is not a candidate.

    Guarantee: ε-DP for the text of a person, replaced by any other, where the person reports once; a
    :class:`SearchClient` sees to that on the device. Sensitive: the text.

    >>> plan = PrefixSearch(epsilon=2, alphabet="-abc", length=4, step=2, kept=8)
    >>> plan.rounds, len(plan.first())
    (2, 16)
    """

    KIND: ClassVar[str] = "local.prefix_search"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    alphabet: str
    length: int
    step: int = 1
    kept: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        natural(self.length, "length", most=MOST_SYMBOLS)
        natural(self.step, "step", most=self.length)
        natural(self.kept, "kept")
        if not isinstance(self.alphabet, str) or len(self.alphabet) < 2 or len(set(self.alphabet)) < len(self.alphabet):
            raise InvalidInput("the alphabet needs at least two symbols, all different; nothing was done.")
        # Two symbols and that many steps are too many already, so that no larger power is ever computed.
        if len(self.alphabet) ** min(self.step, MOST_CANDIDATES.bit_length()) * self.kept > MOST_CANDIDATES:
            raise InvalidInput(
                f"a round would have more than {MOST_CANDIDATES:,} candidates; nothing was done. "
                "Keep fewer prefixes, or add fewer symbols in a round."
            )

    def to_json(self) -> str:
        """Write the plan as canonical JSON, for the devices."""
        return canonical(encode(self))

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return -(-self.length // self.step)

    def loss(self) -> events.Stated:
        """The event of the one report of a person."""
        return events.Stated(guarantee=Pure(epsilon=self.epsilon))

    def first(self) -> tuple[str, ...]:
        """The candidates of the first round: all prefixes."""
        return self.extended(("",))

    def extended(self, prefixes: Sequence[str]) -> tuple[str, ...]:
        """All continuations of some prefixes of one length by ``step`` symbols, fewer at the end."""
        more = min(self.step, self.length - len(prefixes[0]))
        ends = ["".join(end) for end in product(self.alphabet, repeat=more)]
        return tuple(prefix + end for prefix in prefixes for end in ends)

    def oracle(self, candidates: Sequence[str]) -> Oracle:
        """What is asked in a round: one value for each candidate, and a last one for none of them."""
        return advised(epsilon=self.epsilon, values=len(candidates) + 1)

    def checked(self, candidates: Sequence[str]) -> tuple[str, ...]:
        """The candidates of a round of this plan; what cannot be such is refused. They come from the server.

        >>> plan = PrefixSearch(epsilon=2, alphabet="-abc", length=5, step=2, kept=8)
        >>> plan.checked(["ab", "ca"])
        ('ab', 'ca')
        """
        if not isinstance(candidates, list | tuple) or not candidates:
            raise InvalidInput("the candidates must be a list of prefixes, at least one; nothing was reported.")
        if len(candidates) > len(self.alphabet) ** self.step * self.kept:
            raise InvalidInput("there are more candidates than a round of this plan has; nothing was reported.")
        if not all(isinstance(candidate, str) for candidate in candidates):
            raise InvalidInput("a candidate is not a text; nothing was reported.")
        size = len(candidates[0])
        fits = 0 < size <= self.length and (size % self.step == 0 or size == self.length)
        if not fits or any(len(candidate) != size for candidate in candidates):
            raise InvalidInput("the candidates do not have the length of a round of this plan; nothing was reported.")
        if len(set(candidates)) < len(candidates) or not set().union(*candidates) <= set(self.alphabet):
            raise InvalidInput("two candidates are the same, or one has a foreign symbol; nothing was reported.")
        return tuple(candidates)

    def place(self, text: str, candidates: Sequence[str]) -> int:
        """The number of a text's prefix among the candidates, or that of none. Sensitive.

        Every text has one, so that nobody is silent because of what the text is.
        """
        if not isinstance(text, str):
            raise InvalidInput(f"the text came as {type(text).__name__}; nothing was reported. For no text give ''.")
        cut = text[: self.length]
        own = set(cut) <= set(self.alphabet)
        prefix = cut.ljust(self.length, self.alphabet[0])[: len(candidates[0])]
        place = {candidate: number for number, candidate in enumerate(candidates)}.get(prefix, len(candidates))
        return place if own else len(candidates)


_REGISTRY = Registry((PrefixSearch,))


def search_from_json(text: str) -> PrefixSearch:
    """Read a plan; an unknown kind, a newer version or a foreign field is refused by name.

    >>> plan = PrefixSearch(epsilon=2, alphabet="ab", length=3)
    >>> search_from_json(plan.to_json()) == plan
    True
    """
    plan: PrefixSearch = _REGISTRY.decode(parse(text), "search")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Hitter:
    """A text that was found, its estimated share among those asked in the last round, and the interval."""

    text: str
    estimate: float
    low: float
    high: float


class HeavyHitters:
    """The server's side of a search: candidates out, reports in, round by round.

    Intervals hold for all candidates of the last round at once, so that picking the largest does not spoil them.
    A text whose prefix was lost on the way is not found: the estimate of each round errs. Threads may share it: a round
    is answered once.
    """

    __slots__ = ("_found", "_lock", "candidates", "plan", "round")

    def __init__(self, plan: PrefixSearch) -> None:
        self.plan = plan
        self.round = 0
        self.candidates: tuple[str, ...] = plan.first()
        self._found: tuple[Hitter, ...] = ()
        self._lock = threading.Lock()

    @property
    def oracle(self) -> Oracle:
        """What those of this round are asked."""
        return self.plan.oracle(self.candidates)

    def answer(self, reports: object, *, confidence: Exact = "0.95") -> tuple[Hitter, ...]:
        """Take the reports of this round; gives the most frequent candidates and moves on to the next round.

        Refused where another thread answered the round meanwhile: its reports were to other candidates then.
        """
        from sfumato.local.aggregate import estimate_shares

        with self._lock:
            at, candidates = self.round, self.candidates
        if at >= self.plan.rounds:
            raise Refused("the search is over; nothing was counted. Begin another one with other persons.")
        shares = estimate_shares(self.plan.oracle(candidates), reports, confidence=confidence, joint=True)
        order = sorted(range(len(candidates)), key=lambda place: -shares.estimates[place])[: self.plan.kept]
        found = tuple(
            Hitter(
                text=candidates[place],
                estimate=float(shares.estimates[place]),
                low=float(shares.low[place]),
                high=float(shares.high[place]),
            )
            for place in order
        )
        with self._lock:
            if self.round != at:
                raise Refused(
                    f"round {at + 1} was answered by another thread meanwhile; nothing was counted. Give the reports "
                    "of each round once, all together."
                )
            self._found = found
            if at + 1 < self.plan.rounds:
                self.candidates = self.plan.extended([hitter.text for hitter in found])
            self.round = at + 1
        return found

    @property
    def found(self) -> tuple[Hitter, ...]:
        """The texts found, most frequent first; only when the search is over."""
        if self.round < self.plan.rounds:
            raise Refused(f"round {self.round + 1} of {self.plan.rounds} has not been answered yet; nothing was found.")
        return self._found
