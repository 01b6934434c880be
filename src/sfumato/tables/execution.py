"""From a declaration to the engine: checked against the columns first, run only when the gate says so."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.suggestion import did_you_mean
from sfumato.core.units import Family, Unit, User
from sfumato.engines.bounded import KeyColumn, KeyValue, Share, bounded_totals
from sfumato.engines.compile import predicate
from sfumato.engines.contribution_counts import persons_by_contribution, persons_by_magnitude
from sfumato.engines.counts import bounded_counts
from sfumato.engines.expressions import AllOf, Date, Expression, Time, Type, check, columns_of, type_of, written
from sfumato.engines.joined import few_rows, joined
from sfumato.engines.marginal_counts import marginal_counts
from sfumato.engines.partition_selection import persons_by_key
from sfumato.engines.per_person import beside_person, per_person
from sfumato.engines.public_rows import public_rows
from sfumato.engines.quantile_counts import bounded_histogram, lattice_counts
from sfumato.engines.sources import EngineTable, Source, check_one_place, opened_together
from sfumato.engines.spline_counts import spline_totals
from sfumato.engines.sufficient_statistics import Gauge, Histogram, RowIndicator, RowLayers
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join, prefixed
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure
from sfumato.tables.persons import (
    ONE_ROW_A_PERSON,
    PerPerson,
    PersonJoin,
    Step,
    are_single,
    private_datasets,
    told_apart,
)
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.gram import GramMatrix
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.spline_counts import SplineCounts
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.question_parts import TableQuery

__all__ = ["Beside", "check_columns", "exact_numbers", "key_column"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The tables that a query names: its own, and by dataset those that are joined with it."""

    own: Source
    private: Mapping[Dataset, Source] = field(default_factory=dict)
    public: Mapping[Dataset, PublicTable] = field(default_factory=dict)
    limits: Mapping[Dataset, Limit] = field(default_factory=dict)
    """Of the private tables that are joined; one that is not here has the limit of the table that is asked."""
    limit: Limit | None = None
    """Of the table that is asked, as it was declared; none where that of the question is the same."""

    def columns(self, joins: Sequence[Step]) -> dict[str, Type]:
        """Names and types of all columns that a question may use; no row is read."""
        check_one_place([self.own, *(self.private[dataset] for dataset in private_datasets(joins))])
        return self._columns(dict(self.own.columns()), joins)

    def _columns(self, found: dict[str, Type], steps: Sequence[Step]) -> dict[str, Type]:
        for step in steps:
            match step:
                case Join():
                    found = self._joined_columns(found, step)
                case PerPerson():
                    found = _person_columns(found, step)
                case PersonJoin():
                    types = self._columns(dict(self.private[step.dataset].columns()), step.steps)
                    if step.where is not None:
                        check(step.where, types)
                    _check_person(step.person, found)
                    named = {f"{step.name}.{column}": kind for column, kind in types.items()}
                    _check_names(step.name, found, named)
                    found = found | named
        return found

    def _joined_columns(self, found: dict[str, Type], join: Join) -> dict[str, Type]:
        types = self.public[join.dataset].types if join.public else self.private[join.dataset].columns()
        for here, there in join.on:
            _check_pair(join, found.get(here), types.get(there), (here, there))
        named = {prefixed(join.dataset, column): kind for column, kind in types.items()}
        _check_names(join.dataset.name, found, named)
        return found | named

    @contextmanager
    def opened(
        self, joins: Sequence[Step], *, share: Share | None = None, where: Expression | None = None
    ) -> Iterator[EngineTable]:
        """The rows with those that are joined, on their engine.

        Guarantee: of one person no more rows reach a private join than the limit of each side lets in, so one person's
        rows never become more than the product of both. What a condition says of one side alone is asked of its rows
        first: rows that cannot count take no place of those that can.
        """
        private = list(private_datasets(joins))
        with opened_together([self.own, *(self.private[dataset] for dataset in private)]) as (table, *others):
            tables = dict(zip(private, others, strict=True))
            yield self._stepped(table, joins, tables, share=_limited(share, self.limit), where=where)

    def _stepped(
        self,
        table: EngineTable,
        steps: Sequence[Step],
        tables: Mapping[Dataset, EngineTable],
        *,
        share: Share | None,
        where: Expression | None,
    ) -> EngineTable:
        """The rows after all steps; ``share`` holds the rows before a person has one row to their own limit."""
        for place, step in enumerate(steps):
            match step:
                case PerPerson():
                    table = per_person(table, person=step.person, where=step.where, values=step.values)
                    share = _limited(share, ONE_ROW_A_PERSON)
                case PersonJoin():
                    own = _limited(share, self.limits.get(step.dataset))
                    there = self._stepped(tables[step.dataset], step.steps, tables, share=own, where=step.where)
                    there = there if step.where is None else there.filter(predicate(step.where, there))
                    table = beside_person(table, there, person=step.person, named=step.name)
                case Join():
                    known = self.public.get(step.dataset)
                    other = tables[step.dataset] if known is None else public_rows(table, known.columns)
                    if known is None and share is not None:
                        later = next((each for each in steps[place:] if isinstance(each, PerPerson)), None)
                        asked = where if later is None else later.where
                        table, other = self._sides(step, table, other, share, asked)
                    table = joined(table, other, on=step.on, named=step.dataset.name, unmatched=step.unmatched)
        return table

    def _sides(
        self, join: Join, table: EngineTable, other: EngineTable, share: Share, where: Expression | None
    ) -> tuple[EngineTable, EngineTable]:
        """Both sides of a private join, each held to its limit."""
        own = {column: column for column in table.columns}
        theirs = {prefixed(join.dataset, column): column for column in other.columns}
        limit = self.limits.get(join.dataset, share.limit)
        sides = []
        for side, names, most, on in (
            (table, own, share.limit.rows, [here for here, _ in join.on]),
            (other, theirs, limit.rows, [there for _, there in join.on]),
        ):
            renamed = side.rename({name: column for name, column in names.items() if name != column})
            for part in _parts(where):
                if columns_of(part) <= names.keys():
                    renamed = renamed.filter(predicate(part, renamed))
            met = renamed.rename({column: name for name, column in names.items() if name != column})
            sides.append(few_rows(met, person=share.column, most=most, on=on, secret=share.secret))
        return sides[0], sides[1]


