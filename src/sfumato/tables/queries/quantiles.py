"""Quantiles of a value, in all or by group over public keys, chosen from a lattice by their rank."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.cut import LimitCut, cut_by
from sfumato.core.description import Description
from sfumato.core.finding import Finding, check_numbers
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Relation, Unit
from sfumato.engines.expressions import Expression
from sfumato.engines.lattice import Lattice
from sfumato.inference.selected_values import SelectedValues
from sfumato.mechanisms.quantile import QuantileChoice
from sfumato.tables import describe
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import contribution
from sfumato.tables.grouping import cells_of, check_grouping, check_size, labels_of
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.persons import Step

__all__ = ["Quantiles", "level_name"]

STEPS = 2**30
CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """The quantiles ``levels`` of a value over the rows that meet ``where`` and have one, in each cell of ``by``.

    Guarantee: :meth:`sensitivity` bounds how far one unit moves the ranks. Assumes: the limit is enforced by the engine
    for this very grouping, row by row. Public: every field. Proof: docs/proofs/quantiles.md
    """

    KIND: ClassVar[str] = "query.quantiles"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.quantile_choice",)
    dataset: Dataset
    of: Clamped
    levels: tuple[Fraction, ...]
    where: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        # The mechanism refuses levels that do not rise, or lie outside of 0 and 1.
        QuantileChoice.moved(quantiles=self.levels, relation=Relation.ADD_REMOVE, groups=None, rows=1)
        check_grouping(self.by, self.names)
        check_size(self.size)

    @property
    def lattice(self) -> Lattice:
        """Where the quantiles are chosen from."""
        return Lattice(value=self.of.value, low=self.of.low, high=self.of.high, steps=STEPS)

    @property
    def cells(self) -> int:
        """How many groups there are."""
        return cells_of(self.by)

    @property
    def size(self) -> int:
        """One number for each quantile of each group."""
        return self.cells * len(self.levels)

    @property
    def measure(self) -> None:
        """The columns are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """``median``, or such as ``p90`` and ``p2_5``."""
        return tuple(level_name(level) for level in self.levels)

    def labels(self) -> Mapping[str, Sequence[KeyValue]]:
        """The key columns, in the order of the cells."""
        return labels_of(self.by)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one unit, held to ``limit``, can move the ranks."""
        given = contribution(unit, limit, self.joins)
        return QuantileChoice.moved(
            quantiles=self.levels,
            relation=given.relation,
            groups=min(given.groups, self.cells) if self.by else None,
            rows=given.rows,
            persons=given.members,
        )

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """A choice from the lattice by rank; a δ is not used."""
        return QuantileChoice.calibrated(
            quantiles=self.levels, steps=self.lattice.steps, sensitivity=moved, epsilon=spend.epsilon
        )

    def columns(self, release: Release) -> Mapping[str, SelectedValues]:
        """The quantiles by name."""
        said, lattice = release.statement, self.lattice
        assert isinstance(said.mechanism, QuantileChoice)  # noqa: S101 - for the reader of types
        step = (lattice.high - lattice.low) / lattice.steps
        margin = said.mechanism.rank_margin(CONFIDENCE, groups=self.cells)
        labels = {column: tuple(values) for column, values in self.labels().items()}
        many = len(self.levels)
        return {
            name: SelectedValues(
                chosen=tuple(float(lattice.low + step * place) for place in said.values[level::many]),
                labels=labels,
                measure=name,
                sources=(release,),
                rank_margin=margin,
            )
            for level, name in enumerate(self.names)
        }

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        pairs = zip(self.names, self.levels, strict=True)
        chosen = [describe.Quantile(name=name, of=self.of, level=level) for name, level in pairs]
        return describe.quantiles(said, chosen, by=self.by, where=self.where)

    def check_answer(self, said: Statement) -> Iterator[Finding]:
        """Places on the lattice, which do not fall from one quantile of a group to the next."""
        yield from check_numbers(self, said)
        many, steps = len(self.levels), self.lattice.steps
        groups = [said.values[at : at + many] for at in range(0, len(said.values), many)]
        if not all(0 <= place <= steps for place in said.values):
            yield Finding(field="statement.values", problem="must be places on the query's lattice")
        elif not all(list(group) == sorted(group) for group in groups):
            yield Finding(field="statement.values", problem="must not fall from one quantile to the next")

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """Rows above the limit do not count."""
        return cut_by(unit, limit, cells=self.cells, rows=(unit, self.where, self.by, self.joins))

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The error of a quantile depends on how densely the values lie; only its rank is bounded beforehand."""
        return {}


def level_name(level: Fraction) -> str:
    """What a quantile is called.

    >>> level_name(Fraction(1, 2)), level_name(Fraction(9, 10)), level_name(Fraction(1, 40))
    ('median', 'p90', 'p2_5')
    """
    if level == Fraction(1, 2):
        return "median"
    return "p" + format(float(100 * level), ".6g").replace(".", "_")
