"""What all frequency oracles share: a report supports some values, the true one more often than any other.

A report supports the true value with probability ``hit`` and each other value with probability ``stray``; so
(supported/n − stray)/(hit − stray) estimates the share of a value without bias. Proof: docs/proofs/local_oracles.md
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from sfumato.core import events
from sfumato.core.exact import Exact, natural, probability
from sfumato.core.guarantees import Pure
from sfumato.errors import InvalidInput
from sfumato.local.odds import local_epsilon, odds

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["MOST_VALUES", "Oracle", "Oracular", "Report", "is_below", "is_bitmap"]

MOST_VALUES = 1 << 20

Report = int | bytes
"""What leaves the device: a number, or a bitmap with value v at bit v mod 8 of byte v // 8."""


def is_below(report: object, bound: int) -> bool:
    """Whether something is a whole number from 0 to below a bound; True and 1.0 are not.

    >>> is_below(2, 3), is_below(True, 3), is_below("2", 3), is_below(10**400, 3)
    (True, False, False, False)
    """
    return type(report) is int and 0 <= report < bound


def is_bitmap(report: bytes, values: int) -> bool:
    """Whether a bitmap has one bit for each value and none beyond.

    >>> is_bitmap(b"\\x07", 3), is_bitmap(b"\\x08", 3), is_bitmap(b"\\x01\\x00", 3)
    (True, False, False)
    """
    return len(report) == -(-values // 8) and not report[-1] >> (values - 1) % 8 + 1


class Oracle(Protocol):
    """A declaration that client and server share; everything about it is public."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]

    @property
    def epsilon(self) -> Fraction:
        """What one report costs the one who sends it."""
        ...

    @property
    def values(self) -> int:
        """How many values there are."""
        ...

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one report under two values: rational, at most e^ε."""
        ...

    @property
    def hit(self) -> Fraction:
        """The probability that a report supports the true value."""
        ...

    @property
    def stray(self) -> Fraction:
        """The probability that a report supports a given other value."""
        ...

    @property
    def pull(self) -> Fraction:
        """How far one report, honest or not, can move n times the estimate of a value: 1/(hit − stray)."""
        ...

    def loss(self) -> events.Stated:
        """The event of one report."""
        ...

    def variance(self, share: Exact = 0, *, population: str = "fixed") -> Fraction:
        """n times the variance of the estimated share."""
        ...

    def report(self, truth: int, bits: "Bits") -> Report:
        """Draw the report of one person."""
        ...

    def supports(self, report: Report, value: int) -> bool:
        """Whether a report counts for a value."""
        ...

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        ...

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this; what comes over a network may be anything."""
        ...

    def outputs(self) -> Iterator[Report]:
        """All reports there can be; for checks with few values."""
        ...


class Oracular:
    """The part of every oracle that follows from its odds, ``hit`` and ``stray``."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> Fraction:
            """What one report costs."""
            ...

        @property
        def values(self) -> int:
            """How many values there are."""
            ...

        @property
        def hit(self) -> Fraction:
            """The probability that a report supports the true value."""
            ...

        @property
        def stray(self) -> Fraction:
            """The probability that a report supports a given other value."""
            ...

    def _read(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        natural(self.values, "values", least=2, most=MOST_VALUES)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one report under two values: rational, at most e^ε."""
        return odds(self.epsilon)

    def loss(self) -> events.Stated:
        """The event of one report: ε-DP for its value, replaced by any other; T reports of one person are T events."""
        return events.Stated(guarantee=Pure(epsilon=self.epsilon))

    def variance(self, share: Exact = 0, *, population: str = "fixed") -> Fraction:
        """n times the variance of the estimated share of a value whose true share is ``share``; exact.

        ``fixed``: those who report are the population. ``iid``: they were drawn from one, and its share is estimated.
        """
        true = probability(share, "share")
        p, q = self.hit, self.stray
        noise = (true * p * (1 - p) + (1 - true) * q * (1 - q)) / (p - q) ** 2
        match population:
            case "fixed":
                return noise
            case "iid":
                return noise + true * (1 - true)
        raise InvalidInput(f"population = {population!r} is unknown; nothing was done. Give 'fixed' or 'iid'.")

    @property
    def pull(self) -> Fraction:
        """How far one report, honest or not, can move n times the estimate of a value: 1/(hit − stray).

        m senders who lie move an estimated share by up to m·pull/n, and no check of single reports can see it.
        """
        return 1 / (self.hit - self.stray)

    def _truth(self, truth: int) -> int:
        """Refuse an invalid value, in words that do not repeat it."""
        if isinstance(truth, bool) or not isinstance(truth, int) or not 0 <= truth < self.values:
            raise InvalidInput(
                f"the value must be a whole number from 0 to {self.values - 1}; nothing was reported. "
                "Number the values from 0, or give the collection labels."
            )
        return truth
