"""Synthetic rows of a table: the one question that is charged, and what is made of its release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from math import ceil, prod, sqrt
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, positive, rational
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Date, Time, col, written
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn, equal_bins
from sfumato.synthesis.declared import DeclaredRows, never_rule
from sfumato.synthesis.levels import CodeLevel
from sfumato.synthesis.plan import MeasurementPlan, planned
from sfumato.synthesis.preview import SynthesisPreview, foreseen
from sfumato.synthesis.result import MeasuredMarginal, SynthesisQuality, SyntheticTable
from sfumato.tables.hierarchies import Hierarchies, given_hierarchies, hierarchies_of, weight_of_codes
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.published_counts import published_counts
from sfumato.tables.queries.weighted_marginals import WeightedMarginals

if TYPE_CHECKING:
    from sfumato.synthesis.measured import MeasuredTable
    from sfumato.synthesis.row_making import ReleasedTable
    from sfumato.tables.table import Table

__all__ = ["Synthesis", "column_of", "keys_of_column", "synthesis_of"]

BINS = 16
MOST_BINS = 1_000
MOST_CELLS = 4_000  # of all columns together: memory and time of a fit go with their square
MOST_ROWS = 10**8
Forbidden = tuple[int, int, tuple[tuple[int, int], ...]]
WIDEST = 3
MOST_IMPORTANCE = 10**6
LEAST_IMPORTANCE = Fraction(1, 10**6)


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
    published: "tuple[ReleasedTable, ...]" = ()
    """Tables that were released before, which the rows are fitted to as well."""
    levels: tuple[CodeLevel, ...] = ()
    """Codes below columns of groups, and :attr:`codes`, their keys; each is measured as one table more."""
    codes: tuple[Keys, ...] = ()

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

    def preview(self, *, epsilon: Exact, delta: Exact = 0) -> SynthesisPreview:
        """The tables that would be measured, and how exactly; reads nothing and spends nothing."""
        plan = self.plan(epsilon=epsilon, delta=delta)
        return foreseen(self._asked(plan).preview(epsilon=epsilon, delta=delta), plan, self.columns, rows=self.expected)

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
        import numpy as np

        from sfumato.synthesis.agreement import associations
        from sfumato.synthesis.measured import total_of
        from sfumato.synthesis.row_making import RowMaking

        released = self._released(release)
        fitted = len(released) - len(self.levels)  # the codes stand last
        making = RowMaking(
            columns=self.columns,
            tables=(*released[:fitted], *self.published),
            rows=self.rows,
            forbidden=self.forbidden,
            ordered=self.ordered,
            levels=tuple(zip(self.levels, released[fitted:], strict=True)),
        )
        measured, own = making.measured, {table.columns for table in released}
        total = total_of(measured)
        rows, found = making.first()
        distances = (*(found.distances or (None,) * len(measured)), *(None for _ in self.levels))
        names = [*(column.name for column in self.columns), *(level.name for level in self.levels)]
        quality = SynthesisQuality(
            reason=reason,
            marginals=tuple(
                MeasuredMarginal(
                    columns=tuple(names[place] for place in each.columns),
                    cells=each.counts.size,
                    noise=each.sigma,
                    predicted_error=0.4 * each.sigma * each.counts.size / max(total, 1.0),
                    distance_to_fit=distance,
                    published=each.columns not in own,
                )
                for each, distance in zip(
                    (*measured, *(table.measured for table in released[fitted:])), distances, strict=True
                )
            ),
            chi_squared=found.misfit,
            distance_to_fit=found.distance,
            estimated_rows=total,
            declared_rows=self.rows is not None,
            published=len(self.published),
            codes=tuple(level.name for level in self.levels),
        )
        association = np.eye(len(self.columns)) if found.pairs is None else associations(found.pairs, making.layout)
        return SyntheticTable(
            release=release,
            rows=rows,
            quality=quality,
            making=making,
            fitted_association=association,
            declared=self.declared,
        )

    @property
    def declared(self) -> DeclaredRows:
        """The columns and the rules, for whoever opens a file of the rows."""
        named = [column.name for column in self.columns]
        return DeclaredRows(
            columns=(
                *self.columns,
                *(level.listed(missing=self.columns[level.group].missing) for level in self.levels),
            ),
            never=tuple(
                never_rule(self.columns[one], self.columns[two], cells)
                for one, two, cells in self.forbidden
                if (one, two) not in self.ordered
            ),
            at_least=tuple((named[one], named[two]) for one, two in self.ordered),
            condition="" if self.table.predicate is None else written(self.table.predicate),
        )

    def measured(self, release: Release) -> "list[MeasuredTable]":
        """The noisy tables of a release, in rows, each with its noise."""
        return [table.measured for table in self._released(release)]

    def _released(self, release: Release) -> "list[ReleasedTable]":
        """Where each table stands in a release."""
        import numpy as np

        from sfumato.synthesis.row_making import ReleasedTable

        query = release.statement.query
        if not isinstance(query, WeightedMarginals):
            raise InvalidInput("this release is not of tables that rows can be made of; nothing was made.")
        sizes = (*self.sizes, *(level.cells for level in self.levels))
        found, start = [], 0
        for some, weight, cells in zip(query.tables, query.weights, query.cells, strict=True):
            places = np.arange(start, start + cells).reshape([sizes[place] for place in some])
            found.append(ReleasedTable(columns=some, release=release, places=places, weight=weight))
            start += cells
        return found

    def _asked(self, plan: MeasurementPlan) -> Question:
        sizes = self.sizes
        known = [
            (prod(sizes[place] for place in some), weight)
            for some, weight in zip(plan.tables, plan.weights, strict=True)
        ]
        query = WeightedMarginals(
            dataset=self.table.dataset,
            by=(*self.keys, *self.codes),
            tables=(*plan.tables, *((len(sizes) + place,) for place in range(len(self.levels)))),
            weights=(*plan.weights, *(weight_of_codes(level.cells, known) for level in self.levels)),
            missing=(
                *(column.name for column in self.columns if column.missing),
                *(level.name for level in self.levels),  # what is not listed: codes too rare to be declared
            ),
            where=self.table.predicate,
            joins=self.table.joins,
        )
        return self.table._question(query)


def synthesis_of(
    table: "Table",
    columns: Sequence[str] | None,
    *,
    rows: int | None,
    expected_rows: int | None = None,
    bins: Mapping[str, int | Sequence[Exact | date]],
    missing: Sequence[str],
    workload: Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact],
    never: Sequence[Mapping[str, KeyValue | Sequence[KeyValue | None] | None]],
    at_least: Sequence[tuple[str, str]],
    consistent_with: Sequence[Release] = (),
    hierarchies: Hierarchies | None = None,
) -> Synthesis:
    """What is asked for, checked: every column has public cells, and rules and workload name columns."""
    if table.by:
        raise InvalidInput("synthetic rows are made of a table that is not grouped; nothing was done.")
    ranks = given_hierarchies(hierarchies)
    names = _names(table, columns, ranks)
    for what, number in (("rows", rows), ("expected_rows", expected_rows)):
        if number is not None and (type(number) is not int or not 1 <= number <= MOST_ROWS):
            raise InvalidInput(f"{what} is a whole number from 1 to {MOST_ROWS:,}; nothing was done.")
    _check_shapes(bins, missing, workload, never, at_least)
    for what, named in (("bins", bins), ("missing", missing)):
        unknown = [str(name) for name in named if name not in names]
        if unknown:
            raise InvalidInput(
                f"{what} names {', '.join(unknown) or repr(named)}, which is none of the columns "
                f"{', '.join(names)}; nothing was done.{did_you_mean(unknown[0], names) if unknown else ''}"
            )
    ranked = hierarchies_of(table, ranks, names, missing)
    made = [
        ranked[name].column if name in ranked else column_of(table, name, bins.get(name), missing=name in missing)
        for name in names
    ]
    place = {column.name: number for number, column in enumerate(made)}
    if sum(column.size for column in made) > MOST_CELLS:
        raise InvalidInput(
            f"the columns have {sum(column.size for column in made):,} values and bins together, and rows are made for "
            f"at most {MOST_CELLS:,}; nothing was done. Group rare values, use fewer bins, or leave columns out."
        )
    direct = [_order(rule, made, place) for rule in at_least]
    further = [_order(rule, made, place) for rule in _following([(rule[0], rule[1]) for rule in at_least])]
    forbidden = [*(_never(rule, made, place) for rule in never), *direct, *further]
    _check_possible([column.size for column in made], forbidden)
    keys = tuple(
        ranked[name].keys if name in ranked else keys_of_column(table, column)
        for name, column in zip(names, made, strict=True)
    )
    public = table.n_units if table.predicate is None else None
    return Synthesis(
        table=table,
        columns=tuple(made),
        keys=keys,
        rows=rows,
        expected=public if expected_rows is None else expected_rows,
        workload=_workload(workload, place),
        forbidden=tuple(forbidden),
        ordered=tuple((one, two) for one, two, _ in (*direct, *further)),
        published=published_counts(table, made, keys, consistent_with),
        levels=tuple(each.level(names.index(name)) for name, each in ranked.items()),
        codes=tuple(each.codes for each in ranked.values()),
    )


def _names(table: "Table", columns: Sequence[str] | None, ranks: Hierarchies) -> list[str]:
    if columns is None:
        names = list(dict.fromkeys([*table.keys, *table.bounds, *ranks]))
    else:
        names = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str | Mapping) else []
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise InvalidInput(
            "columns is a list of different columns that have declared keys or bounds; nothing was done."
        )
    return names


def _check_shapes(bins: object, missing: object, workload: object, never: object, at_least: object) -> None:
    """Refuse whatever is not a list or a mapping, before anything is looked up in it."""
    if not isinstance(bins, Mapping):
        raise InvalidInput("bins={'age': 8, 'stay': [2, 4, 7]} maps columns to their bins; nothing was done.")
    lists = {
        "missing=['stay', …]": missing,
        "workload=[['ward', 'age'], …]": workload,
        "never=[{'sex': 'M', 'pregnant': True}, …]": never,
        "at_least=[('died', 'age'), …]": at_least,
    }
    for how, given in lists.items():
        mapped = isinstance(given, Mapping) and given is not workload
        if mapped or isinstance(given, str) or not isinstance(given, Sequence | Mapping | set | frozenset):
            raise InvalidInput(f"a list was expected, {how}, and a {type(given).__name__} was given; nothing was done.")
    if not isinstance(missing, Iterable) or not all(isinstance(name, str) for name in missing):
        raise InvalidInput("missing=['stay', …] names columns; nothing was done.")


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


def column_of(
    table: "Table", name: str, bins: int | Sequence[Exact | date] | None, *, missing: bool
) -> SyntheticColumn:
    """A column with public cells: its declared keys, or bins between its declared bounds."""
    keys = table.keys.get(name)
    if keys is not None and bins is None:
        values = tuple(
            date.fromisoformat(each.value) if isinstance(each, Date) else str(each.value) if isinstance(each, Time)
            else each
            for each in keys.values
        )  # fmt: skip
        return ListedColumn(name=name, values=values, missing=missing)
    bounds = table.bounds.get(name)
    if bounds is None and keys is not None:
        raise InvalidInput(f"column {name!r} has keys and no bounds, so it has no bins; nothing was done.")
    if bounds is None:
        raise NotDeclared(
            f"column {name!r} has neither declared keys nor bounds, and reading its values off the data would reveal "
            f"who is in it. Nothing was done. Say table.with_keys({name}=[...]) or table.with_bounds({name}=(low, "
            f"high)), or ask which values there are: find_keys({name!r}).{did_you_mean(name, table.keys)}"
        )
    days = isinstance(bounds[0], date)
    low, high = (Fraction(end.toordinal()) if isinstance(end, date) else end for end in bounds)
    whole = days or name in table.integers or name in table.wholes
    listed = isinstance(bins, Iterable) and not isinstance(bins, str | bytes | Mapping)
    if not listed and (type(bins) is not int or not 2 <= bins <= MOST_BINS) and bins is not None:
        raise InvalidInput(
            f"the bins of {name!r} are a whole number from 2 to {MOST_BINS:,} or a list of edges; nothing was done."
        )
    if bins is None or isinstance(bins, int):
        number = BINS if bins is None else bins
        edges = equal_bins(low, high, number, whole=whole)
    else:
        if any(isinstance(edge, date) is not days for edge in bins):
            raise InvalidInput(
                f"the edges of {name!r} must be {'dates' if days else 'numbers'}, as its bounds are; nothing was done."
            )
        inner = [Fraction(edge.toordinal()) if isinstance(edge, date) else rational(edge, "edge") for edge in bins]
        if len(inner) >= MOST_BINS:
            raise InvalidInput(f"{name!r} has more than {MOST_BINS:,} bins; nothing was done. Use fewer edges.")
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


def keys_of_column(table: "Table", column: SyntheticColumn) -> Keys:
    """The cells of a column as groups of the question; what lies beyond the bounds is in the first or the last bin."""
    if isinstance(column, ListedColumn):
        return table.keys[column.name]
    inner = column.edges[1:-1]
    edges: list[object] = [
        date.fromordinal(int(edge)) if column.days else ceil(edge) if column.whole else edge for edge in inner
    ]
    cut = col(column.name).cut(edges, below=True, above=True)
    return Keys(column=column.name, values=table._computed(column.name, cut).values, value=cut.node)


def _workload(
    given: Sequence[Sequence[str]] | Mapping[tuple[str, ...], Exact], place: Mapping[str, int]
) -> tuple[tuple[tuple[int, ...], float], ...]:
    listed = given.items() if isinstance(given, Mapping) else [(some, 1) for some in given]
    found: dict[tuple[int, ...], float] = {}
    for some, importance in listed:
        if not isinstance(some, str | Sequence):
            raise InvalidInput(
                f"a workload lists tables, [['ward', 'age'], …], and a {type(some).__name__} is none; nothing was done."
            )
        names = [some] if isinstance(some, str) else list(some)
        unknown = [name for name in names if not isinstance(name, str) or name not in place]
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
        exact = positive(importance, "importance")
        if not LEAST_IMPORTANCE <= exact <= MOST_IMPORTANCE:
            raise InvalidInput("an importance is a number from 1/1,000,000 to 1,000,000; nothing was done.")
        found[table] = float(exact)
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
        found = [[type(each) is type(value) and each == value for each in known] for value in values]
        if not found or not all(any(each) for each in found):
            raise InvalidInput(f"never=… names a value that {name!r} does not have; nothing was done.")
        cells.append([each.index(True) for each in found])
    one, two = (place[name] for name in rule)
    return one, two, tuple((first, second) for first in cells[0] for second in cells[1])


def _order(rule: tuple[str, str], columns: Sequence[SyntheticColumn], place: Mapping[str, int]) -> Forbidden:
    """The pairs of bins in which the first value cannot be at least the second."""
    known = isinstance(rule, tuple | list) and all(isinstance(name, str) for name in rule)
    held = [columns[place[name]] for name in rule if name in place] if known else []
    if len(held) != 2 or len(rule) != 2 or rule[0] == rule[1] or not all(isinstance(it, BinnedColumn) for it in held):
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
