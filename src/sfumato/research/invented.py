"""Rows that nobody's data stand behind, invented from a schema alone: what a dry run reads.

An ordinary generator draws them: they protect nobody and are about nobody.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa

from sfumato.core.exact import natural
from sfumato.engines.expressions import Type
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema

__all__ = ["invented_for"]

FIRST, LAST = date(2020, 1, 1), date(2029, 12, 31)
MOST_ROWS_EACH = 3


def invented_for(schema: Schema, *, persons: int = 1000, seed: int = 0) -> pa.Table:
    """A table with the columns of a schema, for this many persons, each with up to three rows.

    Guarantee: a function of the schema and of these numbers alone; no file is opened.

    >>> ward = ColumnFacts(name="ward", type=Type.TEXT, keys=("a", "b"))
    >>> schema = Schema(name="visits", edition="1", unit="id", columns=(ColumnFacts(name="id", type=Type.TEXT), ward))
    >>> invented_for(schema, persons=2).column_names
    ['id', 'ward']
    """
    draw = np.random.default_rng(seed)
    each = draw.integers(1, MOST_ROWS_EACH + 1, natural(persons, "persons", most=10**6))
    people = np.repeat(np.arange(persons), each)
    rows: dict[str, pa.Array] = {}
    for column in schema.columns:
        if column.name == schema.unit:
            whole = column.type is Type.WHOLE
            rows[column.name] = pa.array(people if whole else np.char.add("person ", people.astype(str)))
        else:
            rows[column.name] = _column(column, draw, len(people))
    return pa.table(rows)


def _column(column: ColumnFacts, draw: np.random.Generator, rows: int) -> pa.Array:
    if column.keys:
        places = draw.integers(0, len(column.keys), rows)
        listed = pa.array([_day(key) if column.type in (Type.DATE, Type.TIME) else key for key in column.keys])
        return listed.take(pa.array(places))
    if column.type in (Type.DATE, Type.TIME):
        return _days(column, draw, rows)
    if column.type is Type.TRUTH:
        return pa.array(draw.integers(0, 2, rows).astype(bool))
    if column.type is Type.TEXT:
        return pa.array(["invented"] * rows)
    low, high = column.bounds or (0, 100)
    if isinstance(low, date) or isinstance(high, date):
        low, high = Fraction(0), Fraction(100)
    numbers = draw.uniform(float(low), float(high), rows)
    if column.type is Type.WHOLE:
        return pa.array(np.floor(numbers).astype(np.int64))
    return pa.array(numbers)


def _days(column: ColumnFacts, draw: np.random.Generator, rows: int) -> pa.Array:
    first, last = FIRST, LAST
    if column.bounds is not None and isinstance(column.bounds[0], date) and isinstance(column.bounds[1], date):
        first, last = column.bounds[0], column.bounds[1]
    shifts = draw.integers(0, max(1, (last - first).days), rows).tolist()
    found = [first + timedelta(days=shift) for shift in shifts]
    if column.type is Type.DATE:
        return pa.array(found)
    zone = column.zone
    return pa.array([datetime(day.year, day.month, day.day, 12) for day in found], pa.timestamp("us", zone))


def _day(key: object) -> object:
    return date.fromisoformat(str(key))
