"""The count of rows beyond the limit: one layer within it, a second one above it, in one charge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural, probability
from sfumato.core.finding import check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Record, Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.inference.derived import Derived, level_of
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe_limits
from sfumato.tables.contribution import Move, Reach, contribution, joint_reach
from sfumato.tables.grouping import cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.persons import Step, check_steps, is_per_person, joins_of

__all__ = ["LayeredCount"]

MOST_ROWS = 10**5
FINEST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LayeredCount:
    """How many rows there are, up to ``uncut_to`` of each person in each group, and how many within the limit.

    Two layers are added up: a person's rows up to ``within``, the limit, and those above it up to ``uncut_to``. Each
    is multiplied by a whole number before the noise, so that ``share`` of ε goes to the upper one.

    Guarantee: :meth:`sensitivity` bounds the move of both layers together. Assumes: both are enforced by the engine.
    Rows of a person beyond ``uncut_to`` do not count, and the answer says so. Public: every field. Proof:
    docs/proofs/choosing_limits.md
    """

    KIND: ClassVar[str] = "query.layered_count"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    dataset: Dataset
    within: int
    uncut_to: int
    share: Fraction = Fraction(1, 2)
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        natural(self.within, "within", most=MOST_ROWS)
        natural(self.uncut_to, "uncut_to", most=MOST_ROWS)
        if self.uncut_to <= self.within:
            raise InvalidInput(
                f"uncut_to = {self.uncut_to} is not above the limit of {self.within} rows, within which a plain count "
                "counts them all; nothing was done. Leave uncut_to out."
            )
        share = probability(self.share, "share")
        if share in (0, 1) or share.denominator > FINEST:
            raise InvalidInput(f"share must be above 0 and below 1, in parts of at most {FINEST}; nothing was done.")
        check_grouping(self.by, self.names)
        check_size(self.size)

    @property
    def steps(self) -> tuple[int, int]:
        """What the rows within the limit, and those above it, are multiplied by.

        >>> LayeredCount(dataset=Dataset(name="visits", edition="1"), within=3, uncut_to=9).steps
        (2, 1)
        """
        lower, upper = (1 - self.share) / self.within, self.share / (self.uncut_to - self.within)
        whole = lcm(lower.denominator, upper.denominator)
        first, second = int(lower * whole), int(upper * whole)
        return first // gcd(first, second), second // gcd(first, second)

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return cells_of(self.by)

    @property
    def size(self) -> int:
        """Two numbers for each group."""
        return 2 * self.cells

    @property
    def measure(self) -> None:
        """The columns are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """All rows up to ``uncut_to``, and those within the limit."""
        return ("count", "within_limit")

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, in the order of the cells."""
        return labels_of(self.by)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit can move both layers together.

        >>> from sfumato.core.units import user
        >>> asked = LayeredCount(dataset=Dataset(name="visits", edition="1"), within=3, uncut_to=9)
        >>> asked.sensitivity(user("id", relation="add/remove"), Limit(groups=1, rows_per_group=3)).l1
        L1(value=Fraction(12, 1))
        """
        check_steps(self.joins, unit)
        if is_per_person(self.joins):
            raise Refused("of one row a person nothing is cut; nothing was done. Leave uncut_to out.")
        if any(not join.public for join in joins_of(self.joins)):
            raise Refused(
                "rows of a private join are cut on both sides before they meet, so no count of them is uncut. Nothing "
                "was read and nothing was spent. Leave uncut_to out, or the join."
            )
        if isinstance(unit, Record):
            raise Refused("under the record unit every row counts and nothing is cut; nothing was done. Ask count().")
        given = contribution(unit, limit, self.joins)
        if given.rows != self.within:
            raise NotDeclared(
                f"this was asked for a limit of {self.within} rows and the limit is {given.rows}; nothing was read and "
                "nothing was spent. Ask again."
            )
        if given.groups < self.cells:
            raise Refused(
                f"the limit keeps {given.groups} of {self.cells} groups of each person, and rows in the others would "
                "still be left out: no count is uncut. Nothing was read and nothing was spent. Give a limit of "
                f"groups={self.cells}, ask without groups, or leave uncut_to out."
            )
        lower, upper = self.steps
        above = upper * (self.uncut_to - self.within)
        one, rest = Move(l1=lower, l2_squared=lower**2, linf=lower), Move(l1=above, l2_squared=above**2, linf=above)
        layers = (Reach(numbers=1, alone=one, met=one), Reach(numbers=1, alone=rest, met=rest, once=True))
        return joint_reach(layers, given, cells=self.cells)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise or another, whichever is smallest."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """Both counts as figures; the interval of the first is that of both noises together."""
        said, weights = release.statement, [Fraction(1, step) for step in self.steps]

        def layer(which: int, cell: int) -> LinearCombination:
            place, weight = which * self.cells + cell, weights[which]
            return LinearCombination(said.values[place] * weight, {Noise(said.identifier, place, said.law): weight})

        within = [layer(0, cell) for cell in range(self.cells)]
        every = [form.plus(layer(1, cell), Fraction(1)) for cell, form in enumerate(within)]
        labels = {name: tuple(column) for name, column in self.labels().items()}
        return {
            name: Figure(forms=tuple(forms), labels=labels, measure=name, sources=(release,))
            for name, forms in zip(self.names, (every, within), strict=True)
        }

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_limits.layered_count(
            said, within=self.within, uncut_to=self.uncut_to, steps=self.steps, by=self.by, where=self.where
        )

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margins of both counts; how many rows there are does not change them."""
        level = level_of(confidence, [LinearCombination(Fraction(0), {})] * (self.cells if joint else 1))
        noises = {Noise("expected", place, law): Fraction(1, step) for place, step in enumerate(self.steps)}
        first = dict([next(iter(noises.items()))])
        forms = (LinearCombination(Fraction(0), held) for held in (noises, first))
        return {name: form.margin(level) for name, form in zip(self.names, forms, strict=True)}
