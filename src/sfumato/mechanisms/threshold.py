"""Noisy threshold (partition selection): publishing undeclared keys, if enough people share them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sfumato import laws
from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.guarantees import Approximate
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known
from sfumato.mechanisms.several_keys import in_order, of_any

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["NoisyThreshold"]

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold:
    """Show a key with its noisy count if that is at least ``threshold``; keys nobody has are never considered.

    A unit brings up to ``keys`` keys and moves each count by at most ``most``.

    Guarantee: ε = keys·most/scale with δ = 1 − (1 − P[most + Z ≥ threshold])^keys, the chance that any key which exists
    only because of one unit is shown. A δ worked out for one key is too small for several.
    Proof: docs/proofs/threshold.md

    >>> NoisyThreshold.calibrated(keys=3, most=1, epsilon=1, delta=1e-6).threshold
    45
    """

    KIND: ClassVar[str] = "mechanism.noisy_threshold"
    VERSION: ClassVar[int] = 1
    keys: int
    most: int
    scale: Fraction
    threshold: int

    def __post_init__(self) -> None:
        natural(self.keys, "keys")
        natural(self.most, "most")
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        natural(self.threshold, "threshold", least=self.most + 1)

    @classmethod
    def calibrated(cls, *, keys: int, most: int, epsilon: Exact, delta: Exact) -> "NoisyThreshold":
        """The least threshold that meets δ, with the noise that meets ε."""
        allowed = positive(probability(delta, "delta"), "delta")
        scale = natural(keys, "keys") * natural(most, "most") / positive(epsilon, "epsilon")
        low, high = most, most + 1
        while _shown(keys, most, scale, high) > allowed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _shown(keys, most, scale, middle) <= allowed else (middle, high)
        return cls(keys=keys, most=most, scale=scale, threshold=high)

    @property
    def law(self) -> Unstated:
        """Which keys are shown is a choice; no margin of error is stated."""
        return Unstated()

    @property
    def event(self) -> events.Composed:
        """What happens to the privacy of a unit that brings ``keys`` keys."""
        return self.loss(self.keys)

    def loss(self, moved: Sensitivity | int) -> events.Composed:
        """The event for a unit that brings a number of keys: the noise, and the keys that it alone has.

        A sensitivity tells the keys by its l0 bound, and by its linf bound that no count moves further than ``most``.
        """
        if isinstance(moved, Sensitivity) and known(moved.linf, "linf").value > self.most:
            raise Refused(f"counts move by more than the {self.most} of this threshold; nothing was done.")
        keys = known(moved.l0, "l0").count if isinstance(moved, Sensitivity) else moved
        noise = events.DiscreteLaplace(l1=Fraction(natural(keys, "keys", least=0) * self.most), scale=self.scale)
        shown = Approximate(epsilon=Fraction(0), delta=_shown(keys, self.most, self.scale, self.threshold))
        return events.Composed(events=(noise, events.Stated(guarantee=shown)))

    def draw(self, exact: Mapping[tuple[str | int | bool, ...], int], words: "Words") -> Answer:
        """The answer: the noisy counts, and the keys, that :meth:`show` lets through. Sensitive: ``exact``."""
        shown = self.show(exact, words)
        return tuple(shown.values()), tuple(shown)

    def show(self, counts: Mapping[Key, int], words: "Words") -> dict[Key, int]:
        """Add noise to the count of each key that someone has, and show those that reach the threshold.

        They come in an order of their own, never in that of the data.
        """
        from sfumato.noise import sample_discrete_laplace, saturating_sum

        if any(isinstance(count, bool) or not isinstance(count, int) or count < 1 for count in counts.values()):
            raise InvalidInput("counts of keys that someone has are whole numbers from 1 on; nothing was drawn.")
        noisy = saturating_sum(list(counts.values()), sample_discrete_laplace(self.scale, len(counts), words))
        shown = {key: value for key, value in zip(counts, noisy, strict=True) if value >= self.threshold}
        return {key: shown[key] for key in in_order(shown)}


def _shown(keys: int, most: int, scale: Fraction, threshold: int) -> Fraction:
    """1 − (1 − P[most + Z ≥ threshold])^keys, rounded up; P[Z ≥ m] is half the mass beyond ±(m − 1)."""
    return of_any(laws.DiscreteLaplace(scale=scale).tail(threshold - most - 1).high / 2, keys)
