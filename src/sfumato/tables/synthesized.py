"""Synthetic rows of a table: the one question that is charged, and what is made of its release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, positive, rational
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Date, Time, col
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn, equal_bins, in_order
from sfumato.synthesis.plan import MeasurementPlan, planned
from sfumato.synthesis.result import MeasuredMarginal, SynthesisQuality, SyntheticTable
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.queries.weighted_marginals import WeightedMarginals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.synthesis.measured import Layout, MeasuredTable
    from sfumato.tables.table import Table

__all__ = ["Synthesis", "synthesis_of"]

BINS = 16
MOST_BINS = 1_000
MOST_ROWS = 10**8
MOST_CELLS = 4_000  # of all columns together: memory and time of a fit go with their square
Forbidden = tuple[int, int, tuple[tuple[int, int], ...]]
WIDEST = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Synthesis:
    """Columns, rules and a workload: everything that is decided before ε is.

    Guarantee: nothing is read and nothing is spent until :meth:`release`, which charges one question.
    """

    table: "Table"
    columns: tuple[SyntheticColumn, ...]
    keys: tuple[Keys, ...]
    rows: int | None
    expected: int | None
    """The public number of rows in the data that the plan is chosen by."""
    workload: tuple[tuple[tuple[int, ...], float], ...] = ()
    forbidden: tuple[Forbidden, ...] = ()
    """Two columns, and the pairs of their cells that never occur together."""
    ordered: tuple[tuple[int, int], ...] = field(default=())
    """Two columns of numbers, the first of which is at least the second in every row."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(column.size for column in self.columns)

    def plan(self, *, epsilon: Exact, delta: Exact = 0) -> MeasurementPlan:
        """Which tables would be measured, by public facts alone."""

        def noise(plan: MeasurementPlan) -> float:
            preview = self._asked(plan).preview(epsilon=epsilon, delta=delta)
            return sqrt(preview.mechanism.law.variance)

        spend = float(positive(epsilon, "epsilon"))
        return planned(self.sizes, noise, epsilon=spend, rows=self.expected, workload=self.workload)

    def question(self, *, epsilon: Exact, delta: Exact = 0) -> Question:
        """The question that is asked at this spend; its preview says what the noise is."""
        return self._asked(self.plan(epsilon=epsilon, delta=delta))

    def release(
        self,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
    ) -> SyntheticTable:
        """Charge, measure, and make rows of the release; parameters as for a question."""
        plan = self.plan(epsilon=epsilon, delta=delta)
        asked = self._asked(plan)
        release = asked.release(epsilon=epsilon, delta=delta, fresh=fresh, idempotency=idempotency, reads=reads)
        return self.made(release, plan.reason)

    def made(self, release: Release, reason: str) -> SyntheticTable:
        """Rows of a release: the same each time, for the generator is seeded from it."""
        import pyarrow as pa

        from sfumato.studies.draws import seeded_by
        from sfumato.synthesis.making import made_rows
        from sfumato.synthesis.measured import Layout, total_of

        measured = self.measured(release)
        total = total_of(measured)
        rows = max(1, min(round(total), MOST_ROWS)) if self.rows is None else self.rows
        layout, random = Layout(self.sizes), seeded_by(release)()
        found = made_rows(measured, layout, rows, self._allowed(layout), random)
        drawn = {
            place: column.drawn(found.codes[:, place], random)
            for place, column in enumerate(self.columns)
            if isinstance(column, BinnedColumn)
        }
        in_order(self.columns, found.codes, drawn, self.ordered)
        arrays = [column.arrow(found.codes[:, place], drawn.get(place)) for place, column in enumerate(self.columns)]
        quality = SynthesisQuality(
            reason=reason,
            marginals=tuple(
                MeasuredMarginal(
                    columns=tuple(self.columns[place].name for place in each.columns),
                    cells=each.counts.size,
                    noise=each.sigma,
                    predicted_error=0.4 * each.sigma * each.counts.size / max(total, 1.0),
                )
                for each in measured
            ),
            chi_squared=found.misfit,
            distance_to_fit=found.distance,
            estimated_rows=total,
            declared_rows=self.rows is not None,
        )
        named = pa.table(arrays, names=[column.name for column in self.columns])
        return SyntheticTable(release=release, rows=named, quality=quality)

    def measured(self, release: Release) -> "list[MeasuredTable]":
        """The noisy tables of a release, in rows, each with its noise."""
        import numpy as np

        from sfumato.synthesis.measured import MeasuredTable

        query = release.statement.query
        if not isinstance(query, WeightedMarginals):
            raise InvalidInput("this release is not of tables that rows can be made of; nothing was made.")
        sigma = float(release.statement.law.variance) ** 0.5
        return [
            MeasuredTable(
                columns=some,
                counts=np.array(values, dtype=float).reshape([self.sizes[place] for place in some]) / weight,
                sigma=sigma / weight,
            )
            for some, weight, values in query.answers(release.statement.values)
        ]

    def _asked(self, plan: MeasurementPlan) -> Question:
        query = WeightedMarginals(
            dataset=self.table.dataset,
            by=self.keys,
            tables=plan.tables,
            weights=plan.weights,
            missing=tuple(column.name for column in self.columns if column.missing),
            where=self.table.predicate,
            joins=self.table.joins,
        )
        return self.table._question(query)

    def _allowed(self, layout: "Layout") -> "NDArray[np.bool_]":
        from sfumato.synthesis.making import nothing_forbidden

        allowed = nothing_forbidden(layout)
        for one, two, cells in self.forbidden:
            for first, second in cells:
                here, there = layout.starts[one] + first, layout.starts[two] + second
                allowed[here, there] = allowed[there, here] = False
        return allowed


