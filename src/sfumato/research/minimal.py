"""Minimisation: a project sees the columns that it was approved for, and a question that names another is refused.

The column that identifies persons is always read, since limits are kept by it; a question may name it only where it was
approved like any other.
"""

import dataclasses
from collections.abc import Iterator

from sfumato.core.query import Query
from sfumato.core.units import Family, Unit, User
from sfumato.engines.expressions import Cased, CaseWhen, Cast, Cut, Ending, Replaced, Slice, Trimmed
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.tables.keys import Keys
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.question_parts import STEPS
from sfumato.tables.schema import Schema

__all__ = ["check_depth", "check_person_column", "narrowed"]

MOST_DEPTH = 6
_MADE = (Cased, Cast, CaseWhen, Cut, Ending, Replaced, Slice, Trimmed)


def narrowed(schema: Schema, columns: tuple[str, ...]) -> Schema:
    """A schema with these columns and the one that identifies persons, and no others.

    >>> from sfumato.engines.expressions import Type
    >>> from sfumato.tables.column_facts import ColumnFacts
    >>> whole = Schema(name="visits", edition="1", unit="id", columns=tuple(
    ...     ColumnFacts(name=name, type=Type.TEXT) for name in ("id", "ward", "diagnosis")))
    >>> [column.name for column in narrowed(whole, ("ward",)).columns]
    ['id', 'ward']
    """
    unknown = sorted(set(columns) - set(schema.types))
    if unknown:
        raise NotDeclared(
            f"the schema of {schema.name!r} has no column {', '.join(map(repr, unknown))}, which the project names; "
            "nothing was read and nothing was spent."
        )
    kept = {*columns, *(() if schema.unit is None else (schema.unit,))}
    return dataclasses.replace(
        schema,
        columns=tuple(column for column in schema.columns if column.name in kept),
        provenance=tuple((field, column) for field, column in schema.provenance if column in kept),
    )


def check_person_column(query: Query, unit: Unit, approved: frozenset[str]) -> None:
    """Refuse a question that names the column of persons, where the project was not approved for it."""
    if not isinstance(unit, User | Family) or unit.column in approved:
        return
    for name in _named(query):
        if name == unit.column or name.endswith(f".{unit.column}"):
            raise Refused(
                f"the project is not approved for the column {unit.column!r}, which tells persons apart; nothing was "
                "read and nothing was spent. Ask about other columns, or count persons."
            )


def check_depth(query: Query) -> None:
    """Refuse texts made of texts made of texts: an engine writes each out at least twice in the next.

    The time that a question takes would grow without an end with the question, and with it what time can tell of rows.
    """
    if _depth(query) > MOST_DEPTH:
        raise InvalidInput(
            f"a question makes texts, cases and casts of one another up to {MOST_DEPTH} times; nothing was read and "
            "nothing was spent. Ask in simpler terms."
        )


def _depth(part: object) -> int:
    if isinstance(part, tuple):
        return max(map(_depth, part), default=0)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return 0
    inner = max((_depth(getattr(part, field.name)) for field in dataclasses.fields(part)), default=0)
    return inner + isinstance(part, _MADE)


def _named(part: object) -> Iterator[str]:
    """All columns that the parts of a question name, but those by which joins and persons are told."""
    if isinstance(part, tuple):
        for inner in part:
            yield from _named(inner)
        return
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return
    if isinstance(part, PartitionSelection):
        yield from part.over
    column = getattr(part, "column", None)
    if isinstance(column, str) and not (isinstance(part, Keys) and part.value is not None):
        yield column
    for field in dataclasses.fields(part):
        if not (isinstance(part, STEPS) and field.name in ("on", "person")):
            yield from _named(getattr(part, field.name))
