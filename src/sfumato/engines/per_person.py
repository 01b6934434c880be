"""One row a person in the engine: all rows of a person become one, and nobody else's rows change it.

Sums are added up in whole numbers, so that no order of rows and no engine rounds otherwise; they are brought back into
64 bits at the end, so that nothing fails. Which row is first is decided by values that are written in the question, in
an order that does not depend on how an engine stores or compares them. Proof: docs/proofs/per_person.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from sfumato.engines.compile import predicate, value
from sfumato.engines.dialect import Dialect
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import Expression, Type
from sfumato.engines.operands import double, kind_of, whole
from sfumato.engines.person_values import Fold, PersonValue

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["beside_person", "decimal_scale", "per_person"]

MOST, LEAST = 2**63 - 1, -(2**63)
FINEST = 2**43  # steps up to the greatest value: a million such values fit 64 bits
TINY = 2.0**-60  # of the greatest value: far below half a step


def per_person(
    table: ir.Table,
    *,
    person: str,
    where: Expression | None,
    values: Sequence[PersonValue],
    world: str | None = None,
) -> ir.Table:
    """A row for each person who has one that meets ``where``: the person, and the values under their names.

    Guarantee: the row of a person depends on the rows of that person alone; rows of nobody are gone before anything is
    compared. ``world`` names a column that tells several datasets in one table apart; each is treated as if it were
    alone.
    """
    rows = table if where is None else table.filter(predicate(where, table))
    rows = rows.filter(rows[person].notnull())
    made: dict[str, ir.Value] = {"person": rows[person]}
    if world is not None:
        made["world"] = rows[world]
    for place, each in enumerate(values):
        if each.where is not None:
            made[f"where{place}"] = predicate(each.where, rows)
        if each.value is not None:
            made[f"value{place}"] = value(each.value, rows)
        if each.by is not None:
            made[f"by{place}"] = value(each.by, rows)
    dialect = dialect_of(table)
    kinds = {name: kind_of(dtype) for name, dtype in table.schema().items()}
    rows = _ranked(rows.select(**made), values, dialect)
    group = ["person"] if world is None else ["world", "person"]
    parts = [_parts(rows, place, each, dialect) for place, each in enumerate(values)]
    sums = {f"part{place}_{at}": part for place, some in enumerate(parts) for at, part in enumerate(some)}
    found = rows.group_by(group).aggregate(**sums)
    ends = {
        each.name: _column(
            _end(rows, place, each, [found[f"part{place}_{at}"] for at in range(len(parts[place]))]),
            each.type_in(kinds),
            dialect,
        )
        for place, each in enumerate(values)
    }
    side = {} if world is None else {world: found["world"]}
    return found.select(**side, **{person: found["person"]}, **ends)


def beside_person(table: ir.Table, other: ir.Table, *, person: str, named: str, world: str | None = None) -> ir.Table:
    """All rows, each with the one row of its person in another table; missing where that has none.

    Assumes: the other table has one row a person. Its columns are called ``named``, a dot and their own name.
    """
    beside = other.view().rename({f"{named}.{column}": column for column in other.columns})
    on = [person] if world is None else [world, person]
    joined = table.left_join(beside, [table[column] == beside[f"{named}.{column}"] for column in on])
    return joined.select(*table.columns, *(joined[name] for name in beside.columns if name != f"{named}.{world}"))


def decimal_scale(low: Fraction, high: Fraction) -> int:
    """The power of ten by which values of a range are multiplied to be added as whole numbers.

    >>> decimal_scale(Fraction(0), Fraction(30000))
    8
    """
    greatest, power = max(abs(low), abs(high)), 0
    while greatest * Fraction(10) ** (power + 1) <= FINEST:
        power += 1
    while greatest * Fraction(10) ** power > FINEST:
        power -= 1
    return power


def _ranked(rows: ir.Table, values: Sequence[PersonValue], dialect: Dialect) -> ir.Table:
    """The rows with the place of each among those of its person, once for each order that is asked for."""
    import ibis

    orders: dict[tuple[object, ...], list[int]] = {}
    for place, each in enumerate(values):
        if each.by is not None:
            orders.setdefault((each.fold, each.by, each.where, each.place), []).append(place)
    group = [name for name in ("world", "person") if name in rows.columns]
    for places in orders.values():
        first = places[0]
        counts = rows[f"by{first}"].notnull()
        if values[first].where is not None:
            counts = counts & rows[f"where{first}"]
        by = _key(rows[f"by{first}"], dialect)
        keys = [ibis.ifelse(counts, whole(0), whole(1)), by if values[first].fold is Fold.FIRST else ibis.desc(by)]
        for place in places:  # rows that are alike in the order: by what is asked of them
            held = rows[f"value{place}"]
            keys += [ibis.ifelse(held.isnull(), whole(1), whole(0)), _key(held, dialect)]
        window = ibis.window(group_by=group, order_by=keys)
        chosen = (ibis.row_number().over(window).cast("int64") == whole((values[first].place or 1) - 1)) & counts
        rows = rows.mutate(**{f"chosen{place}": chosen for place in places})
    return rows


def _key(held: ir.Value, dialect: Dialect) -> ir.Value:
    """What a value is ordered by: never null, and of text its bytes, so that no collation decides."""
    import ibis

    dtype = held.type()
    if dtype.is_string():
        return dialect.bytes_of(ibis.coalesce(held, ibis.literal("")))
    if dtype.is_boolean():
        return ibis.ifelse(held.fill_null(False), whole(1), whole(0))  # noqa: FBT003 - the constant itself
    if dtype.is_date():
        return ibis.coalesce(held, ibis.literal("1970-01-01").cast("date"))
    if dtype.is_integer():
        return ibis.coalesce(held, whole(0))
    return ibis.coalesce(held, double(0.0)) if dtype.is_floating() else held


def _parts(rows: ir.Table, place: int, each: PersonValue, dialect: Dialect) -> list[ir.Value]:
    """What is aggregated for one value."""
    import ibis

    where = None if each.where is None else rows[f"where{place}"]
    if each.fold in (Fold.ROWS, Fold.ANY, Fold.EVERY):
        if where is None:
            return [rows.count().cast("int64")]
        met = ibis.ifelse(where, whole(1), whole(0))
        match each.fold:
            case Fold.ANY:
                return [met.max()]
            case Fold.EVERY:
                return [met.min()]
        return [met.sum().cast("int64")]
    if each.by is not None:
        where = rows[f"chosen{place}"]
    held = rows[f"value{place}"]
    if held.type().is_boolean():
        held = ibis.cases((held, whole(1)), (~held, whole(0)))
    held = held if where is None else ibis.cases((where, held))
    match each.fold:
        case Fold.LEAST:
            return [held.min()]
        case Fold.GREATEST | Fold.FIRST | Fold.LAST:
            return [held.max()]
        case Fold.DISTINCT:
            text = held.type().is_string()
            return [(dialect.bytes_of(held) if text else held).nunique().cast("int64")]
    assert each.low is not None  # noqa: S101 - for the reader of types
    assert each.high is not None  # noqa: S101 - for the reader of types
    total = _saturated(dialect.total(_steps(held, each.low, each.high)), dialect)
    return [total, held.count().cast("int64")]


def _steps(held: ir.Value, low: Fraction, high: Fraction) -> ir.Value:
    """A value, held to its range, as a whole number: itself, or as many steps of a power of ten."""
    import ibis

    if held.type().is_integer():
        least, most = max(ceil(low), LEAST), min(floor(high), MOST)
        return ibis.cases((held < whole(least), whole(least)), (held > whole(most), whole(most)), else_=held)
    near, far = double(float(low)), double(float(high))
    within = ibis.cases((held < near, near), (held > far, far), else_=held)
    # A product too small for a double raises on PostgreSQL, and then a failure would reveal what a row holds.
    speck = double(float(max(abs(low), abs(high))) * TINY)
    within = ibis.cases((within.abs() < speck, double(0.0)), else_=within)
    scale = double(float(Fraction(10) ** decimal_scale(low, high)))
    return (within * scale + double(0.5)).floor().cast("int64")


def _saturated(total: ir.Value, dialect: Dialect) -> ir.Value:
    import ibis

    low, high = dialect.wide_constant(LEAST), dialect.wide_constant(MOST)
    return ibis.cases((total.isnull(), ibis.null("int64")), else_=_within(total, low, high))


def _within(total: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    import ibis

    return ibis.greatest(ibis.least(total, high), low).cast("int64")


def _column(value: ir.Value, kind: Type, dialect: Dialect) -> ir.Value:
    """A value as a column holds it: times are computed as microseconds."""
    return dialect.time_of(value) if kind is Type.TIME else value


def _end(rows: ir.Table, place: int, each: PersonValue, parts: Sequence[ir.Value]) -> ir.Value:
    """The value itself, from what was aggregated."""
    first = parts[0]
    if each.fold in (Fold.ANY, Fold.EVERY):
        return first == whole(1)
    if each.fold in (Fold.LEAST, Fold.GREATEST, Fold.FIRST, Fold.LAST):
        return first == whole(1) if rows[f"value{place}"].type().is_boolean() else first
    if each.low is None or each.high is None:
        return first
    number = not rows[f"value{place}"].type().is_integer()
    if each.fold is Fold.SUM and not number:
        return first
    total = first.cast("float64")
    if number:
        total = total / double(float(Fraction(10) ** decimal_scale(each.low, each.high)))
    return total if each.fold is Fold.SUM else total / parts[1].nullif(whole(0)).cast("float64")
