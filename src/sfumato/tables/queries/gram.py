"""The matrix of products of a regression: every sum that a linear model needs, from one scan and for one charge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isqrt
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
from sfumato.engines.expressions import Expression, Named, Term, when, written
from sfumato.engines.lattice import Lattice
from sfumato.engines.row_products import ROOT, RowProduct, RowProducts
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.advisor import least_noise
from sfumato.studies.regression.design import BoundedNumber, CodedFactor, ColumnProduct, Design, product_table
from sfumato.tables import describe_gram
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Move, Reach, contribution, joint_reach
from sfumato.tables.grouping import check_size
from sfumato.tables.keys import Keys
from sfumato.tables.persons import Step

__all__ = ["GramMatrix"]

HEIGHT = ROOT * ROOT
MOST_WIDE = 8  # factors of three levels or more whose levels are told apart in the bound under replace
BETWEEN = "old and new are not far apart in a number and in its square at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class GramMatrix:
    """Sums over complete rows of all products of two of: 1, the columns that the terms make, and the outcome.

    Numbers are held to their public ranges and scaled to [−1, 1]; factors are coded by their public keys, the first of
    which is the reference. A product that follows from others is not asked twice
    (:mod:`sfumato.studies.regression.design`).

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector for one unit, rounding to the lattice included;
    brute-forced over neighbours. Assumes: the limit is enforced by the engine; a person with more complete rows counts
    as the mean of them times the limit. Rows in which a value is missing, or whose key is not declared, do not count.
    Public: every field. Proof: docs/proofs/regression.md
    """

    KIND: ClassVar[str] = "query.gram"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.laplace", "mechanism.gaussian")
    dataset: Dataset
    outcome: Clamped
    terms: tuple[tuple[str, ...], ...]
    numbers: tuple[Clamped, ...] = ()
    factors: tuple[Keys, ...] = ()
    where: Expression | None = None
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        for keys in self.factors:
            if not isinstance(keys.values[0], str | int):
                raise InvalidInput(
                    f"the keys of {keys.column!r} are days, and a factor needs texts, whole numbers or truth values; "
                    "nothing was done."
                )
        check_size(len(product_table(self.design).products))

    @property
    def design(self) -> Design:
        """The columns of the regression."""
        return Design(
            outcome=_number(self.outcome),
            numbers=tuple(map(_number, self.numbers)),
            factors=tuple(CodedFactor(name=keys.column, levels=tuple(map(str, keys.labels))) for keys in self.factors),
            terms=self.terms,
        )

    @property
    def by(self) -> tuple[Keys, ...]:
        """Nothing: all rows are added up together."""
        return ()

    @property
    def products(self) -> tuple[ColumnProduct, ...]:
        """What is added up, the number of rows first."""
        return product_table(self.design).products

    @property
    def size(self) -> int:
        """How many sums there are."""
        return len(self.products)

    @property
    def measure(self) -> None:
        """The column is computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("sum",)

    @property
    def row_height(self) -> int:
        """By how much one row moves the numbers that are drawn."""
        return HEIGHT

    @property
    def gauge(self) -> RowProducts:
        """What is added up of each row."""
        held = [*self.numbers, self.outcome]
        lattices = [Lattice(value=of.value, low=of.low, high=of.high, steps=ROOT) for of in held]
        lattices += [_coded(keys) for keys in self.factors]
        names = [*map(_name, held), *(keys.column for keys in self.factors)]
        at = {name: place for place, name in enumerate(names)}
        return RowProducts(
            lattices=tuple(lattices),
            products=tuple(
                RowProduct(
                    powers=tuple((at[name], power) for name, power in each.powers),
                    signs=tuple(at[name] for name in each.signs),
                    levels=tuple((at[name], level) for name, level in each.levels),
                )
                for each in self.products
            ),
        )

    def labels(self) -> Mapping[str, Sequence[str]]:
        """What each sum is of, in coded columns."""
        return {"product": [each.written for each in self.products]}

    @property
    def reach(self) -> Reach:
        """How far one row moves the sums.

        A row fills one level of each factor, so it moves as many products as a design with one level each has. Where
        another replaces it, a product of squares and indicators moves by 1 at most, others by 2; the number of rows
        and indicators that both fill do not move; a factor whose level differs moves twice the products by 1 each.
        A person's sums that were scaled down are rounded toward 0, which lets each number move by two steps more.
        """
        filled = sum(_within(each, {}) for each in self.products)
        alone = Move(l1=filled * HEIGHT, l2_squared=filled * HEIGHT**2, linf=HEIGHT)
        l1, squares, linf = filled, filled, 1
        wide = [keys.column for keys in self.factors if len(keys.labels) > 2]
        if len(wide) > MOST_WIDE:
            l1, squares, linf, wide = 2 * filled, 4 * filled, 2, []
        for differ in product((False, True), repeat=len(wide)):
            others = {name for name, other in zip(wide, differ, strict=True) if other}
            moves = [_moved(each, others) for each in self.products]
            l1 = max(l1, min(sum(moves), 2 * filled))
            squares = max(squares, min(sum(move**2 for move in moves), 4 * filled))
            linf = max(linf, *moves)
        size, more = self.size, 2
        met = Move(
            l1=l1 * HEIGHT + more * size,
            l2_squared=squares * HEIGHT**2 + 2 * more * (isqrt(squares * size) + 1) * HEIGHT + more**2 * size,
            linf=linf * HEIGHT + more,
        )
        return Reach(numbers=size, alone=alone, met=met, loose=BETWEEN)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the sums."""
        given = contribution(unit, limit, self.joins)
        return joint_reach([self.reach], given, cells=1)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise, whichever is smaller."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The sums in rows: a row in which all coded values are 1 brings 1 to each."""
        said, one = release.statement, Fraction(1, HEIGHT)
        forms = [
            LinearCombination(value * one, {Noise(said.identifier, place, said.law): one})
            for place, value in enumerate(said.values)
        ]
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {"sum": Figure(forms=tuple(forms), labels=labels, measure="sum", sources=(release,))}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_gram.gram(
            said, self.outcome, self.numbers, self.factors, where=self.where, height=HEIGHT, size=self.size
        )

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """What a person has above the limit is scaled down."""
        return cut_by(unit, limit, cells=1, counted="worth", rows=(unit, self.where, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the sums, in rows; how many rows there are does not change it."""
        return {"sum": Fraction(law.margin(confidence, numbers=self.size if joint else 1), HEIGHT)}


def _number(of: Clamped) -> BoundedNumber:
    return BoundedNumber(name=_name(of), low=of.low, high=of.high)


def _name(of: Clamped) -> str:
    return of.value.column if isinstance(of.value, Named) else written(of.value)


def _coded(keys: Keys) -> Lattice:
    """The place of a row's key among those declared; missing where it is none of them and there is no rest."""
    value = Term(Named(column=keys.column) if keys.value is None else keys.value)
    choice = when(value == keys.values[0]).then(0)
    for place, key in enumerate(keys.values[1:], start=1):
        choice = choice.when(value == key).then(place)
    coded = choice if keys.other is None else choice.otherwise(len(keys.values))
    steps = len(keys.labels) - 1
    return Lattice(value=coded.node, low=Fraction(0), high=Fraction(steps), steps=steps)


def _within(each: ColumnProduct, places: Mapping[str, int]) -> bool:
    """Whether a row can fill a product that has these levels of factors, and of all others the second."""
    return all(level == places.get(name, 1) for name, level in each.levels)


def _moved(each: ColumnProduct, differ: set[str]) -> int:
    """How far a product moves where one row replaces another, which differs in the levels of these factors."""
    old = _within(each, {})
    new = _within(each, dict.fromkeys(differ, 2))
    if old and new:
        return 0 if each.constant else 1 if each.never_negative else 2
    return int(old or new)
