"""Synthetic persons with their rows: a table of persons, tables of what they have, and the one question for both.

Each person becomes one row: the person's own columns, how many rows there are in each child table, and the columns of
the first, the second … of them in a declared order. So one person is in one cell of every table that is counted,
however many rows the person has. Proof: docs/proofs/synthetic_relations.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from itertools import combinations
from math import prod, sqrt
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact
from sfumato.core.question import Question
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.core.units import Family, User
from sfumato.engines.expressions import Date, Expression, Time, coalesce, col, least, written
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.synthesis.columns import BinnedColumn, SyntheticColumn
from sfumato.synthesis.declared import DeclaredRows
from sfumato.synthesis.levels import CodeLevel
from sfumato.synthesis.plan import MeasurementPlan, predicted_error, weighted
from sfumato.synthesis.related_parts import RelatedParts, wide_codes, wide_columns
from sfumato.synthesis.related_result import PERSONS, RelatedQuality, SyntheticRelations
from sfumato.synthesis.related_rows import ChildShape, MadeChild, RelatedShape, made_family
from sfumato.synthesis.result import MeasuredMarginal
from sfumato.synthesis.row_making import TOLD_APART
from sfumato.tables.hierarchies import (
    GroupedCodes,
    Hierarchies,
    Hierarchy,
    given_hierarchies,
    hierarchies_of,
    weight_of_codes,
)
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.measures.row_count import count
from sfumato.tables.of_person import first
from sfumato.tables.persons import is_per_person, no_persons
from sfumato.tables.private_bins import QuantileBins
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.synthesized import MOST_CELLS, MOST_ROWS, column_of, keys_of_column

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sfumato.synthesis.measured import Codes, MeasuredTable
    from sfumato.tables.table import Table

__all__ = ["ChildRows", "RelatedSynthesis", "related_of"]

MOST_CHILD_ROWS = 20
TOO_FEW_PERSONS = 0.15
"""The predicted error above which columns are measured one by one; for rows of one table it is higher. Few persons have
a last row, and what is noise in one row goes on into the next: with invented stays at 1,000 persons, pairs lost by a
third at 0.2 and won by a quarter at 0.07."""
NUMBER = "number"
Bins = Mapping[str, int | Sequence[Exact | date]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChildRows:
    """The rows that persons have in another table: stays, diagnoses, prescriptions.

    ``order`` is the column that a person's rows come in the order of, such as the date of admission. Of each person the
    first ``most`` rows are measured, and at most as many are made. ``follow`` names columns whose value depends on the
    one in the row before; of each pair of rows in a row it is counted how values go from one to the other. ``columns``
    are by default all that have declared keys or bounds; ``bins`` and ``hierarchies`` are as for
    :meth:`Table.synthesize`, and of a column with a hierarchy the group follows itself.

    Assumes: the order tells a person's rows apart. Of rows that are equal in it, each column comes in an order of its
    own, and what belonged to one row may stand in two.

    >>> from sfumato.demo.clinic import visits
    >>> ChildRows(visits(), order="age", most=3).most
    3
    """

    table: "Table"
    _: KW_ONLY
    order: str
    most: int
    columns: Sequence[str] | None = None
    follow: Sequence[str] = ()
    bins: Bins = field(default_factory=dict)
    hierarchies: Hierarchies = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most <= MOST_CHILD_ROWS:
            raise InvalidInput(f"most is a whole number from 1 to {MOST_CHILD_ROWS} of rows; nothing was done.")
        if isinstance(self.columns, str) or isinstance(self.follow, str) or not isinstance(self.order, str):
            raise InvalidInput("order is a column, columns and follow are lists of columns; nothing was done.")

    @property
    def names(self) -> list[str]:
        """The columns that are made."""
        if self.columns is not None:
            return list(self.columns)
        return list(dict.fromkeys([*self.table.keys, *self.table.bounds, *self.hierarchies]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Child:
    """A child table, checked: its columns, and those of all rows of a person as groups of the question."""

    name: str
    columns: tuple[SyntheticColumn, ...]
    keys: tuple[Keys, ...]
    most: int
    follow: tuple[int, ...]
    ordered: int | None
    """The column of the order itself, where it is made."""
    condition: str = ""
    """Which of the rows count, as a condition; all of them if empty."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Codes:
    """Codes below groups, of the persons or of a child table; of the latter there is one table for each row."""

    child: int | None
    level: CodeLevel
    keys: tuple[Keys, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelatedSynthesis:
    """Persons, their rows and what is measured of both: everything that is decided before ε is.

    Guarantee: nothing is read and nothing is spent until :meth:`release`, which charges one question in which a person
    is in one cell of each table.
    """

    table: "Table"
    person: str
    columns: tuple[SyntheticColumn, ...]
    keys: tuple[Keys, ...]
    children: tuple[_Child, ...]
    persons: int | None
    codes: tuple[_Codes, ...] = ()

    @property
    def shape(self) -> RelatedShape:
        """Where each column stands."""
        return RelatedShape(
            persons=tuple(column.size for column in self.columns),
            children=tuple(
                ChildShape(sizes=tuple(column.size for column in each.columns), most=each.most, follow=each.follow)
                for each in self.children
            ),
        )

    def plan(self, *, epsilon: Exact, delta: Exact = 0) -> MeasurementPlan:
        """Which tables would be measured, by public facts alone."""
        shape = self.shape
        pairs = weighted(shape.sizes, [([(table, 1.0) for table in _pairs(shape)], 1.0)], "pairs")
        preview = self._asked(pairs).preview(epsilon=epsilon, delta=delta)
        expected = self.table.n_units if self.table.n_units is not None else self.persons
        noise = sqrt(preview.mechanism.law.variance)
        if expected is None or predicted_error(shape.sizes, pairs, noise, expected) <= TOO_FEW_PERSONS:
            return pairs
        return weighted(shape.sizes, [([(table, 1.0) for table in _singles(shape)], 1.0)], "singles")

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
    ) -> SyntheticRelations:
        """Charge, measure, and make persons and rows of the release; parameters as for a question."""
        plan = self.plan(epsilon=epsilon, delta=delta)
        asked = self._asked(plan)
        release = asked.release(epsilon=epsilon, delta=delta, fresh=fresh, idempotency=idempotency, reads=reads)
        return self.made(release, plan.reason)

    def made(self, release: Release, reason: str) -> SyntheticRelations:
        """Persons and rows of a release: the same each time, for the generator is seeded from it."""
        import numpy as np
        import pyarrow as pa

        from sfumato.studies.draws import seeded_by
        from sfumato.synthesis.measured import MeasuredTable, total_of

        query = release.statement.query
        shape = self.shape
        wide = len(shape.sizes)
        if not isinstance(query, WeightedMarginals) or query.sizes[:wide] != shape.sizes:
            raise InvalidInput("this release is not of tables that these rows can be made of; nothing was made.")
        sigma = float(release.statement.law.variance) ** 0.5
        every = [
            MeasuredTable(
                columns=some,
                counts=np.array(values, dtype=float).reshape([query.sizes[place] for place in some]) / weight,
                sigma=sigma / weight,
            )
            for some, weight, values in query.answers(release.statement.values)
        ]
        measured = [table for table in every if table.columns[-1] < wide]
        total = total_of(measured)
        persons = max(1, min(round(total), MOST_ROWS)) if self.persons is None else self.persons
        random = seeded_by(release)()
        family = made_family(measured, shape, persons, total, random)
        serial = pa.array(np.arange(1, persons + 1))
        tables = {PERSONS: pa.table({self.person: serial, **_arrays(self.columns, family.persons, random)})}
        for child, made in zip(self.children, family.children, strict=True):
            tables[child.name] = self._rows(child, made, random)
        alone, scale = every[len(measured) :], max(total, 1.0) / persons
        for each in self.codes:
            own, alone = alone[: len(each.keys)], alone[len(each.keys) :]
            name = self._file_of(each)
            cells = family.persons if each.child is None else family.children[each.child].codes
            groups = cells[:, each.level.group]
            expected = np.bincount(groups, minlength=each.level.groups + 1)[: each.level.groups] * scale
            furthest = float(release.statement.law.margin(TOLD_APART, numbers=each.level.cells)) / sigma
            noise = sqrt(sum(table.sigma**2 for table in own))
            likely = each.level.shares(sum(table.counts[:-1] for table in own), furthest * noise, expected)  # type: ignore[arg-type]  # an array: there is one at least
            tables[name] = tables[name].append_column(each.level.name, each.level.drawn(groups, likely, random))
        names = [keys.column for keys in query.by]
        quality = RelatedQuality(
            reason=reason,
            marginals=tuple(
                MeasuredMarginal(
                    columns=tuple(names[place] for place in each.columns),
                    cells=each.counts.size,
                    noise=each.sigma,
                    predicted_error=0.4 * each.sigma * each.counts.size / max(total, 1.0),
                )
                for each in every
            ),
            chi_squared=family.misfit,
            child_chi_squared={
                child.name: made.misfits for child, made in zip(self.children, family.children, strict=True)
            },
            estimated_persons=total,
            declared_persons=self.persons is not None,
            most={child.name: child.most for child in self.children},
            codes=tuple(each.level.name for each in self.codes),
        )
        return SyntheticRelations(
            release=release,
            tables=tables,
            person=self.person,
            quality=quality,
            parts=self._parts(measured, wide_codes(family, shape)),
        )

    def _parts(self, measured: "Sequence[MeasuredTable]", codes: "Codes") -> RelatedParts:
        """What the page and the folder are made of."""
        shape = self.shape
        children = {child.name: (child.most, child.columns) for child in self.children}
        labels = {
            f"{name}.{column.name}_{row}": f"{name}.{column.name}"
            for name, (most, columns) in children.items()
            for column in (*columns, *(each.level for each in self.codes if self._file_of(each) == name))
            for row in range(1, most + 1)
        }
        return RelatedParts(
            columns=wide_columns(self.columns, children),
            top=shape.top,
            first=tuple(
                shape.place(number, 1, column)
                for number, child in enumerate(self.children)
                for column in range(len(child.columns))
            ),
            codes=codes,
            measured=tuple(measured),
            declared={
                name: DeclaredRows(
                    columns=(
                        *columns,
                        *(
                            each.level.listed(missing=columns[each.level.group].missing)
                            for each in self.codes
                            if self._file_of(each) == name
                        ),
                    ),
                    condition=condition,
                )
                for name, columns, condition in (
                    (PERSONS, self.columns, "" if self.table.predicate is None else written(self.table.predicate)),
                    *((child.name, child.columns, child.condition) for child in self.children),
                )
            },
            labels=labels,
        )

    def _file_of(self, codes: _Codes) -> str:
        return PERSONS if codes.child is None else self.children[codes.child].name

    def _rows(self, child: _Child, made: MadeChild, random: "np.random.Generator") -> "pa.Table":
        """The rows of a child table; values of the order rise within a person."""
        import numpy as np
        import pyarrow as pa

        codes = made.codes
        drawn = _values(child.columns, codes, random)
        if child.ordered is not None and child.ordered in drawn:
            values = drawn[child.ordered]
            rising = np.lexsort((values, made.owner))  # owners rise already, and keep their places
            drawn[child.ordered] = values[rising]
        arrays = {
            column.name: column.arrow(codes[:, place], drawn.get(place)) for place, column in enumerate(child.columns)
        }
        return pa.table({self.person: pa.array(made.owner + 1), NUMBER: pa.array(made.number), **arrays})

    def _asked(self, plan: MeasurementPlan) -> Question:
        below = [keys for child in self.children for keys in child.keys]
        codes = [keys for each in self.codes for keys in each.keys]
        sizes, first = self.shape.sizes, len(self.shape.sizes)
        known = [
            (prod(sizes[place] for place in some), weight)
            for some, weight in zip(plan.tables, plan.weights, strict=True)
        ]
        query = WeightedMarginals(
            dataset=self.table.dataset,
            by=(*self.keys, *below, *codes),
            tables=(*plan.tables, *((first + place,) for place in range(len(codes)))),
            weights=(*plan.weights, *(weight_of_codes(keys.size + 1, known) for keys in codes)),
            missing=(
                *(column.name for column in self.columns if column.missing),
                *(
                    keys.column for keys in (*below, *codes)
                ),  # a person without such a row, or a code that is not listed
            ),
            where=self.table.predicate,
            joins=self.table.joins,
        )
        return self.table._question(query)


