"""Public facts about a value that follow from the expression: its bounds, and the list of all it can be.

Bounds are computed with rationals, outward: what the engine computes with doubles lies within them whenever each
column that has bounds holds whole numbers or numbers, and each of its values lies within them or is missing. Which of
the two it holds need not be known, so a price is known before any data is opened. Public: everything here.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.engines.expressions.doubles import held
from sfumato.engines.expressions.grammar import (
    Absolute,
    Arithmetic,
    CaseWhen,
    Cast,
    Coalesce,
    Cut,
    DatePart,
    DaysBetween,
    Floor,
    Greatest,
    Least,
    Length,
    Named,
    Negative,
    Value,
    summands,
)
from sfumato.engines.expressions.literals import Date, Number, Text, Truth, Whole
from sfumato.engines.expressions.terms import Term
from sfumato.engines.expressions.types import Part, Sign, Type

__all__ = ["bounds_of", "possible_values"]

WHOLE, NUMBER = frozenset({Type.WHOLE}), frozenset({Type.NUMBER})
BOTH = WHOLE | NUMBER
ADDING = (Sign.PLUS, Sign.MINUS)
LONGEST = 3_652_058  # days from the first day of the year 1 to the last of the year 9999
PARTS = {Part.YEAR: (1, 9999), Part.QUARTER: (1, 4), Part.MONTH: (1, 12), Part.DAY: (1, 31), Part.WEEKDAY: (1, 7)}


@dataclass(frozen=True, slots=True)
class _Range:
    """Where a value lies, None where that is not known, and which of the two kinds of number it may be."""

    low: Fraction | None
    high: Fraction | None
    kinds: frozenset[Type] = BOTH


UNKNOWN = _Range(None, None)


def bounds_of(
    expression: Value | Term, bounds: Mapping[str, tuple[Fraction, Fraction]]
) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest that a value can be, given those of its columns; None where they do not follow.

    >>> from sfumato.engines.expressions import col
    >>> public = {"weight": (Fraction(2), Fraction(300)), "height": (Fraction(1), Fraction(2))}
    >>> bounds_of(col("weight") / col("height"), public)
    (Fraction(1, 1), Fraction(300, 1))
    >>> bounds_of(col("stay").clip(0, 30) * 24, {})
    (Fraction(0, 1), Fraction(720, 1))
    """
    node = expression.node if isinstance(expression, Term) else expression
    found = _range(node, bounds)
    return None if found.low is None or found.high is None else (found.low, found.high)


def possible_values(expression: Value | Term) -> tuple[str | int | bool, ...] | None:
    """All that a value can be where it is not missing, if the expression alone tells; None where it does not.

    Such a value can be grouped by without declared keys.

    >>> from sfumato.engines.expressions import col
    >>> possible_values(col("age").cut([0, 65], above=True)), possible_values(col("admitted").quarter())
    (('[0, 65)', '>= 65'), (1, 2, 3, 4))
    """
    node = expression.node if isinstance(expression, Term) else expression
    match node:
        case Text() | Whole() | Truth():
            return (node.value,)
        case Cut():
            return node.labels
        case DatePart() if node.of is not Part.YEAR:
            low, high = PARTS[node.of]
            return tuple(range(low, high + 1))
        case Cast():
            inner = possible_values(node.part)
            if node.to is Type.WHOLE and inner is not None and set(map(type, inner)) == {bool}:
                return tuple(sorted(int(value) for value in inner))
        case Coalesce():
            return _merged(node.parts)
        case CaseWhen():
            last = () if node.otherwise is None else (node.otherwise,)
            return _merged((*(branch.then for branch in node.branches), *last))
    return None


def _merged(parts: Iterable[Value]) -> tuple[str | int | bool, ...] | None:
    merged: dict[str | int | bool, None] = {}
    for part in parts:
        found = possible_values(part)
        if found is None:
            return None
        merged |= dict.fromkeys(found)
    return tuple(merged)


# --------------------------------------------------------------------------------------------- interval arithmetic


def _range(node: Value, bounds: Mapping[str, tuple[Fraction, Fraction]]) -> _Range:
    match node:
        case Named():
            return _Range(*bounds[node.column]) if node.column in bounds else UNKNOWN
        case Whole():
            exact, nearest = Fraction(node.value), Fraction(float(node.value))
            return _Range(min(exact, nearest), max(exact, nearest))  # beside a number it is the nearest double
        case Number():
            nearest = Fraction(float(node.value))
            return _Range(nearest, nearest, NUMBER)
        case Arithmetic():
            return _arithmetic(node, bounds)
        case Negative():
            return _opposite(_range(node.part, bounds))
        case Absolute():
            return _absolute(_range(node.part, bounds))
        case Floor():
            part = _range(node.part, bounds)
            return _Range(_floor(part.low), _floor(part.high), NUMBER)
        case Least():
            parts = [_range(part, bounds) for part in node.parts]
            low, high = [part.low for part in parts], [part.high for part in parts]
            return _Range(_of_all(min, low), _of_some(min, high), _kinds(parts))
        case Greatest():
            parts = [_range(part, bounds) for part in node.parts]
            low, high = [part.low for part in parts], [part.high for part in parts]
            return _Range(_of_some(max, low), _of_all(max, high), _kinds(parts))
        case Coalesce():
            return _hull([_range(part, bounds) for part in node.parts])
        case CaseWhen():
            last = () if node.otherwise is None else (node.otherwise,)
            return _hull([_range(part, bounds) for part in (*(branch.then for branch in node.branches), *last)])
        case Cast():
            return _cast(node, bounds)
        case DatePart():
            first, last_one = PARTS[node.of]
            return _Range(Fraction(first), Fraction(last_one), WHOLE)
        case DaysBetween():
            return _Range(Fraction(-LONGEST), Fraction(LONGEST), WHOLE)
        case Length() | Text() | Truth() | Date() | Cut():
            return UNKNOWN


