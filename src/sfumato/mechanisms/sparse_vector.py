"""The sparse vector technique: alarms on a stream of queries, paid for by the alarms alone."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.guarantees import Pure
from sfumato.errors import InvalidInput, Refused
from sfumato.noise import Bits, SystemBits, draw_discrete_laplace

__all__ = ["Reading", "SparseVector", "Watch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one query told: whether it raised an alarm and, if so, by how much the noisy sides differ (free)."""

    alarm: bool
    gap: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Compare whole-number queries with a threshold, both noisy, and stop for good after ``alarms`` alarms.

    The threshold gets noise of scale Δ/ε₀ once; each query fresh noise of scale 2Δ/ε₁ (Δ/ε₁ where a unit moves all
    queries in one direction); an alarm is raised where the noisy value is at least the noisy threshold.

    Guarantee: ε₀ + alarms·ε₁, however long the stream. The alarm and its gap are covered; the value is not. Assumes:
    whole-number queries, each moved by at most Δ = ``sensitivity`` by one unit; after the last alarm nothing is output.
    Proof: docs/proofs/sparse_vector.md

    >>> SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1, monotone=True).first
    Fraction(1, 2)
    """

    KIND: ClassVar[str] = "mechanism.sparse_vector"
    VERSION: ClassVar[int] = 1
    sensitivity: int
    alarms: int
    first: Fraction
    each: Fraction
    monotone: bool

    def __post_init__(self) -> None:
        natural(self.sensitivity, "sensitivity")
        natural(self.alarms, "alarms")
        object.__setattr__(self, "first", positive(self.first, "epsilon of the threshold"))
        object.__setattr__(self, "each", positive(self.each, "epsilon of each alarm"))

    @classmethod
    def calibrated(cls, *, sensitivity: int, alarms: int, epsilon: Exact, monotone: bool = False) -> "SparseVector":
        """Split ε as 1 : (2c)^⅔ between threshold and c alarms (1 : c^⅔ if monotone), in thousandths of ε."""
        total, count = positive(epsilon, "epsilon"), natural(alarms, "alarms")
        share = Fraction(max(1, round(1000 / (1 + (count if monotone else 2 * count) ** (2 / 3)))), 1000)
        first = total * share
        return cls(sensitivity=sensitivity, alarms=count, first=first, each=(total - first) / count, monotone=monotone)

    @property
    def event(self) -> events.Stated:
        """What happens to the privacy of a unit within the sensitivity."""
        return self.loss(self.sensitivity)

    def loss(self, sensitivity: int) -> events.Stated:
        """The event for a unit that moves each query by at most ``sensitivity``."""
        moved = Fraction(natural(sensitivity, "sensitivity", least=0), self.sensitivity)
        return events.Stated(guarantee=Pure(epsilon=moved * (self.first + self.alarms * self.each)))

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the threshold's noise."""
        return self.sensitivity / self.first

    @property
    def query_scale(self) -> Fraction:
        """The scale of each query's noise."""
        return (1 if self.monotone else 2) * self.sensitivity / self.each

    def watch(self, threshold: int, *, bits: Bits | None = None) -> "Watch":
        """Draw the threshold's noise and start; the watch belongs behind a gate, for it is shown exact values."""
        return Watch(self, threshold, SystemBits() if bits is None else bits)


class Watch:
    """A running sparse vector; sensitive: the noisy threshold inside. After the last alarm it refuses for good."""

    __slots__ = ("_bits", "_left", "_mechanism", "_noisy_threshold")

    def __init__(self, mechanism: SparseVector, threshold: int, bits: Bits) -> None:
        _whole(threshold, "threshold")
        self._mechanism = mechanism
        self._bits = bits
        self._left = mechanism.alarms
        self._noisy_threshold = threshold + draw_discrete_laplace(mechanism.threshold_scale, bits)

    def check(self, value: int) -> Reading:
        """Compare one exact query answer; the reading is public, the value is not."""
        if self._left == 0:
            raise Refused(
                "this watch has raised all its alarms and says nothing more. Open a new one, with a new budget."
            )
        _whole(value, "value")
        gap = value + draw_discrete_laplace(self._mechanism.query_scale, self._bits) - self._noisy_threshold
        if gap < 0:
            return Reading(alarm=False, gap=None)
        self._left -= 1
        return Reading(alarm=True, gap=gap)


def _whole(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"the {name} of a watch must be a whole number; nothing was drawn.")