def related_of(
    table: "Table",
    children: Mapping[str, ChildRows],
    columns: Sequence[str] | None,
    *,
    persons: int | None,
    bins: Bins,
    missing: Sequence[str],
    hierarchies: Hierarchies,
) -> RelatedSynthesis:
    """What is asked for, checked: one row a person above, rows with an order below, and public cells everywhere."""
    unit = getattr(table._gate, "unit", None)
    if not isinstance(unit, User | Family):
        raise no_persons(unit)
    if table.by or (not is_per_person(table.joins) and (table.limit is None or table.limit.rows != 1)):
        raise InvalidInput(
            "persons with rows are made of a table of one row a person that is not grouped; nothing was done. Declare "
            "it with limit=sf.Limit(groups=1, rows_per_group=1), or make one with per_person(…)."
        )
    if persons is not None and (
        isinstance(persons, bool) or not isinstance(persons, int) or not 1 <= persons <= MOST_ROWS
    ):
        raise InvalidInput(f"persons is a whole number from 1 to {MOST_ROWS:,}; nothing was done.")
    if (
        not isinstance(children, Mapping)
        or not children
        or not all(isinstance(it, ChildRows) for it in children.values())
    ):
        raise InvalidInput("children maps names of tables to sf.ChildRows(…); nothing was done.")
    default = dict.fromkeys([*table.keys, *table.bounds, *given_hierarchies(hierarchies)])
    names = list(columns) if columns is not None else list(default)
    _check_names("columns", names, [unit.column])
    for what, named in (("bins", bins), ("missing", missing)):
        unknown = [name for name in named if name not in names]
        if unknown:
            raise InvalidInput(
                f"{what} names {', '.join(unknown)}, which is none of the columns {', '.join(names)}; nothing was "
                f"done.{did_you_mean(unknown[0], names)}"
            )
    ranked = hierarchies_of(table, hierarchies, names, missing)
    made = tuple(
        ranked[name].column if name in ranked else _plain_column(table, name, bins, missing=name in missing)
        for name in names
    )
    keys = tuple(
        ranked[name].keys if name in ranked else keys_of_column(table, column)
        for name, column in zip(names, made, strict=True)
    )
    codes = [
        _Codes(child=None, level=each.level(names.index(name)), keys=(each.codes,)) for name, each in ranked.items()
    ]
    beside = table.with_persons(**{name: _wide(table, name, child) for name, child in children.items()})
    found = []
    for place, (name, child) in enumerate(children.items()):
        below = hierarchies_of(child.table, child.hierarchies, child.names, ())
        found.append(_child(beside, name, child, below))
        codes += [
            _Codes(
                child=place,
                level=each.level(child.names.index(column)),
                keys=tuple(
                    Keys(column=f"{name}.{column}_{row}", values=each.codes.values) for row in range(1, child.most + 1)
                ),
            )
            for column, each in below.items()
        ]
    numbers = tuple(
        Keys(
            column=name,
            values=tuple(range(child.most + 1)),
            value=least(coalesce(col(f"{name}.{NUMBER}"), 0), child.most).node,
        )
        for name, child in children.items()
    )
    asked = RelatedSynthesis(
        table=beside,
        person=unit.column,
        columns=made,
        keys=(*keys, *numbers),
        children=tuple(found),
        persons=persons,
        codes=tuple(codes),
    )
    if PERSONS in children or set(names) & set(children):
        raise InvalidInput(
            f"a child table is called {PERSONS!r} or as a column of the persons; nothing was done. Rename it."
        )
    if sum(asked.shape.sizes) > MOST_CELLS:
        raise InvalidInput(
            f"the columns of persons and of all their rows have {sum(asked.shape.sizes):,} values and bins together, "
            f"and rows are made for at most {MOST_CELLS:,}; nothing was done. Use fewer bins, or a smaller most=…."
        )
    return asked