def synthesis_of(
    table: "Table",
    columns: Sequence[str] | None,
    *,
    rows: int | None,
    bins: Mapping[str, int | Sequence[Exact | date]],
    missing: Sequence[str],
    workload: Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact],
    never: Sequence[Mapping[str, KeyValue | Sequence[KeyValue | None] | None]],
    at_least: Sequence[tuple[str, str]],
) -> Synthesis:
    """What is asked for, checked: every column has public cells, and rules and workload name columns."""
    if table.by:
        raise InvalidInput("synthetic rows are made of a table that is not grouped; nothing was done.")
    names = list(columns) if columns is not None else [*table.keys, *(c for c in table.bounds if c not in table.keys)]
    if isinstance(columns, str) or not names or len(set(names)) != len(names):
        raise InvalidInput(
            "columns is a list of different columns that have declared keys or bounds; nothing was done."
        )
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS):
        raise InvalidInput(f"rows is a whole number from 1 to {MOST_ROWS:,}; nothing was done.")
    for what, named in (("bins", bins), ("missing", missing)):
        unknown = [name for name in named if name not in names]
        if unknown or isinstance(named, str):
            raise InvalidInput(
                f"{what} names {', '.join(unknown) or repr(named)}, which is none of the columns "
                f"{', '.join(names)}; nothing was done.{did_you_mean(unknown[0], names) if unknown else ''}"
            )
    made = [_column(table, name, bins.get(name), missing=name in missing) for name in names]
    place = {name: number for number, name in enumerate(names)}
    if sum(column.size for column in made) > MOST_CELLS:
        raise InvalidInput(
            f"the columns have {sum(column.size for column in made):,} values and bins together, and rows are made for "
            f"at most {MOST_CELLS:,}; nothing was done. Group rare values, use fewer bins, or leave columns out."
        )
    direct = [_order(rule, made, place) for rule in at_least]
    further = [_order(rule, made, place) for rule in _following(at_least)]
    forbidden = [*(_never(rule, made, place) for rule in never), *direct, *further]
    _check_possible([column.size for column in made], forbidden)
    return Synthesis(
        table=table,
        columns=tuple(made),
        keys=tuple(_keys(table, column) for column in made),
        rows=rows,
        expected=table.n_units if table.n_units is not None and table.predicate is None else rows,
        workload=_workload(workload, place),
        forbidden=tuple(forbidden),
        ordered=tuple((one, two) for one, two, _ in (*direct, *further)),
    )


