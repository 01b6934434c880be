"""A limit that cuts little and needs little noise, found by one private walk over candidates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural, positive
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import MOST, Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.engines.expressions import Expression
from sfumato.errors import InvalidInput
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.limit_search import LimitSearch
from sfumato.tables import describe_limits
from sfumato.tables.contribution import tails_of_one
from sfumato.tables.grouping import cells_of, check_grouping, check_size
from sfumato.tables.keys import Keys
from sfumato.tables.persons import Step

__all__ = ["LimitSuggestion", "half_doublings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSuggestion:
    """The least of several limits, up to ``most`` rows, that few enough persons are above; with ``by``, of groups too.

    ``spends`` are the ε of the questions that are planned under it: the smaller they are, the larger is their noise,
    and the more persons may be cut.

    Guarantee: one person moves each count of persons above a candidate by at most 1, under add/remove and under
    replace, and all of them in one direction. Assumes: the user unit. Public: every field. Proof:
    docs/proofs/choosing_limits.md
    """

    KIND: ClassVar[str] = "query.limit_suggestion"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = (LimitSearch.KIND,)
    UNLIMITED: ClassVar[bool] = True
    dataset: Dataset
    most: int
    spends: tuple[Fraction, ...]
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        natural(self.most, "most", most=MOST)
        if not self.spends:
            raise InvalidInput(
                "a limit is suggested for planned questions; nothing was done. Say spend=…, the ε of each."
            )
        for amount in self.spends:
            positive(amount, "spend")
        check_grouping(self.by, self.names)
        check_size(cells_of(self.by))

    @property
    def candidates(self) -> tuple[tuple[int, ...], ...]:
        """The limits to choose from: of rows, and before them of groups where there are groups."""
        rows = half_doublings(self.most)
        return (half_doublings(cells_of(self.by)), rows) if self.by else (rows,)

    @property
    def planned(self) -> Fraction:
        """The one ε whose noise is the mean of that of the planned questions, for each number of an answer.

        Each group of an answer has noise of its own, while what is cut is spread over the groups.
        """
        inverse = sum((1 / Fraction(amount) for amount in self.spends), Fraction(0))
        return len(self.spends) / inverse / cells_of(self.by)

    @property
    def size(self) -> int:
        """One number for each list of candidates."""
        return len(self.names)

    @property
    def measure(self) -> None:
        """The columns are choices."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """``rows``, or ``groups`` and ``rows_per_group``."""
        return ("groups", "rows_per_group") if self.by else ("rows",)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """There is one answer."""
        return {}

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one person moves each count of persons above a candidate, whatever the limit."""
        return tails_of_one(unit, self.joins)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """A walk for each list, which stops at the first candidate that few enough are above; a δ is not used."""
        candidates = self.candidates
        return LimitSearch.calibrated(
            candidates=candidates, epsilon=spend.epsilon, spend=[self.planned] * len(candidates)
        )

    def limit_of(self, values: Sequence[int]) -> Limit:
        """The limit that an answer suggests."""
        return Limit(groups=values[0] if self.by else 1, rows_per_group=values[-1])

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The numbers of the suggested limit."""
        return {
            name: SelectedValues(chosen=(value,), labels={}, measure=name, sources=(release,))
            for name, value in zip(self.names, release.statement.values, strict=True)
        }

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return describe_limits.suggestion(
            said, self.limit_of(said.values), most=self.most, by=self.by, where=self.where
        )

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """Each is one of its candidates."""
        yield from check_numbers(self, said)
        if any(value not in listed for value, listed in zip(said.values, self.candidates, strict=False)):
            yield Finding(field="statement.values", problem="must be limits that the query chooses from")

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """A choice has no margin."""
        return {}


def half_doublings(most: int) -> tuple[int, ...]:
    """Powers of the square root of 2, as different whole numbers, up to ``most`` and with it.

    >>> half_doublings(20)
    (1, 2, 3, 4, 6, 8, 11, 16, 20)
    """
    found: list[int] = []
    power = 0
    while (root := (isqrt(4 << power) + 1) // 2) < most:  # √(2^power), rounded
        if not found or root > found[-1]:
            found.append(root)
        power += 1
    return (*found, most)
