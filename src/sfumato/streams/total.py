"""Running totals: the declaration of what a stream releases, and how far one unit can move its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.choice import strategy_for
from sfumato.streams.describe import cut_steps, running_total
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.protected import check_protected

if TYPE_CHECKING:
    from sfumato.core.release import Release
    from sfumato.streams.series import Series

__all__ = ["RunningTotal"]

FARTHEST = 2**40
WIDEST = 2**55  # noise beyond 2^61 has a chance below e^−64 then, and measurements stay below that


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTotal:
    """The total of a stream after each of ``horizon`` steps, of whole numbers held to ``lower`` … ``upper``.

    A unit moves at most ``times`` steps, at least ``separation`` apart, each by at most ``each``. For an event unit
    with ``times`` = w these are the events of any w steps in a row, one in each. ``groups`` are public names;
    then every step has one number for each. ``told`` is how many steps were released before the stream was closed;
    without ``kept`` its certificate states the guarantee and holds none of them.

    Guarantee: :meth:`sensitivity` bounds the move of the steps for one unit; brute-forced over neighbours. Assumes: one
    event counts by at most ``each`` in one step; of persons, the stream itself enforces it. Public: every field.
    Proof: docs/proofs/streams.md
    """

    KIND: ClassVar[str] = "query.running_total"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.series",)
    dataset: Dataset
    horizon: int
    told: int
    lower: int
    upper: int
    each: int
    times: int
    separation: int
    groups: tuple[str, ...]
    kept: bool = True

    def __post_init__(self) -> None:
        natural(self.horizon, "horizon", most=FARTHEST)
        natural(self.told, "told", least=0, most=self.horizon)
        natural(self.times, "times", most=self.horizon)
        natural(self.separation, "separation")
        for bound in (self.lower, self.upper):
            if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) > FARTHEST:
                raise InvalidInput(f"the bounds of a step are whole numbers up to {FARTHEST:,}; nothing was done.")
        if not self.lower <= 0 < self.upper:
            raise InvalidInput("the bounds of a step hold 0 and something above it; nothing was done.")
        if natural(self.each, "each") > self.upper - self.lower:
            raise InvalidInput(
                f"max_per_event = {self.each} is more than the bounds of a step, {self.lower} to {self.upper}, let "
                "through; nothing was done."
            )
        if len(set(self.groups)) != len(self.groups) or len(self.groups) > 2**16:
            raise InvalidInput("the groups of a stream are different names; nothing was done.")

    @property
    def largest(self) -> int:
        """The largest size of a step."""
        return max(self.upper, -self.lower)

    @property
    def size(self) -> None:
        """The strategy says how many numbers a step makes: see :meth:`misfit`."""
        return

    @property
    def measure(self) -> None:
        """None: totals are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("total",)

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """The steps that were released, and their groups."""
        steps = range(1, self.told + 1 if self.kept else 1)
        if not self.groups:
            return {"step": tuple(steps)}
        return {
            "step": tuple(step for step in steps for _ in self.groups),
            "group": tuple(group for _ in steps for group in self.groups),
        }

    def columns(self, release: "Release") -> "Mapping[str, Series]":
        """The totals with their intervals."""
        from sfumato.streams.series import Series

        told = self.told if self.kept else 0
        return {"total": Series.of(release, told=told, groups=max(1, len(self.groups)))}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return running_total(self, said, horizon=self.horizon, groups=self.groups, kept=self.kept)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """What a person does beyond the limit is left out."""
        return cut_steps(unit, limit)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """Not given by the distribution of one measurement."""
        return {}

    def pattern(self, unit: Unit) -> Pattern:
        """At which steps one unit can count."""
        return Pattern.of(unit.relation, times=self.times, separation=self.separation)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit moves the steps of the stream (not its totals): times·each in l1, √times·each in l2.

        >>> from sfumato.core.units import event
        >>> total = RunningTotal(dataset=Dataset(name="er", edition="1"), horizon=4, told=4, lower=0, upper=9, each=1,
        ...                      times=1, separation=1, groups=())
        >>> total.sensitivity(event(relation="replace"), None).l2
        L2(squared=Fraction(2, 1))
        """
        check_protected(self, unit, limit)
        swap = 1 if unit.relation is Relation.ADD_REMOVE else 2
        steps = swap * self.times
        return Sensitivity.of(l0=steps, l1=steps * self.each, l2_squared=steps * self.each**2, linf=self.each)

    def mechanism(
        self, unit: Unit, spend: Budget, strategy: str, *, unknown: bool = False, reading: int | None = None
    ) -> SeriesNoise:
        """Noise of the least mean squared error that a spend allows, or that of a named strategy.

        ``unknown`` says that nobody knows how many of the steps will come; ``reading`` that sums of that many steps
        in a row will be read, and not totals from the start.
        """
        pattern = self.pattern(unit)
        chosen = strategy_for(
            strategy,
            horizon=self.horizon,
            pattern=pattern,
            largest=self.largest,
            pure=spend.delta == 0,
            unknown=unknown,
            reading=reading,
        )
        from sfumato.streams.strategy_encoder import check_room

        if not check_room(chosen, self.largest):
            raise InvalidInput(
                "these bounds and this horizon leave no room in 64 bits; nothing was done. Narrow the bounds."
            )
        return SeriesNoise.calibrated(chosen, pattern, each=self.each, spend=spend)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this stream and a unit, if anything."""
        if type(mechanism) is not SeriesNoise:
            return "must be the noise of a series"
        if mechanism.strategy.horizon != self.horizon:
            return f"must be for {self.horizon} steps"
        if mechanism.pattern != self.pattern(unit):
            return "must be for the pattern in which a unit counts"
        if getattr(mechanism.strategy, "largest", self.largest) != self.largest:
            return "must be for steps as large as the bounds of the query"
        if mechanism.noise >= WIDEST:
            return "must have noise that leaves room in 64 bits: narrower bounds, or more ε"
        return None

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with an answer, if anything: a mechanism for another stream, or too few numbers."""
        problem = self.mismatch(mechanism, unit)
        if problem is not None or not isinstance(mechanism, SeriesNoise):
            return problem
        tree = mechanism.strategy if isinstance(mechanism.strategy, Tree) else None
        wanted = (self.told if tree is None else tree.numbers_after(self.told)) * max(1, len(self.groups))
        wanted = wanted if self.kept else 0
        return None if len(values) == wanted else f"must have released {wanted} numbers in {self.told} steps"
