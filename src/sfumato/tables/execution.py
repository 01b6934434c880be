"""From a declaration to the engine: checked against the columns first, run only when the gate says so."""

from sfumato.core.limits import Limit
from sfumato.core.units import Family, Unit, User
from sfumato.engines.counts import KeyColumn, Share, bounded_counts
from sfumato.engines.expressions import Type, check
from sfumato.engines.sources import Source
from sfumato.errors import InvalidInput, Unsupported
from sfumato.tables.queries.count import Count, Keys

__all__ = ["check_columns", "exact_counts"]


def check_columns(query: Count, source: Source, unit: Unit) -> None:
    """Refuse a query that does not fit the names and types of the columns; no row is read."""
    columns = source.columns()
    if isinstance(unit, User | Family):
        _check_person(unit.column, columns)
    for keys in query.by:
        _check_keys(keys, columns)
    if query.where is not None:
        check(query.where, columns)


def exact_counts(query: Count, source: Source, *, unit: Unit, limit: Limit | None, secret: str) -> list[int]:
    """Count in the engine. Sensitive: the result is exact and must meet noise before anyone sees it."""
    person = unit.column if isinstance(unit, User | Family) else None
    share = None if person is None or limit is None else Share(column=person, limit=limit, secret=secret)
    keys = [KeyColumn(column=keys.column, values=keys.values) for keys in query.by]
    with source.opened() as table:
        return bounded_counts(table, where=query.where, keys=keys, share=share)


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


def _check_keys(keys: Keys, columns: dict[str, Type]) -> None:
    if keys.column not in columns:
        raise InvalidInput(
            f"there is no column {keys.column!r} to group by; nothing was read and nothing was spent. "
            f"The columns are {', '.join(sorted(columns))}."
        )
    wanted = {str: Type.TEXT, int: Type.WHOLE, bool: Type.TRUTH}[type(keys.values[0])]
    if columns[keys.column] is not wanted:
        raise InvalidInput(
            f"the declared keys of {keys.column!r} are {wanted.value}s and the column holds "
            f"{columns[keys.column].value}s; nothing was read and nothing was spent. Declare keys of the column's type."
        )