def _pairs(shape: RelatedShape) -> list[tuple[int, ...]]:
    """All pairs of what a person has, each with each column of each row, pairs in one row, and steps to the next."""
    found: list[tuple[int, ...]] = list(combinations(range(shape.top), 2)) or [(0,)]
    for number, child in enumerate(shape.children):
        above = (*range(len(shape.persons)), shape.number(number))
        for row in range(1, child.most + 1):
            own = [shape.place(number, row, column) for column in range(len(child.sizes))]
            found += [(one, two) for one in above for two in own]
            found += combinations(own, 2)
        found += _steps(shape, number)
    return found


def _singles(shape: RelatedShape) -> list[tuple[int, ...]]:
    """Each column by itself, and the steps that were asked for."""
    found: list[tuple[int, ...]] = [(place,) for place in range(len(shape.sizes))]
    return found + [step for number in range(len(shape.children)) for step in _steps(shape, number)]


def _steps(shape: RelatedShape, number: int) -> list[tuple[int, ...]]:
    child = shape.children[number]
    return [
        (shape.place(number, row - 1, column), shape.place(number, row, column))
        for row in range(2, child.most + 1)
        for column in child.follow
    ]


def _wide(table: "Table", name: str, child: ChildRows) -> "Table":
    """One row a person: how many rows count, and the columns of the first of them."""
    rows = child.table
    if getattr(rows, "_gate", None) is not table._gate or rows.by or is_per_person(rows.joins):
        raise InvalidInput(
            f"the rows of {name!r} are a table of the same vault, neither grouped nor one row a person; nothing was "
            "done."
        )
    _check_names(f"columns of {name!r}", child.names, [table._gate.unit.column, NUMBER])
    unknown = [column for column in (*child.follow, *child.bins) if column not in child.names]
    if unknown:
        raise InvalidInput(
            f"follow and bins of {name!r} name {', '.join(unknown)}, which is none of the columns "
            f"{', '.join(child.names)}; nothing was done.{did_you_mean(unknown[0], child.names)}"
        )
    known = rows.where(~col(child.order).isnull())
    for column in child.names:
        known = known.where(_declared(rows, column, child.hierarchies.get(column)))
    places = {
        f"{column}_{place}": first(column, by=child.order, place=place)
        for place in range(1, child.most + 1)
        for column in child.names
    }
    return known.per_person(**{NUMBER: count()}, **places)