def _limited(share: Share | None, limit: Limit | None) -> Share | None:
    """The same share with another limit."""
    return share if share is None or limit is None else replace(share, limit=limit)


def _parts(where: Expression | None) -> Sequence[Expression]:
    """The conditions that must all be met."""
    if where is None:
        return ()
    return where.parts if isinstance(where, AllOf) else (where,)


def check_columns(query: TableQuery, beside: Beside, unit: Unit) -> None:
    """Refuse a query that does not fit the names and types of the columns; no row is read."""
    columns = beside.columns(query.joins)
    if isinstance(unit, User | Family):
        _check_person(unit.column, columns)
    for keys in _keys(query):
        _check_keys(keys, columns)
    for name in query.over if isinstance(query, PartitionSelection) else ():
        _check_found(name, columns)
    if query.where is not None:
        check(query.where, columns)
    for measure in query.measures if isinstance(query, Aggregate) else ():
        _check_measure(measure, columns)
    for of in (query.outcome, *query.numbers) if isinstance(query, GramMatrix) else ():
        _check_number(written(of.value), of, columns)
    for of in query.spread if isinstance(query, SplineCounts) else ():
        _check_number(written(of.value), of, columns)
    if isinstance(query, Quantiles | Magnitudes):
        _check_number(query.names[0], query.of, columns)


