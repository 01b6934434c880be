"""Arithmetic on operands: saturating, never raising, the same on every engine.

Numbers are held (see :mod:`sfumato.engines.expressions.doubles`); whole numbers are computed wide and brought back
into 64 bits. A run of additions and subtractions is one total, held or brought back once, at its end.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect
from sfumato.engines.expressions.doubles import FAR, NEAR, SPECK
from sfumato.engines.expressions.grammar import Arithmetic, Value
from sfumato.engines.expressions.types import Sign, Type
from sfumato.engines.operands import Operand, any_of, double, whole

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "absolute",
    "added",
    "extreme",
    "floor",
    "nearest",
    "negative",
    "product",
    "quotient",
    "rounded",
    "to_number",
    "total",
    "truth_to_whole",
    "whole_part",
]

MOST, LEAST = 2**63 - 1, -(2**63)
LARGEST_BELOW = 2.0**63 - 2.0**10  # the double before 2^63
EXACT = 2.0**53  # doubles beyond it are integers
ADDING = {Sign.PLUS: operator.add, Sign.MINUS: operator.sub}


def total(node: Arithmetic, parts: Sequence[Operand], dialect: Dialect) -> Operand:
    """A run of additions and subtractions over its operands, in the order in which they are written."""
    rest = iter(parts)
    numbers = parts[0].type is Type.NUMBER

    def added(part: Value) -> ir.Value:
        if isinstance(part, Arithmetic) and part.sign in ADDING:
            return ADDING[part.sign](added(part.left), added(part.right))
        one = next(rest)
        return _ready(one) if numbers else dialect.wide(one.value)

    found = added(node)
    value = _held(found) if numbers else _saturated(found, dialect)
    return Operand(type=parts[0].type, value=value, missing=_any_missing(parts), held=numbers)


def added(sign: Sign, left: Operand, right: Operand, dialect: Dialect) -> Operand:
    """Two whole numbers or two numbers added or subtracted."""
    numbers = left.type is Type.NUMBER
    if numbers:
        value = _held(ADDING[sign](_ready(left), _ready(right)))
    else:
        value = _saturated(ADDING[sign](dialect.wide(left.value), dialect.wide(right.value)), dialect)
    return Operand(type=left.type, value=value, missing=_any_missing([left, right]), held=numbers)


def product(left: Operand, right: Operand, dialect: Dialect) -> Operand:
    """Two whole numbers or two numbers multiplied."""
    numbers = left.type is Type.NUMBER
    if numbers:
        value = _held(_ready(left) * _ready(right))
    else:
        value = _saturated(dialect.wide(left.value) * dialect.wide(right.value), dialect)
    return Operand(type=left.type, value=value, missing=_any_missing([left, right]), held=numbers)


def quotient(top: Operand, bottom: Operand) -> Operand:
    """Two operands divided as numbers; missing where by 0."""
    top, bottom = to_number(top), to_number(bottom)
    divisor = _ready(bottom)
    # Where the divisor is 0 the quotient is missing, and a speck keeps the engine from dividing by 0.
    value = _held(_ready(top) / (divisor + double(SPECK)))
    missing = any_of([top.missing, bottom.missing, divisor == double(0.0)])
    return Operand(type=Type.NUMBER, value=value, missing=missing, held=True)


def negative(part: Operand) -> Operand:
    """The opposite; that of the least whole number is the greatest."""
    value = -part.value if part.type is Type.NUMBER else -_reversible(part.value)
    return Operand(type=part.type, value=value, missing=part.missing, held=part.held)


def absolute(part: Operand) -> Operand:
    """Without its sign; the least whole number becomes the greatest."""
    value = part.value.abs() if part.type is Type.NUMBER else _reversible(part.value).abs()
    return Operand(type=part.type, value=value, missing=part.missing, held=part.held)


def floor(part: Operand) -> Operand:
    """The largest integer not above a number; engines give it as 64 bits, so what is beyond 2^53 is left alone."""
    import ibis

    if part.type is Type.WHOLE:
        return part
    inner = _between(part.value, -EXACT, EXACT).floor().cast("float64")
    value = ibis.cases((part.value.abs() >= double(EXACT), part.value), else_=inner)
    return Operand(type=Type.NUMBER, value=value, missing=part.missing, held=part.held)


def rounded(part: Operand, digits: int) -> Operand:
    """To this many digits after the point, halves away from 0: what is beyond 2^53 steps has no digit to lose."""
    import ibis

    if part.type is Type.WHOLE:
        return part
    steps, size = double(float(10**digits)), _ready(part).abs()
    inner = (_between(size * steps, 0.0, EXACT) + double(0.5)).floor().cast("float64") / steps
    rounded = ibis.cases((size * steps >= double(EXACT), size), else_=inner)
    value = ibis.cases((part.value < double(0.0), -rounded), else_=rounded)
    return Operand(type=Type.NUMBER, value=_held(value), missing=part.missing, held=True)


def nearest(part: Operand) -> Operand:
    """A number as the nearest whole number, halves to the even one, within 64 bits."""
    import ibis

    inner = _between(part.value, -EXACT, EXACT)
    below = inner.floor().cast("int64")
    over = inner - below.cast("float64")
    up = (over > double(0.5)) | ((over == double(0.5)) & (below % whole(2) != whole(0)))
    near = below + ibis.cases((up, whole(1)), else_=whole(0))
    far = whole_part(part).value  # beyond 2^53 every double is a whole number
    value = ibis.cases((part.value.abs() >= double(EXACT), far), else_=near)
    return Operand(type=Type.WHOLE, value=value, missing=part.missing)


def extreme(which: ir.Value, parts: Sequence[Operand]) -> Operand:
    """``ibis.least`` or ``ibis.greatest`` of operands; missing where one is, so their rules for null never apply."""
    values = [part.value for part in parts]
    return Operand(
        type=parts[0].type,
        value=which(*values),
        missing=_any_missing(parts),
        held=all(part.held for part in parts),
    )


def to_number(part: Operand) -> Operand:
    """A whole number as the nearest double; a number as it is."""
    if part.type is Type.NUMBER:
        return part
    return Operand(type=Type.NUMBER, value=part.value.cast("float64"), missing=part.missing)


def whole_part(part: Operand) -> Operand:
    """A number as the largest whole number not above it, within 64 bits."""
    import ibis

    inner = _between(part.value, -(2.0**63), LARGEST_BELOW).floor().cast("int64")
    value = ibis.cases((part.value >= double(2.0**63), whole(MOST)), else_=inner)
    return Operand(type=Type.WHOLE, value=value, missing=part.missing)


def truth_to_whole(part: Operand) -> Operand:
    """1 for true, 0 for false."""
    import ibis

    return Operand(type=Type.WHOLE, value=ibis.cases((part.value, whole(1)), else_=whole(0)), missing=part.missing)


def _any_missing(parts: Sequence[Operand]) -> ir.Value:
    return any_of([part.missing for part in parts])


def _ready(part: Operand) -> ir.Value:
    return part.value if part.held else _held(part.value)


def _held(value: ir.Value) -> ir.Value:
    return (_between(value, -FAR, FAR) + double(NEAR)) - double(NEAR)


def _between(value: ir.Value, low: float, high: float) -> ir.Value:
    import ibis

    return ibis.greatest(ibis.least(value, double(high)), double(low))


def _reversible(value: ir.Value) -> ir.Value:
    """At least -(2^63 - 1), so that the opposite fits 64 bits."""
    import ibis

    return ibis.greatest(value, whole(-MOST))


def _saturated(value: ir.Value, dialect: Dialect) -> ir.Value:
    import ibis

    low, high = dialect.wide_constant(LEAST), dialect.wide_constant(MOST)
    return ibis.greatest(ibis.least(value, high), low).cast("int64")