def _following(rules: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What follows from rules: of three values in a row the first is at least the third as well."""
    known = {(larger, smaller) for larger, smaller in rules}
    found: list[tuple[str, str]] = []
    while more := {(one, four) for one, two in known for three, four in known if two == three and one != four} - known:
        found += sorted(more)
        known |= more
    return found


def _check_possible(sizes: Sequence[int], forbidden: Sequence[Forbidden]) -> None:
    """Refuse rules that leave some column without a value that every other column can stand beside."""
    import numpy as np

    live = [np.ones(size, dtype=np.bool_) for size in sizes]
    before = -1
    while (left := sum(int(each.sum()) for each in live)) != before:
        before = left
        for one, two, pairs in forbidden:
            may = np.ones((sizes[one], sizes[two]), dtype=np.bool_)
            for first, second in pairs:
                may[first, second] = False
            live[one] &= (may & live[two]).any(axis=1)
            live[two] &= (may & live[one][:, None]).any(axis=0)
    if not all(each.any() for each in live):
        raise InvalidInput("no row keeps all declared rules; nothing was done and nothing was spent. Leave some out.")


def _column(table: "Table", name: str, bins: int | Sequence[Exact | date] | None, *, missing: bool) -> SyntheticColumn:
    keys = table.keys.get(name)
    if keys is not None and bins is None:
        values = tuple(
            date.fromisoformat(each.value) if isinstance(each, Date) else str(each.value) if isinstance(each, Time)
            else each
            for each in keys.values
        )  # fmt: skip
        return ListedColumn(name=name, values=values, missing=missing)
    bounds = table.bounds.get(name)
    if bounds is None:
        raise NotDeclared(
            f"column {name!r} has neither declared keys nor bounds, and reading its values off the data would reveal "
            f"who is in it. Nothing was done. Say table.with_keys({name}=[...]) or table.with_bounds({name}=(low, "
            f"high)), or ask which values there are: find_keys({name!r}).{did_you_mean(name, table.keys)}"
        )
    days = isinstance(bounds[0], date)
    low, high = (Fraction(end.toordinal()) if isinstance(end, date) else end for end in bounds)
    whole = days or name in table.integers or name in table.wholes
    if bins is None or isinstance(bins, int):
        number = BINS if bins is None else bins
        if isinstance(bins, bool) or not 2 <= number <= MOST_BINS:
            raise InvalidInput(f"the bins of {name!r} are 2 to {MOST_BINS:,} or a list of edges; nothing was done.")
        edges = equal_bins(low, high, number, whole=whole)
    else:
        inner = [Fraction(edge.toordinal()) if isinstance(edge, date) else rational(edge, "edge") for edge in bins]
        edges = (low, *(edge for edge in inner if low < edge < high), high)
        if inner != sorted(set(inner)):
            raise InvalidInput(f"the edges of {name!r} must rise; nothing was done.")
        if whole and any(edge.denominator != 1 for edge in edges):
            raise InvalidInput(f"{name!r} holds whole numbers, and so must its edges; nothing was done.")
    if len(edges) < 3:
        raise InvalidInput(
            f"column {name!r} has one bin alone between its bounds, and says nothing; nothing was done. Leave it out, "
            "or declare wider bounds or more edges."
        )
    return BinnedColumn(name=name, edges=edges, whole=whole, days=days, missing=missing)


def _keys(table: "Table", column: SyntheticColumn) -> Keys:
    """The cells of a column as groups of the question; what lies beyond the bounds is in the first or the last bin."""
    if isinstance(column, ListedColumn):
        return table.keys[column.name]
    inner = column.edges[1:-1]
    edges: list[object] = [
        date.fromordinal(int(edge)) if column.days else int(edge) if column.whole else edge for edge in inner
    ]
    cut = col(column.name).cut(edges, below=True, above=True)
    return Keys(column=column.name, values=table._computed(column.name, cut).values, value=cut.node)


def _workload(
    given: Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact], place: Mapping[str, int]
) -> tuple[tuple[tuple[int, ...], float], ...]:
    listed = given.items() if isinstance(given, Mapping) else [(some, 1) for some in given]
    found: dict[tuple[int, ...], float] = {}
    for some, importance in listed:
        names = [some] if isinstance(some, str) else list(some)
        unknown = [name for name in names if name not in place]
        if unknown:
            raise InvalidInput(
                f"the workload names {', '.join(map(str, unknown))}, which is none of the columns {', '.join(place)}; "
                f"nothing was done.{did_you_mean(str(unknown[0]), place)}"
            )
        table = tuple(sorted(place[name] for name in names))
        if not 1 <= len(table) <= WIDEST or len(set(table)) != len(table) or table in found:
            raise InvalidInput(
                f"a workload lists different tables, each of one to {WIDEST} different columns; nothing was done."
            )
        found[table] = float(positive(importance, "importance"))
    return tuple(found.items())


def _never(
    rule: Mapping[str, KeyValue | Sequence[KeyValue | None] | None],
    columns: Sequence[SyntheticColumn],
    place: Mapping[str, int],
) -> Forbidden:
    if not isinstance(rule, Mapping) or len(rule) != 2 or any(name not in place for name in rule):
        raise InvalidInput(
            "never=[{'sex': 'M', 'pregnant': True}, …] names two columns each and their values that never occur "
            "together; nothing was done."
        )
    cells = []
    for name, given in rule.items():
        column = columns[place[name]]
        if not isinstance(column, ListedColumn):
            raise InvalidInput(f"{name!r} has bins, and never=… takes columns with keys; nothing was done.")
        values = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        known = [*column.values, *([None] if column.missing else [])]
        if any(value not in known for value in values):
            raise InvalidInput(f"never=… names a value that {name!r} does not have; nothing was done.")
        cells.append([known.index(value) for value in values])
    one, two = (place[name] for name in rule)
    return one, two, tuple((first, second) for first in cells[0] for second in cells[1])


def _order(rule: tuple[str, str], columns: Sequence[SyntheticColumn], place: Mapping[str, int]) -> Forbidden:
    """The pairs of bins in which the first value cannot be at least the second."""
    rule = rule if isinstance(rule, tuple | list) else ()
    held = [columns[place[name]] for name in rule if name in place]
    if len(rule) != 2 or len(held) != 2 or rule[0] == rule[1] or not all(isinstance(it, BinnedColumn) for it in held):
        raise InvalidInput(
            "at_least=[('age_at_death', 'age'), …] names two columns with bins each, the first of which is at least "
            "the second in every row; nothing was done."
        )
    larger, smaller = held
    assert isinstance(larger, BinnedColumn)  # noqa: S101 - as was just asked
    assert isinstance(smaller, BinnedColumn)  # noqa: S101
    below = tuple(
        (one, two)
        for one in range(larger.bins)
        for two in range(smaller.bins)
        if larger.ends(one)[1] < smaller.ends(two)[0]
    )
    return place[rule[0]], place[rule[1]], below
