"""Optimal partition selection: publishing undeclared keys, as often as (ε, δ) allows."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sfumato.core import enclosures, events
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.guarantees import Approximate
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known
from sfumato.mechanisms.several_keys import each_of, in_order, of_any

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["OptimalSelection"]

Key = TypeVar("Key")

FINE = 128  # bits of e^ε, and of δ beyond its own size
LARGEST = 44  # of the ε that is used for one key; e^44 is below 2^64
MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalSelection:
    """Show a key that n persons have with probability π(n), and no count; keys nobody has are never considered.

    ``epsilon`` and ``delta`` are those of one key; of an ε above 44 only 44 are used. π(0) = 0 and
    π(n) = min(e^ε·π(n − 1) + δ, 1 − e^(−ε)·(1 − π(n − 1) − δ), 1), rounded down: where a person brings one key, no
    other rule with the same guarantee shows a key more often, but for that rounding.

    Guarantee: a unit that moves the counts of k keys by 1 each has (k·ε, 1 − (1 − δ)^k)-DP. Under replace a unit moves
    twice as many keys as it brings. Assumes: counts are of persons, so that no unit moves one by more than 1. For
    several keys nothing is known to be optimal. Public: all fields; π. Sensitive: the counts, and the keys not shown.
    Proof: docs/proofs/optimal_selection.md

    >>> rule = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6)
    >>> [f"{float(rule.chance(persons)):.2g}" for persons in (1, 2, 12, 14)], rule.sure
    (['1e-06', '3.7e-06', '0.095', '0.7'], 28)
    """

    KIND: ClassVar[str] = "mechanism.optimal_selection"
    VERSION: ClassVar[int] = 1
    keys: int
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        natural(self.keys, "keys")
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", _inside(self.delta))

    @classmethod
    def calibrated(cls, *, keys: int, epsilon: Exact, delta: Exact) -> "OptimalSelection":
        """Split ε evenly over ``keys`` keys, and δ so that 1 − (1 − δ)^keys is what was asked for."""
        count, allowed = natural(keys, "keys"), _inside(delta)
        rule = cls(keys=count, epsilon=positive(epsilon, "epsilon") / count, delta=each_of(allowed, count))
        _chances(rule.epsilon, rule.delta)  # refused now, where it would take too long, and not after the charge
        return rule

    @property
    def law(self) -> Unstated:
        """Which keys are shown is a choice; no margin of error is stated."""
        return Unstated()

    @property
    def event(self) -> events.Stated:
        """What happens to the privacy of a unit that moves ``keys`` keys."""
        return self.loss(self.keys)

    def loss(self, moved: Sensitivity | int) -> events.Stated:
        """The event for a unit that moves a number of counts by 1 each.

        A sensitivity tells them by its l0 bound, and by its linf bound that no count moves further.
        """
        if isinstance(moved, Sensitivity) and known(moved.linf, "linf").value > 1:
            raise Refused("counts move by more than 1, and these are not counts of persons; nothing was done.")
        keys = known(moved.l0, "l0").count if isinstance(moved, Sensitivity) else moved
        natural(keys, "keys", least=0)
        return events.Stated(guarantee=Approximate(epsilon=keys * self.epsilon, delta=of_any(self.delta, keys)))

    @property
    def sure(self) -> int:
        """How many persons must have a key so that it is certainly shown; a public fact."""
        _, chances = _chances(self.epsilon, self.delta)
        return len(chances) - 1

    def chance(self, persons: int) -> Fraction:
        """The exact probability with which a key that this many persons have is shown; a public fact."""
        bits, chances = _chances(self.epsilon, self.delta)
        return Fraction(chances[min(natural(persons, "persons", least=0), len(chances) - 1)], 1 << bits)

    def draw(self, exact: Mapping[tuple[str | int | bool, ...], int], words: "Words") -> Answer:
        """The answer: the keys that :meth:`show` lets through, and no number. Sensitive: ``exact``."""
        return (), self.show(exact, words)

    def show(self, counts: Mapping[Key, int], words: "Words") -> tuple[Key, ...]:
        """Toss a coin for each key that someone has; the keys shown come in an order of their own."""
        from sfumato.noise.coins import sample_coins

        if any(isinstance(count, bool) or not isinstance(count, int) or count < 1 for count in counts.values()):
            raise InvalidInput("counts of keys that someone has are whole numbers from 1 on; nothing was drawn.")
        bits, chances = _chances(self.epsilon, self.delta)
        keys, last = in_order(counts), len(chances) - 1
        heads = sample_coins([chances[min(counts[key], last)] for key in keys], bits, words)
        return tuple(key for key, shown in zip(keys, heads.tolist(), strict=True) if shown)


def _inside(delta: Exact) -> Fraction:
    found = positive(probability(delta, "delta"), "delta")
    if found == 1:
        raise InvalidInput("delta = 1 guarantees nothing; nothing was done. Give a delta below 1.")
    return found


@lru_cache(maxsize=8)
def _chances(epsilon: Fraction, delta: Fraction) -> tuple[int, tuple[int, ...]]:
    """π(0), π(1), … until it is 1, in units of 2^−bits.

    Guarantee: with e^ε and δ rounded down and each step rounded down to a unit, π never falls, and any two that follow
    each other keep (ε, δ)-DP exactly.
    """
    bits = FINE + (1 / delta).__ceil__().bit_length()
    one, more = 1 << bits, _floor(delta, bits)
    growth = _floor(enclosures.exp(min(epsilon, Fraction(LARGEST)), bits=2 * FINE).low, FINE)
    chances = [0]
    while chances[-1] < one:
        if len(chances) > MOST:
            raise Refused(
                f"with ε = {float(epsilon):.2g} and δ = {float(delta):.2g} for each key, {MOST:,} persons would not be "
                "enough to show a key for sure; nothing was done. Give more ε or δ, or fewer keys."
            )
        last = chances[-1]
        up = (last * growth >> FINE) + more
        hidden = max(0, one - last - more)
        chances.append(min(up, one - -(-(hidden << FINE) // growth)))
    return bits, tuple(chances)


def _floor(value: Fraction, bits: int) -> int:
    return (value.numerator << bits) // value.denominator
