"""The list of all that a value can be, where it follows from the expression and from what is public."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product

from sfumato.engines.expressions.bounds import (
    LENGTHS,
    MONTHS,
    PARTS,
    Bounds,
    beginning,
    bounds_of,
    period_of,
    range_of,
)
from sfumato.engines.expressions.grammar import (
    Absolute,
    Arithmetic,
    Cased,
    CaseWhen,
    Cast,
    Coalesce,
    Concatenated,
    Cut,
    DatePart,
    DaysBetween,
    Ending,
    Floor,
    Greatest,
    Least,
    Length,
    Named,
    Nearest,
    Negative,
    Replaced,
    Rounded,
    Slice,
    Trimmed,
    Truncated,
    UnitsBetween,
    Value,
)
from sfumato.engines.expressions.literals import (
    DAY,
    Date,
    Text,
    Time,
    Truth,
    Whole,
)
from sfumato.engines.expressions.literals import microseconds as since_the_first
from sfumato.engines.expressions.terms import Term
from sfumato.engines.expressions.texts import changed
from sfumato.engines.expressions.types import Part, Sign, Type, Unit

__all__ = ["Known", "possible_values", "surely_whole", "whole_values"]

Possible = str | int | bool | Date | Time
MOST_LISTED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is publicly known of the columns: the lists of their values, and their ranges."""

    keys: Mapping[str, Sequence[Possible]] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)


NOTHING = Known()


def possible_values(expression: Value | Term, known: Known = NOTHING) -> tuple[Possible, ...] | None:
    """All that a value can be where it is not missing, if the expression and what is known tell; else None.

    Such a value can be grouped by without keys of its own. Rows with another value (of a time outside its period, say)
    are in none of the groups.

    >>> from sfumato.engines.expressions import col
    >>> possible_values(col("age").cut([0, 65], above=True)), possible_values(col("admitted").quarter())
    (('[0, 65)', '>= 65'), (1, 2, 3, 4))
    >>> year = Known(bounds={"admitted": (date(2025, 11, 3), date(2026, 1, 9))})
    >>> [each.value for each in possible_values(col("admitted").truncate("month"), year)]
    ['2025-11-01', '2025-12-01', '2026-01-01']
    >>> possible_values(col("sex").lower(), Known(keys={"sex": ("F", "M", "f")}))
    ('f', 'm')
    """
    node = expression.node if isinstance(expression, Term) else expression
    match node:
        case Named():
            return tuple(known.keys[node.column]) if node.column in known.keys else None
        case Text() | Whole() | Truth():
            return (node.value,)
        case Date():
            return (node,)
        case Cut():
            return node.labels
        case DatePart():
            return _parts_listed(node, known)
        case Truncated():
            return _beginnings(node.to, node.part, known)
        case Cast() if node.to is Type.DATE:
            return _beginnings(Unit.DAY, node.part, known)
        case Cast() | Nearest():
            return _cast_listed(node, known)
        case Cased() | Trimmed() | Slice() | Ending() | Replaced() | Concatenated():
            return _texts_listed(node, known)
        case Coalesce():
            return _merged(node.parts, known)
        case CaseWhen():
            last = () if node.otherwise is None else (node.otherwise,)
            return _merged((*(branch.then for branch in node.branches), *last), known)
        case Length():
            texts = possible_values(node.part, known)
            return None if texts is None else tuple(sorted({len(text) for text in texts if isinstance(text, str)}))
        case Arithmetic() | Floor() | Rounded():
            return _integers(node, known)
    return None


def whole_values(
    expression: Value | Term, bounds: Bounds, wholes: Container[str], *, most: int
) -> tuple[int, ...] | None:
    """All whole numbers that a value can be, if it is surely whole and there are not more than ``most``; else None.

    ``wholes`` names the columns that hold whole numbers.

    >>> from fractions import Fraction
    >>> from sfumato.engines.expressions import col, least
    >>> whole_values(least(col("n"), 3), {"n": (Fraction(0), Fraction(10**6))}, {"n"}, most=100)
    (0, 1, 2, 3)
    """
    node = expression.node if isinstance(expression, Term) else expression
    found = bounds_of(node, bounds) if surely_whole(node, wholes) else None
    if found is None:
        return None
    low, high = math.ceil(found[0]), math.floor(found[1])
    return tuple(range(low, high + 1)) if 0 <= high - low < most else None


def surely_whole(node: Value, wholes: Container[str]) -> bool:
    """Whether a value is a whole number in every row that has one; ``wholes`` names the columns that hold such.

    >>> from sfumato.engines.expressions import col
    >>> surely_whole((col("n") + 1).node, {"n"}), surely_whole((col("n") / 2).node, {"n"})
    (True, False)
    """
    match node:
        case Named():
            return node.column in wholes
        case Arithmetic():
            return node.sign is not Sign.OVER and all(surely_whole(part, wholes) for part in (node.left, node.right))
        case Negative() | Absolute():
            return surely_whole(node.part, wholes)
        case Least() | Greatest() | Coalesce():
            return all(surely_whole(part, wholes) for part in node.parts)
        case CaseWhen():
            last = () if node.otherwise is None else (node.otherwise,)
            return all(surely_whole(part, wholes) for part in (*(branch.then for branch in node.branches), *last))
        case Cast():
            return node.to is Type.WHOLE
    return isinstance(node, Whole | DatePart | DaysBetween | UnitsBetween | Nearest)


