"""How contributions are spread: how many persons have how many rows, in how many groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_numbers
from sfumato.core.limits import MOST, Limit
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
from sfumato.tables import describe_limits
from sfumato.tables.contribution import one_cell_each
from sfumato.tables.grouping import cells_of, check_grouping, check_size
from sfumato.tables.keys import Keys
from sfumato.tables.persons import Step

__all__ = ["Contributions", "doublings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """How many persons have how many rows, in powers of two up to ``most``; with ``by``, in how many groups besides.

    With groups, the rows are those in the group where the person has most: what a limit of rows in each group cuts.

    Guarantee: each person is in one cell (rows × groups), so one person moves one count by 1 under add/remove, and two
    of them under replace. No limit is applied. Assumes: the user unit; under a record unit one row more would move its
    person from one cell to another. Public: every field. Proof: docs/proofs/choosing_limits.md
    """

    KIND: ClassVar[str] = "query.contributions"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ANY_NOISE
    UNLIMITED: ClassVar[bool] = True
    dataset: Dataset
    most: int
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        natural(self.most, "most", most=MOST)
        check_grouping(self.by, self.names)
        check_size(cells_of(self.by))

    @property
    def row_edges(self) -> tuple[int, ...]:
        """The most rows of each bin but the last, which holds who has more than ``most``."""
        return doublings(self.most)

    @property
    def group_edges(self) -> tuple[int, ...]:
        """The most groups of each bin but the last; nobody is in more groups than there are."""
        return doublings(cells_of(self.by))[:-1]

    @property
    def size(self) -> int:
        """One number for each pair of bins."""
        return (len(self.row_edges) + 1) * (len(self.group_edges) + 1)

    @property
    def measure(self) -> str:
        """The name of the value column."""
        return "persons"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.measure,)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """The bins: of rows, and of groups where there are groups."""
        rows = [*_spans(self.row_edges), f">{self.most}"]
        if not self.by:
            return {"rows": rows}
        pairs = list(product(rows, _spans((*self.group_edges, cells_of(self.by)))))
        return {"rows_per_group": [row for row, _ in pairs], "groups": [groups for _, groups in pairs]}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one person moves the counts, whatever the limit.

        >>> from sfumato.core.units import user
        >>> asked = Contributions(dataset=Dataset(name="visits", edition="1"), most=8)
        >>> [asked.sensitivity(user("id", relation=each), None).l1.value for each in ("add/remove", "replace")]
        [Fraction(1, 1), Fraction(2, 1)]
        """
        return one_cell_each(unit, self.joins, cells=self.size)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """Laplace or Gaussian noise or another, whichever is smallest."""
        return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta, among=ADDED_NOISE)

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The counts of persons as a figure."""
        return {self.measure: figure(release)}

    check_answer = check_numbers

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_limits.contributions(said, most=self.most, by=self.by, where=self.where)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The margin of the counts."""
        return {self.measure: Fraction(law.margin(confidence, numbers=self.size if joint else 1))}


def doublings(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, up to ``most`` and with it.

    >>> doublings(8), doublings(5), doublings(1)
    ((1, 2, 4, 8), (1, 2, 4, 5), (1,))
    """
    below = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return (*below, most)


def _spans(edges: Sequence[int]) -> list[str]:
    """What lies above the edge before and up to each edge."""
    befores = [0, *edges[:-1]]
    return [
        str(edge) if edge == before + 1 else f"{before + 1}-{edge}" for before, edge in zip(befores, edges, strict=True)
    ]
