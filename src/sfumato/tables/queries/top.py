"""The largest groups of public keys: which they are, and in which order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, cut_by
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms import TopChoice
from sfumato.tables import describe
from sfumato.tables.contribution import contribution, joint_reach
from sfumato.tables.grouping import cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.persons import Step
from sfumato.tables.queries.count import ONE_ROW

__all__ = ["TopGroups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopGroups:
    """The ``choices`` groups of ``by`` with the most rows that meet ``where``: their names, not their counts.

    Guarantee: :meth:`sensitivity` is that of the counts; the names and their order are covered. Assumes: the limit is
    enforced by the engine for this very grouping. Public: every field. Proof: docs/proofs/top.md
    """

    KIND: ClassVar[str] = "query.top"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.top",)
    dataset: Dataset
    by: tuple[Keys, ...]
    choices: int
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidInput("the top is of groups; nothing was done. Say group_by(...) first.")
        check_grouping(self.by, ("place",))
        check_size(self.cells)
        natural(self.choices, "choices", most=self.cells)

    @property
    def cells(self) -> int:
        """How many groups there are to choose from."""
        return cells_of(self.by)

    @property
    def size(self) -> int:
        """One place for each choice."""
        return self.choices

    @property
    def measure(self) -> None:
        """The columns are names."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The key columns."""
        return tuple(keys.column for keys in self.by)

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """First, second, and so on."""
        return {"place": list(range(1, self.choices + 1))}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the counts that are compared."""
        return joint_reach([ONE_ROW], contribution(unit, limit, self.joins), cells=self.cells)

    @staticmethod
    def monotone(unit: Unit) -> bool:
        """Whether a unit moves all counts in one direction."""
        return unit.relation is Relation.ADD_REMOVE

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """One choice after the other; a δ is not used."""
        return TopChoice.calibrated(
            choices=self.choices,
            sensitivity=int(moved.linf.value) if moved.linf is not None else 0,
            epsilon=spend.epsilon,
            monotone=self.monotone(unit),
        )

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The keys of the chosen groups."""
        places = {name: tuple(column) for name, column in self.labels().items()}
        return {
            column: SelectedValues(
                chosen=tuple(values[place] for place in release.statement.values),
                labels=places,
                measure=column,
                sources=(release,),
            )
            for column, values in labels_of(self.by).items()
        }

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe.top_groups(said, self.by, cells=self.cells, where=self.where)

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """Different places of groups that are declared."""
        yield from check_numbers(self, said)
        places = said.values
        if not all(0 <= place < self.cells for place in places) or len(set(places)) != len(places):
            yield Finding(field="statement.values", problem="must be different places of groups that are declared")

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count."""
        return cut_by(unit, limit, cells=self.cells, rows=(unit, self.where, self.by, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A choice has no margin."""
        return {}