def _parts_listed(node: DatePart, known: Known) -> tuple[int, ...] | None:
    if node.of is not Part.YEAR:
        low, high = PARTS[node.of]
        return tuple(range(low, high + 1))
    period = period_of(node.part, known.bounds)
    return None if period is None else tuple(range(period[0].year, period[1].year + 1))


def _cast_listed(node: Cast | Nearest, known: Known) -> tuple[Possible, ...] | None:
    inner = possible_values(node.part, known)
    if inner is None:
        return None
    whole = isinstance(node, Nearest) or node.to is Type.WHOLE
    kinds = set(map(type, inner))
    if whole and kinds <= {bool, int}:
        return tuple(sorted({int(value) for value in inner if isinstance(value, int)}))
    if isinstance(node, Cast) and node.to is Type.TEXT and kinds <= {str, int, Date}:
        return tuple(dict.fromkeys(value.value if isinstance(value, Date) else str(value) for value in inner))
    return None


def _texts_listed(
    node: Cased | Trimmed | Slice | Ending | Replaced | Concatenated, known: Known
) -> tuple[Possible, ...] | None:
    """The image of all that the parts can be."""
    lists: list[list[str]] = []
    for part in node.parts if isinstance(node, Concatenated) else (node.part,):
        found = possible_values(part, known)
        if found is None:
            return None
        lists.append([text for text in found if isinstance(text, str)])
    if not all(lists) or math.prod(map(len, lists)) > MOST_LISTED:
        return None
    return tuple(dict.fromkeys(changed(node, *texts) for texts in product(*lists)))


def _integers(node: Value, known: Known) -> tuple[Possible, ...] | None:
    """Whole numbers that follow from ranges: a floor or a rounding, and what is computed from one with a constant."""
    match node:
        case Floor() | Rounded(digits=0):
            low, high = range_of(node, known.bounds).low, range_of(node, known.bounds).high
            if low is None or high is None or high - low >= MOST_LISTED or abs(low) + abs(high) >= 2**52:
                return None
            return tuple(range(int(low), int(high) + 1))
        case Arithmetic(sign=Sign.PLUS | Sign.MINUS | Sign.TIMES):
            left, right = (
                (part.value,) if isinstance(part, Whole) else _integers(part, known) for part in (node.left, node.right)
            )
            if left is None or right is None or 1 not in (len(left), len(right)):
                return None
            found = sorted({_computed(node.sign, int(one), int(two)) for one in left for two in right})  # type: ignore[arg-type]  # whole numbers, as made above
            return tuple(found) if found and abs(found[0]) + abs(found[-1]) < 2**52 else None
    return None


def _computed(sign: Sign, one: int, two: int) -> int:
    return one * two if sign is Sign.TIMES else one + (two if sign is Sign.PLUS else -two)


def _merged(parts: Iterable[Value], known: Known) -> tuple[Possible, ...] | None:
    merged: dict[Possible, None] = {}
    for part in parts:
        found = possible_values(part, known)
        if found is None:
            return None
        merged |= dict.fromkeys(found)
    return tuple(merged)


def _beginnings(unit: Unit, part: Value, known: Known) -> tuple[Possible, ...] | None:
    """The first day of each year, month or week of a period, or the beginning of each hour."""
    period = period_of(part, known.bounds)
    if period is None:
        return None
    first, last = period
    if unit in (Unit.HOUR, Unit.MINUTE, Unit.SECOND):
        step, low, high = LENGTHS[unit], since_the_first(first), since_the_first(last) + DAY
        if (high - low) // step > MOST_LISTED:
            return None
        return tuple(Time(_written(each)) for each in range(low, high, step))
    if (last - first).days > 40 * MOST_LISTED or (unit in (Unit.DAY, Unit.WEEK) and (last - first).days > MOST_LISTED):
        return None
    found = [beginning(unit, first)]
    while (following := _next(unit, found[-1])) is not None and following <= last:
        found.append(following)
    return tuple(Date(each.isoformat()) for each in found)


def _written(microseconds: int) -> str:
    from datetime import datetime

    return (datetime.min + timedelta(microseconds=microseconds)).isoformat()


def _next(unit: Unit, day: date) -> date | None:
    if unit in MONTHS:
        month = day.year * 12 + day.month - 1 + MONTHS[unit]
        return date(month // 12, month % 12 + 1, 1) if month < 120_000 else None
    days = day.toordinal() + (7 if unit is Unit.WEEK else 1)
    return date.fromordinal(days) if days <= date.max.toordinal() else None
