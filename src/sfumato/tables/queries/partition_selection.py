"""Private key discovery (partition selection): which values enough people share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, person_word
from sfumato.core.description import Counted, Description, phrase
from sfumato.core.finding import Finding
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release, interval_names
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.inference.derived import Derived
from sfumato.inference.selected_values import SelectedValues
from sfumato.inference.thresholded_counts import ThresholdedCounts
from sfumato.mechanisms import NoisyThreshold, OptimalSelection
from sfumato.tables import describe
from sfumato.tables.contribution import contribution
from sfumato.tables.keys import KeyValue
from sfumato.tables.persons import Step

__all__ = ["PartitionSelection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    """Private key discovery: the values (or combinations of values) of some columns that enough persons have.

    With ``counted`` the answer says how many persons have each, as a noisy threshold does; without, it names the keys
    alone, and more of them are let through. What is found may then be declared as keys: it is public.

    Guarantee: :meth:`sensitivity` bounds how many keys one unit moves, each by one person; needs a δ. Assumes: at most
    ``groups`` keys of a person are kept by the engine. Public: every field.
    """

    KIND: ClassVar[str] = "query.found_keys"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.noisy_threshold", "mechanism.optimal_selection")
    dataset: Dataset
    over: tuple[str, ...]
    counted: bool = True
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        taken = {"persons", *interval_names("persons")}
        if not self.over or len(set(self.over)) != len(self.over) or taken & set(self.over):
            raise InvalidInput(
                "keys are found in one column or several different ones, none of them called persons, persons_data_low "
                "or persons_data_high, which the answer has; nothing was done."
            )

    @property
    def size(self) -> None:
        """The answer itself says how many keys were selected."""
        return

    @property
    def measure(self) -> None:
        """The columns are the keys, and the persons who have them."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The key columns, and ``persons`` where they are counted."""
        return (*self.over, "persons") if self.counted else self.over

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """No key is public before the answer."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How many keys one unit, held to ``limit``, can move, and by how many persons each."""
        given = contribution(unit, limit, self.joins)
        keys = given.groups * given.members * (2 if given.relation is Relation.REPLACE else 1)
        return Sensitivity.of(l0=keys, l1=keys, linf=given.members)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """A threshold on noisy counts, or the selection of most keys where they are not counted."""
        if spend.delta == 0:
            raise NotDeclared(
                "private key discovery needs a δ: with some small probability a key of one "
                "person alone is shown. Nothing was done. Say release(epsilon=…, delta=1e-9)."
            )
        keys = moved.l0.count if moved.l0 is not None else 0
        if self.counted:
            most = int(moved.linf.value) if moved.linf is not None else 0
            return NoisyThreshold.calibrated(keys=keys, most=most, epsilon=spend.epsilon, delta=spend.delta)
        if moved.linf is not None and moved.linf.value > 1:
            raise Refused(
                "keys without their counts are found where a unit adds one person to each: a family adds more. "
                "Nothing was done. Say find_keys(..., counted=True)."
            )
        return OptimalSelection.calibrated(keys=keys, epsilon=spend.epsilon, delta=spend.delta)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The keys that were found, and how many persons have each."""
        said = release.statement
        keys = {column: tuple(key[place] for key in said.found) for place, column in enumerate(self.over)}
        found: dict[str, Derived] = {
            column: SelectedValues(chosen=values, labels={}, measure=column, sources=(release,))
            for column, values in keys.items()
        }
        if self.counted:
            assert isinstance(said.mechanism, NoisyThreshold)  # noqa: S101 - for the reader of types
            found["persons"] = ThresholdedCounts(
                counts=said.values,
                scale=said.mechanism.scale,
                threshold=said.mechanism.threshold,
                labels=keys,
                measure="persons",
                sources=(release,),
            )
        return found

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe.partition_selection(said, self.over, where=self.where)

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """Different keys, each with a count above the threshold where they are counted."""
        keys = said.found
        if not all(len(key) == len(self.over) for key in keys) or len(set(keys)) != len(keys):
            yield Finding(field="statement.found", problem="must hold different keys, one part for each column")
        if len(said.values) != (len(keys) if self.counted else 0):
            yield Finding(field="statement.values", problem="must hold one number for each key that was counted")
        wanted = NoisyThreshold if self.counted else OptimalSelection
        if type(said.mechanism) is not wanted:
            yield Finding(field="statement.mechanism.kind", problem=f"must be {wanted.KIND} for this query")
        if isinstance(said.mechanism, NoisyThreshold) and not all(v >= said.mechanism.threshold for v in said.values):
            yield Finding(field="statement.values", problem="must not lie below the threshold")

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Of each person at most as many keys count as the limit has groups, each of them once."""
        rows = (unit, self.where, self.over, self.joins)
        if limit is None:
            return LimitCut(rows=rows)
        words = phrase("cut.values", values=Counted("value", limit.groups), person=person_word(unit, limit))
        return LimitCut(words=words, cuts=True, rows=rows, most=(limit.groups,))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """Which keys are found depends on the data."""
        return {}