def _declared(rows: "Table", column: str, hierarchy: Mapping[KeyValue, str] | Hierarchy | None) -> Expression:
    """That a row has a declared value, or a code with a group: others do not count, in no table."""
    if hierarchy is not None:
        return col(column).isin(list(hierarchy.group_of if isinstance(hierarchy, Hierarchy) else hierarchy))
    keys = rows.keys.get(column)
    if keys is None:
        found: Expression = ~col(column).isnull()
        return found
    values = [date.fromisoformat(each.value) if isinstance(each, Date) else each for each in keys.values]
    if keys.value is not None or any(isinstance(each, Time) for each in values):
        raise InvalidInput(
            f"{column!r} has computed keys or times, and rows of persons are made without; nothing was done."
        )
    return col(column).isin(values)


def _child(beside: "Table", name: str, child: ChildRows, ranked: Mapping[str, GroupedCodes]) -> _Child:
    rows, names = child.table, child.names
    columns = tuple(
        ranked[column].column if column in ranked else _plain_column(rows, column, child.bins, missing=False)
        for column in names
    )
    keys = []
    for place in range(1, child.most + 1):
        for raw, column in zip(names, columns, strict=True):
            own = f"{name}.{raw}_{place}"
            if raw in ranked:
                value = ranked[raw].hierarchy.value(own).node
                keys.append(Keys(column=f"{name}.{column.name}_{place}", values=ranked[raw].keys.values, value=value))
            else:
                keys.append(_keys_below(beside, column, own))
    return _Child(
        name=name,
        columns=columns,
        keys=tuple(keys),
        most=child.most,
        follow=tuple(names.index(column) for column in child.follow),
        ordered=names.index(child.order) if child.order in names else None,
        condition="" if rows.predicate is None else written(rows.predicate),
    )


