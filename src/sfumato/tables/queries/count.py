"""The count of rows, in all or by group over public keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from sfumato.engines.expressions import Expression
from sfumato.inference.derived import Derived
from sfumato.inference.figure import figure
from sfumato.mechanisms import ADDED_NOISE, ANY_NOISE
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables import describe
from sfumato.tables.contribution import Move, Reach, contribution, joint_reach
from sfumato.tables.grouping import cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.persons import Step

__all__ = ["Count", "KeyValue", "Keys", "row_counts"]

MOST_GROUPS = 10_000

ONE_ROW = Reach(numbers=1, alone=Move(l1=1, l2_squared=1, linf=1), met=Move(l1=1, l2_squared=1, linf=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many rows meet ``where``, in each cell of the product of ``by`` (one cell if there are no keys).

    Guarantee: :meth:`sensitivity` bounds the move of the whole vector of counts for one unit; brute-forced over
    neighbours, and attained (but for a bare count of all rows under replace, which moves less). Assumes: the limit is
    enforced by the engine for this very grouping; rows whose key is not declared, or whose person is not told, do not
    count. Public: every field. Proof: docs/proofs/bounded_totals.md
    """

    KIND: ClassVar[str] = "query.count"
    VERSION: ClassVar[int] = 2
    COMPARED: ClassVar[str] = "comparison.counts"
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    dataset: Dataset
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        check_grouping(self.by, self.names)
        check_size(self.size)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return cells_of(self.by)

    @property
    def measure(self) -> str:
        """The name of the value column."""
        return "count"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, in the order of the cells."""
        return labels_of(self.by)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise or another, whichever is smallest."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts as a figure."""
        return {self.measure: figure(release)}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        columns = tuple(keys.column for keys in self.by)
        rest = all(keys.other is not None for keys in self.by)
        return describe.counts(said, columns, where=self.where, rest=rest)

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count."""
        return cut_by(unit, limit, cells=self.size, rows=(unit, self.where, self.by, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts; how many rows there are does not change it."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the counts.

        A record is one row in one cell. A person fills at most ``groups`` cells with ``rows_per_group`` each; a family
        can put all its members into the same cells, and whoever is replaced may leave some cells and enter others.

        >>> from sfumato.core.units import user
        >>> regions = Keys(column="region", values=("north", "south", "west"))
        >>> count = Count(dataset=Dataset(name="visits", edition="1"), by=(regions,))
        >>> count.sensitivity(user("id", relation="replace"), Limit(groups=1, rows_per_group=1)).l1
        L1(value=Fraction(2, 1))
        """
        return joint_reach([ONE_ROW], contribution(unit, limit, self.joins), cells=self.size)


def row_counts(limit: Limit) -> Count:
    """Counts of rows in enough groups for a person to fill the limit: the widest case, where no release is at hand.

    >>> row_counts(Limit(groups=2, rows_per_group=3)).size
    4
    """
    natural(limit.groups, "groups", most=MOST_GROUPS)
    return Count(
        dataset=Dataset(name="rows", edition="any"),
        by=(Keys(column="group", values=tuple(range(2 * limit.groups))),),
    )