def _cast(node: Cast, bounds: Mapping[str, tuple[Fraction, Fraction]]) -> _Range:
    part = _range(node.part, bounds)
    if node.to is Type.NUMBER:
        return _Range(_down(part.low), _up(part.high), NUMBER)
    return _Range(_saturated(_floor(part.low)), _saturated(_floor(part.high)), WHOLE)


def _arithmetic(node: Arithmetic, bounds: Mapping[str, tuple[Fraction, Fraction]]) -> _Range:
    adds = node.sign in ADDING
    parts = [_range(part, bounds) for part in (summands(node) if adds else (node.left, node.right))]
    kinds = _kinds(parts)
    if node.sign is Sign.OVER or kinds == NUMBER:  # whole numbers are made numbers before they are divided
        return _of_numbers(node, parts)
    exact = _combined(node, iter(parts), lambda found: found)
    whole = _Range(_saturated(exact.low), _saturated(exact.high), WHOLE)
    return whole if kinds == WHOLE else replace(_hull([whole, _of_numbers(node, parts)]), kinds=kinds)


def _of_numbers(node: Arithmetic, parts: Sequence[_Range]) -> _Range:
    """Operands are held, each step is rounded to a double, and the result is held; all that keeps the order."""
    entered = (_Range(_held(_down(part.low)), _held(_up(part.high))) for part in parts)
    found = _combined(node, entered, lambda one: _Range(_down(one.low), _up(one.high)))
    return _Range(_held(found.low), _held(found.high), NUMBER)


def _combined(node: Arithmetic, parts: Iterator[_Range], rounded: Callable[[_Range], _Range]) -> _Range:
    """One operation, or a whole run of additions and subtractions, over its operands in order."""
    if node.sign in (Sign.TIMES, Sign.OVER):
        return rounded(_corners(node.sign, next(parts), next(parts)))
    left, right = (
        _combined(part, parts, rounded) if isinstance(part, Arithmetic) and part.sign in ADDING else next(parts)
        for part in (node.left, node.right)
    )
    if node.sign is Sign.PLUS:
        return rounded(_Range(_plus(left.low, right.low), _plus(left.high, right.high)))
    return rounded(_Range(_plus(left.low, _minus(right.high)), _plus(left.high, _minus(right.low))))


def _corners(sign: Sign, one: _Range, two: _Range) -> _Range:
    if one.low is None or one.high is None or two.low is None or two.high is None:
        return UNKNOWN
    if sign is Sign.TIMES:
        found = [mine * other for mine in (one.low, one.high) for other in (two.low, two.high)]
    elif two.low <= 0 <= two.high:
        return UNKNOWN
    else:
        found = [top / bottom for top in (one.low, one.high) for bottom in (two.low, two.high)]
    return _Range(min(found), max(found))


def _opposite(part: _Range) -> _Range:
    low, high = _minus(part.high), _minus(part.low)
    if part.kinds == NUMBER:
        return _Range(low, high, NUMBER)
    saturated = _Range(_saturated(low), _saturated(high), WHOLE)
    return saturated if part.kinds == WHOLE else replace(_hull([saturated, _Range(low, high)]), kinds=BOTH)


def _absolute(part: _Range) -> _Range:
    if part.low is not None and part.low >= 0:
        return part
    other = _opposite(part)
    if part.high is not None and part.high <= 0:
        return other
    high = None if part.high is None or other.high is None else max(part.high, other.high)
    return _Range(Fraction(0), high, part.kinds)


def _hull(parts: Sequence[_Range]) -> _Range:
    return _Range(
        _of_all(min, [part.low for part in parts]), _of_all(max, [part.high for part in parts]), _kinds(parts)
    )


def _kinds(parts: Sequence[_Range]) -> frozenset[Type]:
    return frozenset.intersection(*(part.kinds for part in parts)) or BOTH


def _of_all(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return pick(known) if len(known) == len(ends) else None


def _of_some(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return pick(known) if known else None


def _held(value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(held(float(value)))


def _saturated(value: Fraction | None) -> Fraction | None:
    return None if value is None else max(Fraction(-(2**63)), min(Fraction(2**63 - 1), value))


def _down(value: Fraction | None) -> Fraction | None:
    """The greatest double that is not above; beyond 2^1000, which no held number reaches, that end."""
    if value is None:
        return None
    inner = max(Fraction(-(2**1000)), min(Fraction(2**1000), value))
    near = float(inner)
    return Fraction(near if Fraction(near) <= inner else math.nextafter(near, -math.inf))


def _up(value: Fraction | None) -> Fraction | None:
    return _minus(_down(_minus(value)))


def _minus(value: Fraction | None) -> Fraction | None:
    return None if value is None else -value


def _plus(one: Fraction | None, two: Fraction | None) -> Fraction | None:
    return None if one is None or two is None else one + two


def _floor(value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(math.floor(value))
