"""Local hashing: a value is hashed to few buckets by a function that the report names, and the bucket is randomised."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import Exact
from sfumato.errors import InvalidInput
from sfumato.local.fields import coordinates, field, is_order
from sfumato.local.odds import local_epsilon, odds
from sfumato.local.oracle import Oracular, Report, is_below

if TYPE_CHECKING:
    from sfumato.noise.bits import Bits

__all__ = ["LocalHash", "orders_near"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHash(Oracular):
    """Report a random hash function and, by randomised response, the bucket into which it puts the true value.

    The functions are the inner products with vectors over the field of ``buckets`` elements: two values share a
    bucket under exactly 1/buckets of them, so nothing about the estimate is approximate. A report is the whole number
    seed·buckets + bucket. ``calibrated`` takes the number of buckets that errs least, about e^ε + 1 (OLH).

    Guarantee: ε-DP for the value of one report, replaced by any other; the seed is drawn without looking at it.
    Sensitive: the true value. Proof: docs/proofs/local_oracles.md

    >>> asked = LocalHash.calibrated(epsilon=1, values=128)
    >>> asked.buckets, round(float(asked.variance()), 3)
    (4, 3.692)
    """

    KIND: ClassVar[str] = "local.hash"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    values: int
    buckets: int

    def __post_init__(self) -> None:
        self._read()
        if not is_order(self.buckets):
            raise InvalidInput("the number of buckets must be a prime or a power of two up to 4096; nothing was done.")

    @classmethod
    def calibrated(cls, *, epsilon: Exact, values: int) -> "LocalHash":
        """With the number of buckets of least variance."""
        exact = local_epsilon(epsilon)
        return min(
            (cls(epsilon=exact, values=values, buckets=order) for order in orders_near(odds(exact) + 1)),
            key=lambda asked: asked.variance(),
        )

    @property
    def digits(self) -> int:
        """How many coordinates a value has over the field."""
        digits = 1
        while self.buckets**digits < self.values:
            digits += 1
        return digits

    @property
    def seeds(self) -> int:
        """How many hash functions there are."""
        return int(self.buckets**self.digits)

    @property
    def hit(self) -> Fraction:
        """R/(R + buckets − 1)."""
        return self.ratio / (self.ratio + self.buckets - 1)

    @property
    def stray(self) -> Fraction:
        """1/buckets: a bucket that is not the true one holds as many other values as the true one."""
        return Fraction(1, self.buckets)

    def bucket(self, seed: int, value: int) -> int:
        """Where a hash function puts a value."""
        return int(
            field(self.buckets).inner(
                coordinates(seed, self.buckets, self.digits), coordinates(value, self.buckets, self.digits)
            )
        )

    def report(self, truth: int, bits: "Bits") -> int:
        """Draw the report of one person: seed·buckets + bucket."""
        self._truth(truth)
        seed = bits.below(self.seeds)
        top, bottom = self.ratio.as_integer_ratio()
        drawn = bits.below(top + (self.buckets - 1) * bottom)
        shift = 0 if drawn < top else 1 + (drawn - top) // bottom
        return seed * self.buckets + (self.bucket(seed, truth) + shift) % self.buckets

    def supports(self, report: Report, value: int) -> bool:
        """A report counts for every value in its bucket."""
        seed, bucket = divmod(int(report), self.buckets)
        return self.bucket(seed, value) == bucket

    def probability(self, report: Report, truth: int) -> Fraction:
        """The exact probability of a report given the truth."""
        chance = self.hit if self.supports(report, truth) else (1 - self.hit) / (self.buckets - 1)
        return chance / self.seeds

    @property
    def kinds(self) -> int:
        """How many different reports there are."""
        return self.seeds * self.buckets

    def possible(self, report: object) -> bool:
        """Whether a client can have sent this: a whole number below ``kinds``."""
        return is_below(report, self.kinds)

    def outputs(self) -> Iterator[int]:
        """All seeds with all buckets."""
        return iter(range(self.kinds))


@lru_cache(maxsize=64)
def orders_near(size: Fraction) -> tuple[int, ...]:
    """The orders of fields next to a number: two below it and two above, as far as there are.

    >>> orders_near(Fraction(56))
    (47, 53, 59, 61)
    """
    below = [order for order in range(2, min(int(size), 4096) + 1) if is_order(order)][-2:]
    above = [order for order in range(int(size) + 1, min(2 * int(size) + 4, 4096)) if is_order(order)][:2]
    return (*below, *above)
