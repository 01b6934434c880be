"""Alarms: the declaration of a watch on a stream, and how far one unit can move what is watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut
from sfumato.core.description import Description
from sfumato.core.exact import Exact, natural
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput, Unsupported
from sfumato.inference.derived import Derived
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.streams.describe import alarms, cut_steps
from sfumato.streams.protected import check_protected

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["WATCHED", "AlarmColumn", "Alarms"]

WATCHED = ("step", "total", "cusum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """At which steps a watched number reaches ``threshold``, both blurred; after ``alarms`` of them it halts for good.

    ``watched`` is the number of a ``step``, the ``total`` since the last alarm, or the ``cusum`` max(0, s + x − drift),
    which also starts anew at each alarm. It ends after ``horizon`` steps, of which a unit moves at most ``times``, by
    at most ``each``.

    Guarantee: :meth:`sensitivity` bounds the move of every number that is watched; brute-forced over neighbours.
    Assumes: one event counts by at most ``each`` in one step; of persons, the stream enforces it. Public: every field.
    Proof: docs/proofs/streams.md
    """

    KIND: ClassVar[str] = "query.alarms"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.sparse_vector",)
    dataset: Dataset
    watched: str
    threshold: int
    drift: int
    alarms: int
    horizon: int
    told: int
    lower: int
    upper: int
    each: int
    times: int
    separation: int

    def __post_init__(self) -> None:
        if self.watched not in WATCHED:
            raise InvalidInput(f"what is watched is one of {', '.join(WATCHED)}; nothing was done.")
        for name in ("threshold", "drift", "lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**40:
                raise InvalidInput(f"the {name} of an alarm is a whole number up to 2^40; nothing was done.")
        if not self.lower <= 0 < self.upper:
            raise InvalidInput("the bounds of a step hold 0 and something above it; nothing was done.")
        natural(self.alarms, "alarms", most=10**6)
        natural(self.horizon, "horizon", most=2**40)
        natural(self.told, "told", least=0, most=self.horizon)
        natural(self.each, "each", most=self.upper - self.lower)
        natural(self.times, "times", most=self.horizon)
        natural(self.separation, "separation")

    @property
    def size(self) -> None:
        """As many numbers as there were alarms."""
        return

    @property
    def measure(self) -> None:
        """None: there are two columns."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The step of each alarm, and by how much the noisy sides differed."""
        return ("step", "gap")

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """None: the steps are part of the answer."""
        return {}

    def columns(self, release: "Release") -> "Mapping[str, AlarmColumn]":
        """Steps and gaps of the alarms."""
        values = release.statement.values
        pairs = {"step": values[::2], "gap": values[1::2]}
        return {
            name: AlarmColumn(numbers=part, measure=name, labels={}, sources=(release,)) for name, part in pairs.items()
        }

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        given = {"drift": self.drift, "threshold": self.threshold, "most": self.alarms}
        return alarms(self, said, watched=self.watched, **given)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """What a person does beyond the limit is left out."""
        return cut_steps(unit, limit)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """An alarm has no margin."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves each number that is watched: by ``each`` in a step, times·each in sums of steps.

        >>> from sfumato.core.units import event
        >>> watch = Alarms(dataset=Dataset(name="er", edition="1"), watched="step", threshold=9, drift=0, alarms=1,
        ...                horizon=60, told=0, lower=0, upper=99, each=1, times=1, separation=1)
        >>> watch.sensitivity(event(relation="add/remove"), None).linf
        LInf(value=Fraction(1, 1))
        """
        check_protected(self, unit, limit)
        return Sensitivity.of(linf=self.each if self.watched == "step" else self.each * self.times)

    def monotone(self, unit: Unit) -> bool:
        """Whether a unit moves everything that is watched in one direction."""
        return unit.relation is Relation.ADD_REMOVE and self.lower >= 0

    def mechanism(self, unit: Unit, limit: Limit | None, spend: Budget) -> SparseVector:
        """The sparse vector technique at the whole ε of a spend."""
        moved = self.sensitivity(unit, limit).linf
        if moved is None or spend.delta:
            raise InvalidInput("alarms are paid for with ε alone; nothing was read and nothing was spent. Leave δ out.")
        return SparseVector.calibrated(
            sensitivity=int(moved.value), alarms=self.alarms, epsilon=spend.epsilon, monotone=self.monotone(unit)
        )

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this watch and a unit, if anything."""
        if type(mechanism) is not SparseVector:
            return "must be the sparse vector technique"
        if mechanism.monotone and not self.monotone(unit):
            return "must not count on moves in one direction"
        if mechanism.alarms != self.alarms:
            return f"must halt after {self.alarms} alarms"
        return None

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with an answer, if anything."""
        problem = self.mismatch(mechanism, unit)
        if problem is not None:
            return problem
        steps, gaps = values[::2], values[1::2]
        if len(steps) != len(gaps) or len(steps) > self.alarms or any(gap < 0 for gap in gaps):
            return "must have raised no more alarms than it may, each with its gap"
        if list(steps) != sorted(set(steps)) or not all(1 <= step <= self.told for step in steps):
            return "must have raised its alarms at different steps that were released"
        return None

    def moved_on(self, held: int, value: int) -> int:
        """What is watched after a step of ``value``, from what was held before it. Sensitive."""
        match self.watched:
            case "step":
                return value
            case "total":
                return held + value
        return max(0, held + value - self.drift)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AlarmColumn(Derived):
    """Numbers that were chosen and have no interval."""

    measured: ClassVar[bool] = False
    numbers: tuple[int, ...]
    measure: str
    labels: Mapping[str, tuple[str | int | bool, ...]]
    sources: "tuple[Release, ...]"

    @property
    def values(self) -> tuple[int, ...]:
        """The numbers."""
        return self.numbers

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Refused: an alarm is a choice."""
        raise Unsupported("an alarm is a choice, not a number with added noise: it has no margin of error.")
