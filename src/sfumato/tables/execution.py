"""From a declaration to the engine: checked against the columns first, run only when the gate says so."""

from datetime import date
from typing import Any

from sfumato.core.limits import Limit
from sfumato.core.units import Family, Unit, User
from sfumato.engines.bounded import KeyColumn, Share, bounded_totals
from sfumato.engines.expressions import Date, Type, check, type_of, written
from sfumato.engines.found_keys import persons_by_key
from sfumato.engines.gauges import Rows
from sfumato.engines.quantile_counts import lattice_counts
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.answering import TableQuery
from sfumato.tables.keys import Keys
from sfumato.tables.measures import Measure, Proportion, Ranged, RowCount, ranges_of
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.found_keys import FoundKeys
from sfumato.tables.queries.quantiles import Quantiles

__all__ = ["check_columns", "exact_numbers", "key_column"]


def check_columns(query: TableQuery, source: Source, unit: Unit) -> None:
    """Refuse a query that does not fit the names and types of the columns; no row is read."""
    columns = source.columns()
    if isinstance(unit, User | Family):
        _check_person(unit.column, columns)
    for keys in () if isinstance(query, FoundKeys) else query.by:
        _check_keys(keys, columns)
    for name in query.over if isinstance(query, FoundKeys) else ():
        _check_found(name, columns)
    if query.where is not None:
        check(query.where, columns)
    for measure in query.measures if isinstance(query, Aggregate) else ():
        _check_measure(measure, columns)
    if isinstance(query, Quantiles):
        _check_number(query.names[0], query.of, columns)


def exact_numbers(query: TableQuery, source: Source, *, unit: Unit, limit: Limit | None, secret: str) -> Any:
    """Add up in the engine. Sensitive: the result is exact and must meet noise before anyone sees it.

    Numbers for counts and measures; values and rows of each group for quantiles; persons of each key that occurs.
    """
    person = unit.column if isinstance(unit, User | Family) else None
    share = None if person is None or limit is None else Share(column=person, limit=limit, secret=secret)
    with source.opened() as table:
        if isinstance(query, FoundKeys):
            found = persons_by_key(table, where=query.where, columns=query.over, share=share)
            return {tuple(_label(part) for part in key): persons for key, persons in found.items()}
        keys = [key_column(keys) for keys in query.by]
        if isinstance(query, Quantiles):
            return lattice_counts(table, where=query.where, keys=keys, share=share, lattice=query.lattice)
        gauges = [block.gauge for block in query.blocks] if isinstance(query, Aggregate) else [Rows(height=1)]
        totals = bounded_totals(table, where=query.where, keys=keys, share=share, gauges=gauges)
    return [number for part in totals for number in part]


def _label(part: object) -> object:
    return part.isoformat() if isinstance(part, date) else part


def key_column(keys: Keys) -> KeyColumn:
    """What the engine groups by."""
    values = tuple(value.day if isinstance(value, Date) else value for value in keys.values)
    return KeyColumn(column=keys.column, values=values, value=keys.value, other=keys.other is not None)


def _check_person(column: str, columns: dict[str, Type]) -> None:
    if column not in columns:
        raise InvalidInput(
            f"the unit is told by column {column!r}, which the table does not have; nothing was read and nothing was "
            f"spent. The columns are {', '.join(sorted(columns))}."
        )
    if columns[column] not in (Type.TEXT, Type.WHOLE):
        raise Unsupported(
            f"the unit column {column!r} must hold text or whole numbers, which compare exactly; nothing was read."
        )


def _check_measure(measure: Measure, columns: dict[str, Type]) -> None:
    if isinstance(measure, RowCount | Proportion) and measure.condition is not None:
        check(measure.condition, columns)
    for of in ranges_of(measure):
        _check_number(measure.name, of, columns)


def _check_number(name: str, of: Ranged, columns: dict[str, Type]) -> None:
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
            f"The columns are {', '.join(sorted(columns))}."
        )
    if columns[name] not in (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE):
        raise Unsupported(
            f"column {name!r} cannot tell groups apart: its values do not compare exactly on every engine. Nothing was "
            "read and nothing was spent."
        )


def _check_keys(keys: Keys, columns: dict[str, Type]) -> None:
    if keys.value is not None:
        _check_kind(keys, type_of(keys.value, columns))
        return
    if keys.column not in columns:
        raise InvalidInput(
            f"there is no column {keys.column!r} to group by; nothing was read and nothing was spent. "
            f"The columns are {', '.join(sorted(columns))}."
        )
    _check_kind(keys, columns[keys.column])


def _check_kind(keys: Keys, held: Type) -> None:
    wanted = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH, Date: Type.DATE}[type(keys.values[0])]
    if held is not wanted:
        raise InvalidInput(
            f"the declared keys of {keys.column!r} are {wanted.value}s and the column holds {held.value}s; nothing was "
            "read and nothing was spent. Declare keys of the column's type."
        )
