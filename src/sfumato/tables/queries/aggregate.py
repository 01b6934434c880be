"""Several measures of the rows of a table, in all or by group over public keys, from one scan and for one charge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, cut_by, person_word
from sfumato.core.description import Description, phrase
from sfumato.core.exact import natural
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.engines.expressions import Expression
from sfumato.engines.sufficient_statistics import Histogram, Persons, RowIndicator
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.derived import Derived, level_of
from sfumato.inference.linear_combination import LinearCombination
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe
from sfumato.tables.contribution import contribution, joint_reach
from sfumato.tables.error_preview import ErrorPreview
from sfumato.tables.estimators import Reader
from sfumato.tables.grouping import cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.measure import Measure
from sfumato.tables.persons import Step
from sfumato.tables.statistic_plan import Block, blocks_of

if TYPE_CHECKING:
    from sfumato.studies.batches import BatchComparison

__all__ = ["Aggregate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Measures of the rows that meet ``where``, in each cell of the product of ``by`` (one cell if there are no keys).

    What is protected is one vector of whole numbers, off which all measures are read
    (:mod:`sfumato.tables.statistic_plan`). ``number`` is the public number of units, each of which counts exactly once.

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector for one unit; brute-forced over neighbours.
    Assumes: the limit is enforced by the engine for this very grouping; rows whose key is not declared, or whose person
    is not told, do not count. Public: every field. Proof: docs/proofs/bounded_totals.md
    """

    KIND: ClassVar[str] = "query.aggregate"
    VERSION: ClassVar[int] = 1
    COMPARED: ClassVar[str] = "comparison.measures"
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    measures: tuple[Measure, ...]
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    number: int | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if not self.measures:
            raise InvalidInput("agg(...) needs at least one measure, such as n=sf.count(); nothing was done.")
        check_grouping(self.by, self.names)
        if self.number is not None:
            natural(self.number, "number")
        if self.number is not None and (self.by or self.joins or self.where is not None):
            raise InvalidInput(
                "a public number says nothing about groups, about some rows or about what a join leaves; nothing was "
                "done."
            )
        check_size(self.size)

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return cells_of(self.by)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What is added up so that all measures can be read off it."""
        return blocks_of(self.measures, number=self.number)

    @property
    def row_height(self) -> int:
        """By how much one row moves the numbers that are drawn: many steps where values are measured."""
        return max(int(block.reach.alone.linf) for block in self.blocks)

    @property
    def keeps_rows(self) -> bool:
        """Whether rows above a limit are left out; where values are added up, a person's sums are scaled down."""
        return all(isinstance(block.gauge, RowIndicator | Persons | Histogram) for block in self.blocks)

    @property
    def size(self) -> int:
        """How many numbers are protected: those of all blocks in all cells."""
        return self.cells * sum(block.reach.numbers for block in self.blocks)

    @property
    def measure(self) -> None:
        """The columns are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(measure.name for measure in self.measures)

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, in the order of the cells."""
        return labels_of(self.by)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the numbers."""
        given = contribution(unit, limit, self.joins)
        if self.number is not None and (given.relation is not Relation.REPLACE or (given.groups, given.rows) != (1, 1)):
            raise Refused(
                "a public number of units can be used under replace alone, and where every unit counts as one row: "
                "limit=sf.Limit(groups=1, rows_per_group=1). Nothing was done."
            )
        return joint_reach([block.reach for block in self.blocks], given, cells=self.cells)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The measures as figures with intervals, by name."""
        reader = self._read(release)
        return {measure.name: measure.estimate(reader) for measure in self.measures}

    def batch_comparison(self, release: Release) -> "BatchComparison | None":
        """What an answer says about batches, where that was asked: an evidence pack shows it."""
        reader = self._read(release)
        return next((made for each in self.measures if (made := each.batch_comparison(reader)) is not None), None)

    def _read(self, release: Release) -> Reader:
        said = release.statement
        return self._reader(said.values, law=said.law, identifier=said.identifier, sources=(release,))

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """As many numbers as are asked for, and measures that are what they say of themselves."""
        yield from check_numbers(self, said)
        for place, measure in enumerate(self.measures):
            problem = measure.misplaced(self.by, self.joins)
            if problem is not None:
                yield Finding(field=f"statement.query.measures[{place}]", problem=problem)

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        binned = any(isinstance(block.gauge, Histogram) for block in self.blocks)
        return describe.aggregate(
            said,
            self.measures,
            by=self.by,
            where=self.where,
            number=self.number,
            kept=binned and self.keeps_rows,
            kept_beside=binned and not self.keeps_rows and said.limit is not None,
        )

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """What a person has above the limit is left out or scaled down; persons who are counted are not cut by rows."""
        rows = (unit, self.where, self.by, self.joins)
        if self.number is not None:
            return LimitCut(words=phrase("cut.mean", person=person_word(unit, limit)) if limit else None, rows=rows)
        persons = all(block.reach.once for block in self.blocks)
        counted = None if persons else "row" if self.keeps_rows else "worth"
        return cut_by(unit, limit, cells=self.cells, counted=counted, rows=rows)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin to expect of each measure, in groups of ``rows`` rows; without rows, of those that need none."""
        level = level_of(confidence, [LinearCombination(Fraction(0), {})] * (self.cells if joint else 1))
        return self._foreseen(law, level, rows, squared=False)

    def expected_mse(self, law: Law, *, rows: int | None) -> Mapping[str, Fraction]:
        """The mean squared error to expect of each measure, as :meth:`expected` has its margin."""
        return self._foreseen(law, Fraction(1, 2), rows, squared=True)

    def _foreseen(self, law: Law, level: Fraction, rows: int | None, *, squared: bool) -> Mapping[str, Fraction]:
        known, public = rows if self.number is None else self.number, self.number is not None
        preview = ErrorPreview(blocks=self.blocks, law=law, level=level, rows=known, public=public, squared=squared)
        errors = {measure.name: measure.margin(preview) for measure in self.measures}
        return {name: error for name, error in errors.items() if error is not None}

    def _reader(self, values: Sequence[int], *, law: Law, identifier: str, sources: tuple[Release, ...]) -> Reader:
        return Reader(
            blocks=self.blocks,
            cells=self.cells,
            number=self.number,
            identifier=identifier,
            law=law,
            values=values,
            labels={name: tuple(column) for name, column in self.labels().items()},
            sources=sources,
        )