def exact_numbers(query: TableQuery, beside: Beside, *, unit: Unit, limit: Limit | None, secret: str) -> object:
    """Add up in the engine. Sensitive: the result is exact and must meet noise before anyone sees it.

    Numbers for counts and measures; values and rows of each group for quantiles; persons of each key that occurs.
    """
    person = unit.column if isinstance(unit, User | Family) else None
    if isinstance(query, Contributions | LimitSuggestion | Magnitudes):
        return _persons_counted(query, beside, person=person or "")
    share = None
    if person is not None and limit is not None:
        share = Share(column=person, limit=limit, secret=secret, single=are_single(query.joins))
    with beside.opened(query.joins, share=share, where=query.where) as table:
        if isinstance(query, PartitionSelection):
            found = persons_by_key(table, where=query.where, columns=query.over, share=share)
            return {tuple(_label(part) for part in key): persons for key, persons in found.items()}
        if isinstance(query, Marginals):
            counted = ([key_column(keys) for keys in by] for by in query.tables)
            parts = (bounded_counts(table, where=query.where, keys=keys, share=share) for keys in counted)
            return [number for part in parts for number in part]
        keys = [key_column(keys) for keys in query.by]
        if isinstance(query, WeightedMarginals):
            coded = [replace(key, other=key.column in query.missing) for key in keys]
            tables = marginal_counts(table, where=query.where, keys=coded, share=share, tables=query.tables)
            weighted = zip(tables, query.weights, strict=True)
            return [number * weight for counted, weight in weighted for number in counted]
        if isinstance(query, Quantiles):
            return lattice_counts(table, where=query.where, keys=keys, share=share, lattice=query.lattice)
        if isinstance(query, SplineCounts):
            return spline_totals(
                table, where=query.where, keys=keys, share=share, lattices=query.lattices, bases=query.bases
            )
        gauges, histograms = _gauges(query)
        totals = []
        if gauges:
            totals = bounded_totals(table, where=query.where, keys=keys, share=share, gauges=gauges)
        for each in histograms:
            totals += bounded_histogram(table, where=query.where, keys=keys, share=share, histogram=each)
    return [number for part in totals for number in part]


def _gauges(query: TableQuery) -> tuple[list[Gauge], list[Histogram]]:
    """What is added up of each row, and after that what is counted by bins."""
    match query:
        case Aggregate():
            held = [block.gauge for block in query.blocks]
            gauges = [gauge for gauge in held if not isinstance(gauge, Histogram)]
            return gauges, [gauge for gauge in held if isinstance(gauge, Histogram)]
        case LayeredCount(steps=(lower, upper), uncut_to=most):
            return [RowLayers(lower=lower, upper=upper, most=most)], []
        case GramMatrix():
            return [query.gauge], []
    return [RowIndicator(height=1)], []


def _persons_counted(query: Contributions | LimitSuggestion | Magnitudes, beside: Beside, *, person: str) -> object:
    """Persons by what they have, all their rows counted: no limit is applied to what a limit is looked for in."""
    with beside.opened(query.joins) as table:
        if isinstance(query, Magnitudes):
            return persons_by_magnitude(
                table, where=query.where, person=person, lattice=query.lattice, edges=query.edges
            )
        keys = [key_column(keys) for keys in query.by]
        if isinstance(query, Contributions):
            rows, groups = query.row_edges, query.group_edges
        else:
            rows, groups = query.candidates[-1][:-1], query.candidates[0][:-1] if query.by else ()
        persons = persons_by_contribution(table, where=query.where, keys=keys, person=person, rows=rows, groups=groups)
    if isinstance(query, Contributions):
        return persons
    wide = len(groups) + 1
    above = [_above([sum(persons[place : place + wide]) for place in range(0, len(persons), wide)])]
    return [_above([sum(persons[place::wide]) for place in range(wide)]), *above] if query.by else above


def _above(persons: Sequence[int]) -> list[int]:
    """How many persons are above each edge, from those in each bin: one number less."""
    return [sum(persons[place:]) for place in range(1, len(persons))]


def _keys(query: TableQuery) -> list[Keys]:
    match query:
        case PartitionSelection():
            return []
        case Marginals():
            return [keys for by in query.tables for keys in by]
        case GramMatrix():
            return list(query.factors)
    return list(query.by)


def _label(part: object) -> object:
    return part.isoformat() if isinstance(part, date) else part


def key_column(keys: Keys) -> KeyColumn:
    """What the engine groups by."""
    values = tuple(_held(value) for value in keys.values)
    return KeyColumn(column=keys.column, values=values, value=keys.value, other=keys.other is not None)


def _held(value: KeyValue | Date | Time) -> KeyValue:
    """A key as the engine meets it: a time in microseconds, as values that are times are."""
    match value:
        case Date():
            return value.day
        case Time():
            return value.microseconds
    return value


