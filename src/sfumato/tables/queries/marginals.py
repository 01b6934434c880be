"""Several contingency tables of the same rows, for one charge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, cut_by
from sfumato.core.description import Description
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe
from sfumato.tables.contribution import contribution, joint_reach
from sfumato.tables.grouping import cells_of, check_grouping, check_size
from sfumato.tables.keys import Keys
from sfumato.tables.persons import Step
from sfumato.tables.queries.count import ONE_ROW

__all__ = ["Marginals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """How many rows meet ``where`` in each cell of each of several products of keys.

    Guarantee: a unit moves every table by what it moves one of them, and the moves add up; the limit is enforced for
    each table by itself. Assumes: as for a count. Public: every field. Proof: docs/proofs/bounded_totals.md
    """

    KIND: ClassVar[str] = "query.marginals"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    dataset: Dataset
    tables: tuple[tuple[Keys, ...], ...]
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        names = [_name(by) for by in self.tables]
        if not names or len(set(names)) != len(names) or not all(self.tables):
            raise InvalidInput("marginals are of different lists of columns, none of them empty; nothing was done.")
        for by in self.tables:
            check_grouping(by, self.names)
        check_size(self.size)

    @property
    def size(self) -> int:
        """The cells of all tables."""
        return sum(cells_of(by) for by in self.tables)

    @property
    def measure(self) -> str:
        """The name of the value column."""
        return "count"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Which table a number belongs to, and which cell of it."""
        tables = [_name(by) for by in self.tables for _ in range(cells_of(by))]
        cells = [" · ".join(map(str, cell)) for by in self.tables for cell in product(*(keys.labels for keys in by))]
        return {"marginal": tables, "cell": cells}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the counts of all tables together."""
        given = contribution(unit, limit, self.joins)
        return Sensitivity.joint(joint_reach([ONE_ROW], given, cells=cells_of(by)) for by in self.tables)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise or another, whichever is smallest."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts as a figure; ``at(marginal=…)`` picks a table."""
        return {self.measure: figure(release)}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        columns = (", ".join(dict.fromkeys(map(str, self.labels()["marginal"]))),)
        return describe.counts(said, columns, where=self.where, rest=False)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count, in each table by itself."""
        cells = max(cells_of(by) for by in self.tables)
        return cut_by(unit, limit, cells=cells, rows=(unit, self.where, self.tables, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts; how many rows there are does not change it."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}


def _name(by: Sequence[Keys]) -> str:
    return " × ".join(keys.column for keys in by)
