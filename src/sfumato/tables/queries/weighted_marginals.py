"""Several contingency tables of the same rows, for one charge, each as exact as its weight says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
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
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe_marginals
from sfumato.tables.contribution import Move, Reach, contribution, joint_reach
from sfumato.tables.grouping import check_grouping, check_size
from sfumato.tables.keys import Keys
from sfumato.tables.persons import Step

__all__ = ["MISSING", "WeightedMarginals"]

MISSING = "missing"
MOST_WEIGHT = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMarginals:
    """How many rows lie in each cell of each of several tables, every count multiplied by the weight of its table.

    ``tables`` name places in ``by``. Noise of one size on all numbers is noise of size σ/weight on the rows of a table:
    one charge, and more exact counts where the weight is larger. Columns that ``missing`` names have one cell more, for
    rows without a declared value; rows without one in another column do not count in any table.

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector for one unit; brute-forced over neighbours, and
    attained. Assumes: the engine lets at most as many rows of a person count as the limit has in all, the same rows in
    every table; they may all lie in one cell. Public: every field. Proof: docs/proofs/synthesis.md
    """

    KIND: ClassVar[str] = "query.weighted_marginals"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    by: tuple[Keys, ...]
    tables: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    missing: tuple[str, ...] = ()
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        check_grouping(self.by, self.names)
        columns = [keys.column for keys in self.by]
        places = range(len(columns))
        if (
            not self.tables
            or len(set(self.tables)) != len(self.tables)
            or any(not some or list(some) != sorted(set(some)) or some[-1] not in places for some in self.tables)
            or any(some[0] not in places for some in self.tables)
        ):
            raise InvalidInput(
                "marginals are of different lists of columns, none of them empty, each in the order of the columns; "
                "nothing was done."
            )
        if len(self.weights) != len(self.tables) or any(
            isinstance(weight, bool) or not 1 <= weight <= MOST_WEIGHT for weight in self.weights
        ):
            raise InvalidInput(
                f"each marginal needs a weight, a whole number from 1 to {MOST_WEIGHT:,}; nothing was done."
            )
        unknown = [name for name in self.missing if name not in columns]
        if unknown or len(set(self.missing)) != len(self.missing) or any(keys.other is not None for keys in self.by):
            raise InvalidInput(
                "missing names different columns of the marginals, which have no other rest; nothing was done."
            )
        check_size(self.size)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(keys.size + (keys.column in self.missing) for keys in self.by)

    @property
    def cells(self) -> tuple[int, ...]:
        """How many cells each table has."""
        return tuple(prod(self.sizes[place] for place in some) for some in self.tables)

    @property
    def size(self) -> int:
        """The cells of all tables."""
        return sum(self.cells)

    @property
    def measure(self) -> None:
        """The column is computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("count",)

    @property
    def row_height(self) -> int:
        """By how much one row moves the numbers of the table with the least weight, whose noise is largest."""
        return min(self.weights)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Which table a number belongs to, and which cell of it."""
        labels = [(*keys.labels, *((MISSING,) if keys.column in self.missing else ())) for keys in self.by]
        found: dict[str, list[str]] = {"marginal": [], "cell": []}
        for some, cells in zip(self.tables, self.cells, strict=True):
            found["marginal"] += [self.name_of(some)] * cells
            found["cell"] += [" · ".join(map(str, cell)) for cell in product(*(labels[place] for place in some))]
        return found

    def name_of(self, table: Sequence[int]) -> str:
        """The columns of a table as one text."""
        return " × ".join(self.by[place].column for place in table)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move all numbers together."""
        given = contribution(unit, limit, self.joins)
        rows = given.groups * given.rows
        in_one, apart = (replace(given, groups=groups, rows=rows // groups) for groups in (1, rows))
        moves = []
        for weight, cells in zip(self.weights, self.cells, strict=True):
            reach = _reach(weight)
            furthest = joint_reach([reach], in_one, cells=cells)
            moves.append(replace(furthest, l0=joint_reach([reach], apart, cells=cells).l0))
        return Sensitivity.joint(moves)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts in rows; ``at(marginal=…)`` picks a table."""
        said = release.statement
        weights = (weight for weight, cells in zip(self.weights, self.cells, strict=True) for _ in range(cells))
        forms = [
            LinearCombination(Fraction(value, weight), {Noise(said.identifier, place, said.law): Fraction(1, weight)})
            for place, (value, weight) in enumerate(zip(said.values, weights, strict=True))
        ]
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"count": Figure(forms=tuple(forms), labels=labels, measure="count", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_marginals.marginals(
            said,
            tuple(keys.column for keys in self.by),
            tables=len(self.tables),
            height=self.row_height,
            size=self.size,
            where=self.where,
        )

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count, the same in every table."""
        held = None if limit is None else Limit(groups=1, rows_per_group=limit.rows).in_words_of(limit)
        return cut_by(unit, held, cells=1, rows=(unit, self.where, self.by, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts of the table with the least weight, in rows."""
        return {"count": Fraction(law.margin(confidence, numbers=self.size if joint else 1), self.row_height)}

    def answers(self, values: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int, Sequence[int]]]:
        """Each table with its weight and its numbers."""
        start = 0
        for some, weight, cells in zip(self.tables, self.weights, self.cells, strict=True):
            yield some, weight, values[start : start + cells]
            start += cells


def _reach(weight: int) -> Reach:
    moved = Move(l1=weight, l2_squared=weight**2, linf=weight)
    return Reach(numbers=1, alone=moved, met=moved)