def _person_columns(found: dict[str, Type], step: PerPerson) -> dict[str, Type]:
    """The columns of one row a person."""
    _check_person(step.person, found)
    if step.where is not None:
        check(step.where, found)
    return {step.person: found[step.person], **{each.name: each.type_in(found) for each in step.values}}


def _check_names(name: str, here: Mapping[str, Type], there: Mapping[str, Type]) -> None:
    """Refuse columns of one name, as an engine sees names: it would read one of them for the other."""
    taken = set(map(told_apart, here))
    twice = next((name for name in there if told_apart(name) in taken), None)
    if twice is None and len(set(map(told_apart, there))) < len(there):
        twice = next(iter(there))
    if twice is not None:
        raise InvalidInput(
            f"the join with {name!r} would make a second column {twice!r}, capital letters aside; nothing "
            "was read and nothing was spent. Declare one of the tables by another name."
        )


def _check_pair(join: Join, here: Type | None, there: Type | None, names: tuple[str, str]) -> None:
    for found, name, where in ((here, names[0], "the rows"), (there, names[1], f"{join.dataset.name!r}")):
        if found is None:
            raise InvalidInput(
                f"the join asks for {name!r}, which {where} do not have; nothing was read and nothing was spent."
            )
    days = {here, there} <= {Type.DATE, Type.TIME}  # times meet by their days
    if not days and (here is not there or here not in (Type.TEXT, Type.WHOLE, Type.TRUTH)):
        raise InvalidInput(
            f"{names[0]!r} and {names[1]!r} cannot be joined: they must both hold text, whole numbers, dates or truth "
            "values, which compare exactly. Nothing was read and nothing was spent."
        )


def _check_person(column: str, columns: dict[str, Type]) -> None:
    if column not in columns:
        raise InvalidInput(
            f"column {column!r} identifies the unit, and the table does not have it; nothing was read and nothing was "
            f"spent. The columns are {', '.join(sorted(columns))}."
        )
    if columns[column] not in (Type.TEXT, Type.WHOLE):
        raise Unsupported(
            f"the unit column {column!r} must hold text or whole numbers, which compare exactly; nothing was read."
        )


def _check_measure(measure: Measure, columns: dict[str, Type]) -> None:
    for condition in measure.conditions:
        check(condition, columns)
    for of in measure.ranges:
        _check_number(measure.name, of, columns)


def _check_number(name: str, of: Clamped, columns: dict[str, Type]) -> None:
    found = type_of(of.value, columns)
    if found not in (Type.WHOLE, Type.NUMBER):
        raise InvalidInput(
            f"{name!r} needs numbers, and {written(of.value)} is a {found.value}; nothing was read and nothing was "
            "spent."
        )


def _check_found(name: str, columns: dict[str, Type]) -> None:
    if name not in columns:
        raise InvalidInput(
            f"there is no column {name!r} to find keys in; nothing was read and nothing was spent. "
            f"The columns are {', '.join(sorted(columns))}.{did_you_mean(name, columns)}"
        )
    if columns[name] not in (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE, Type.TIME):
        raise Unsupported(
            f"column {name!r} cannot identify groups: its values do not compare exactly on every engine. Nothing was "
            "read and nothing was spent."
        )


def _check_keys(keys: Keys, columns: dict[str, Type]) -> None:
    if keys.value is not None:
        _check_kind(keys, type_of(keys.value, columns))
        return
    if keys.column not in columns:
        raise InvalidInput(
            f"there is no column {keys.column!r} to group by; nothing was read and nothing was spent. "
            f"The columns are {', '.join(sorted(columns))}.{did_you_mean(keys.column, columns)}"
        )
    _check_kind(keys, columns[keys.column])


def _check_kind(keys: Keys, held: Type) -> None:
    wanted = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, Date: Type.DATE, Time: Type.TIME}[type(keys.values[0])]
    if held is not wanted and (held, wanted) != (Type.TIME, Type.DATE):
        raise InvalidInput(
            f"the declared keys of {keys.column!r} are {wanted.value}s and the column holds {held.value}s; nothing was "
            "read and nothing was spent. Declare keys of the column's type."
        )
