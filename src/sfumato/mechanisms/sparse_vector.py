"""The sparse vector technique: alarms on a stream of queries, paid for by the alarms alone."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.guarantees import Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import largest_move

if TYPE_CHECKING:
    from sfumato.noise import Words
    from sfumato.noise.sampler import AnyIntArray

__all__ = ["AlarmReading", "SparseVector", "Watch"]

ROOM = 2**60  # a number within it, with noise within it, and the difference of two such, fit 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReading:
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
    def law(self) -> Unstated:
        """A choice has no margin of error."""
        return Unstated()

    @property
    def event(self) -> events.Stated:
        """What happens to the privacy of a unit within the sensitivity."""
        return self.loss(self.sensitivity)

    def loss(self, moved: Sensitivity | int) -> events.Stated:
        """The event for a unit that moves each query by at most ``moved``, a whole number or an linf bound."""
        share = largest_move(moved) / self.sensitivity
        return events.Stated(guarantee=Pure(epsilon=share * (self.first + self.alarms * self.each)))

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the threshold's noise."""
        return self.sensitivity / self.first

    @property
    def query_scale(self) -> Fraction:
        """The scale of each query's noise."""
        return (1 if self.monotone else 2) * self.sensitivity / self.each

    def watch(self, threshold: int, *, words: "Words | None" = None, state: tuple[int, int] | None = None) -> "Watch":
        """Draw the threshold's noise and start; the watch belongs behind a gate, for it is shown exact values.

        With the ``state`` of another watch, go on from it: its threshold, with the noise that it has.
        """
        from sfumato.noise import SystemWords

        return Watch(self, threshold, SystemWords() if words is None else words, state)


class Watch:
    """A running sparse vector; sensitive: the noisy threshold inside. After the last alarm it refuses for good.

    The noisy numbers stay in arrays, since the time that Python takes to compare whole numbers tells small ones from
    large ones. What leaves is the reading.
    """

    __slots__ = ("_left", "_level", "_mechanism", "_words")

    def __init__(
        self, mechanism: SparseVector, threshold: int, words: "Words", state: tuple[int, int] | None = None
    ) -> None:
        _whole(threshold, "threshold")
        self._mechanism = mechanism
        self._words = words
        if state is None:
            self._left = mechanism.alarms
            self._level = self._noisy(threshold, mechanism.threshold_scale)
        else:
            self._left = natural(state[0], "alarms left", least=0, most=mechanism.alarms)
            self._level = _array(state[1], 2 * ROOM)

    @property
    def left(self) -> int:
        """How many alarms may still be raised. Public."""
        return self._left

    @property
    def state(self) -> tuple[int, int]:
        """The alarms left and the noisy threshold: all that is needed to go on. Sensitive."""
        return self._left, int(self._level[0])

    def check(self, value: int) -> AlarmReading:
        """Compare one exact query answer; the reading is public, the value is not."""
        if self._left == 0:
            raise Refused(
                "this watch has raised all its alarms and says nothing more. Open a new one, with a new budget."
            )
        _whole(value, "value")
        gap = self._noisy(value, self._mechanism.query_scale) - self._level
        if not (gap >= 0).all():
            return AlarmReading(alarm=False, gap=None)
        self._left -= 1
        return AlarmReading(alarm=True, gap=int(gap[0]))

    def _noisy(self, exact: int, scale: Fraction) -> "AnyIntArray":
        """A number and fresh noise, in an array of one: of 64 bits where differences fit, else of Python's own."""
        import numpy as np

        from sfumato.noise import sample_discrete_laplace
        from sfumato.noise.sums import wide

        return np.asarray(_array(exact, ROOM) + wide(sample_discrete_laplace(scale, 1, self._words), 4))


def _array(number: int, room: int) -> "AnyIntArray":
    """A whole number in an array of one."""
    import numpy as np

    return np.array([number], dtype=np.int64 if -room <= number <= room else object)


def _whole(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"the {name} of a watch must be a whole number; nothing was drawn.")
