"""Rows spread over the splines of some numbers, by group: what regressions with numeric covariates are fitted to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, cut_by
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression, Named, written
from sfumato.engines.lattice import Lattice
from sfumato.engines.spline_counts import HEIGHT
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise
from sfumato.studies.regression.splines import OUTCOME, STEPS, SplineBasis
from sfumato.tables import describe_splines
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Move, Reach, contribution, joint_reach
from sfumato.tables.grouping import cells_of, check_grouping, check_size
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.persons import Step

__all__ = ["SplineCounts"]

MOST_NUMBERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SplineCounts:
    """Complete rows in each cell of the product of ``by``, spread over the products of the splines of ``numbers``.

    Each number is held to its public range and spread over cubic splines of ``pieces`` equal pieces of it; an
    ``outcome`` over the three splines of degree 2 of its range, which tell its count, sum and squares. Splines are not
    negative and add up to 1: a row is one row in all, however many numbers there are.

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector for one unit; brute-forced over neighbours.
    Assumes: the limit is enforced by the engine for this very grouping, row by row. Rows in which a value is missing,
    or whose key is not declared, do not count. Public: every field. Proof: docs/proofs/regression.md
    """

    KIND: ClassVar[str] = "query.spline_counts"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    numbers: tuple[Clamped, ...]
    pieces: int
    outcome: Clamped | None = None
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        natural(self.pieces, "pieces", most=64)
        held = self.spread
        if not held or len(self.numbers) > MOST_NUMBERS:
            raise InvalidInput(
                f"rows are spread over 1 to {MOST_NUMBERS} numbers, and {len(self.numbers)} were given: each of them "
                "multiplies how many sums there are, and the noise with them. Nothing was done."
            )
        columns = [*map(name_of, held), *(keys.column for keys in self.by)]
        if len(set(columns)) != len(columns):
            raise InvalidInput(
                f"the outcome and the covariates must be different columns, and were {', '.join(columns)}; nothing was "
                "done."
            )
        check_grouping(self.by, self.names)
        if set(self.names) & set(columns):
            raise InvalidInput("a column must not be called rows here, which names the answer; nothing was done.")
        check_size(self.size)

    @property
    def spread(self) -> tuple[Clamped, ...]:
        """The values that rows are spread over, the outcome last."""
        return (*self.numbers, *(() if self.outcome is None else (self.outcome,)))

    @property
    def bases(self) -> tuple[SplineBasis, ...]:
        """The splines of each of them."""
        cubic = (SplineBasis(pieces=self.pieces),) * len(self.numbers)
        return (*cubic, *(() if self.outcome is None else (SplineBasis(pieces=1, degree=OUTCOME),)))

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """Where each of them is rounded to before it is spread."""
        return tuple(Lattice(value=of.value, low=of.low, high=of.high, steps=STEPS) for of in self.spread)

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return cells_of(self.by)

    @property
    def size(self) -> int:
        """One number for each group and product of splines."""
        return self.cells * prod(basis.size for basis in self.bases)

    @property
    def measure(self) -> None:
        """The column is computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("rows",)

    @property
    def row_height(self) -> int:
        """By how much one row moves the numbers that are drawn."""
        return HEIGHT

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, and for each number which of its splines it is, from the low bound on."""
        columns = [*(keys.column for keys in self.by), *map(name_of, self.spread)]
        parts: list[Sequence[KeyValue]] = [keys.labels for keys in self.by]
        parts += [range(1, basis.size + 1) for basis in self.bases]
        cells = list(product(*parts))
        return {column: [cell[place] for cell in cells] for place, column in enumerate(columns)}

    @property
    def reach(self) -> Reach:
        """How far one row moves the numbers of its group: they are not negative and add up to at most one row."""
        alone = Move(l1=HEIGHT, l2_squared=HEIGHT**2, linf=HEIGHT)
        met = Move(l1=2 * HEIGHT, l2_squared=2 * HEIGHT**2, linf=HEIGHT)
        return Reach(numbers=prod(basis.size for basis in self.bases), alone=alone, met=met)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the numbers."""
        return joint_reach([self.reach], contribution(unit, limit, self.joins), cells=self.cells)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The spread counts, in rows."""
        said, one = release.statement, Fraction(1, HEIGHT)
        forms = [
            LinearCombination(value * one, {Noise(said.identifier, place, said.law): one})
            for place, value in enumerate(said.values)
        ]
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"rows": Figure(forms=tuple(forms), labels=labels, measure="rows", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_splines.splines(said, self.spread, self.by, where=self.where, height=HEIGHT, size=self.size)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count."""
        return cut_by(unit, limit, cells=self.cells, rows=(unit, self.where, self.by, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts, in rows; how many rows there are does not change it."""
        return {"rows": Fraction(law.margin(confidence, numbers=self.size if joint else 1), HEIGHT)}


def name_of(of: Clamped) -> str:
    """The column that a value is, or what it is computed by."""
    return of.value.column if isinstance(of.value, Named) else written(of.value)