def _keys_below(beside: "Table", column: SyntheticColumn, own: str) -> Keys:
    """The cells of a column at one place of a person's rows."""
    if isinstance(column, BinnedColumn):
        return keys_of_column(beside, BinnedColumn(name=own, edges=column.edges, whole=column.whole, days=column.days))
    return beside.keys[own]


def _plain_column(table: "Table", name: str, bins: Bins, *, missing: bool) -> SyntheticColumn:
    if isinstance(bins.get(name), QuantileBins):
        raise InvalidInput(
            f"the bins of {name!r} are to be chosen, and of persons with rows they are given; nothing was done. Ask "
            "for quantiles(…) first and give their values as edges."
        )
    return column_of(table, name, bins.get(name), missing=missing)


def _check_names(what: str, names: Sequence[str], taken: Sequence[str]) -> None:
    if len(set(names)) != len(names) or any(not isinstance(name, str) for name in names):
        raise InvalidInput(f"{what} is a list of different columns; nothing was done.")
    clash = [name for name in names if name in taken]
    if clash:
        raise NotDeclared(
            f"{what} names {clash[0]!r}, which says whose a row is or which one, and is made up anew; nothing was "
            "done. Leave it out."
        )


def _values(
    columns: Sequence[SyntheticColumn],
    codes: "np.ndarray[tuple[int, ...], np.dtype[np.int32]]",
    random: "np.random.Generator",
) -> "dict[int, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]":
    return {
        place: column.drawn(codes[:, place], random)
        for place, column in enumerate(columns)
        if isinstance(column, BinnedColumn)
    }


def _arrays(
    columns: Sequence[SyntheticColumn],
    codes: "np.ndarray[tuple[int, ...], np.dtype[np.int32]]",
    random: "np.random.Generator",
) -> "dict[str, pa.Array]":
    drawn = _values(columns, codes, random)
    return {column.name: column.arrow(codes[:, place], drawn.get(place)) for place, column in enumerate(columns)}
