"""Values on an engine, taken apart: what a value is (never null, never NaN), and whether it is missing.

Databases disagree about what null and NaN do inside functions, and a function that meets an impossible operand may
raise. So each operand is a pair: a value that is always there, with a harmless one in the place of what is missing,
and a truth that says where it is. Operations are then total, in whatever order an engine evaluates them.

A time is a whole number here: microseconds since the first moment of the year 1. So is a length of time. Whole numbers
compare, add and divide the same on every engine, which times do not.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engines.expressions.doubles import held
from sfumato.engines.expressions.literals import Date, Duration, Literal, Number, Text, Time, Truth, Whole
from sfumato.engines.expressions.types import Type
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

    from sfumato.engines.dialect import Dialect

__all__ = [
    "COMPUTED",
    "DTYPES",
    "FIRST_DAY",
    "LAST_DAY",
    "Operand",
    "all_of",
    "any_of",
    "column",
    "constant",
    "double",
    "harmless",
    "kind_of",
    "whole",
]

FIRST_DAY, LAST_DAY = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
DTYPES = {
    Type.TEXT: "string",
    Type.WHOLE: "int64",
    Type.NUMBER: "float64",
    Type.TRUTH: "boolean",
    Type.DATE: "date",
    Type.TIME: "timestamp(6)",
}
"""What Ibis calls a column of one of our types."""
COMPUTED = {**DTYPES, Type.TIME: "int64", Type.SPAN: "int64"}
"""What it calls a value of one while we compute with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A value and whether it is missing; ``missing`` is None where it never is.

    ``plain`` is the same value with null where it is missing, if that is the shorter way to say it. ``held`` tells
    that a number is already as arithmetic wants it. ``constant`` is what the question itself says.
    """

    type: Type
    value: ir.Value
    missing: ir.BooleanValue | None
    plain: ir.Value = None
    held: bool = False
    constant: bool = False

    def nullable(self) -> ir.Value:
        """The value, null where it is missing."""
        import ibis

        if self.plain is not None:
            return self.plain
        if self.missing is None:
            return self.value
        return ibis.cases((self.missing, ibis.null(COMPUTED[self.type])), else_=self.value)


def kind_of(dtype: dt.DataType) -> Type:
    """What the grammar takes a column for. A timestamp with a zone is refused: its day depends on where one stands."""
    if dtype.is_string():
        return Type.TEXT
    if dtype.is_boolean():
        return Type.TRUTH
    if dtype.is_integer() and not (dtype.is_unsigned_integer() and dtype.nbytes >= 8):
        return Type.WHOLE
    if dtype.is_floating() or dtype.is_decimal():
        return Type.NUMBER
    if dtype.is_date():
        return Type.DATE
    if dtype.is_timestamp() and dtype.timezone is None:
        return Type.TIME
    return Type.OTHER


def column(table: ir.Table, name: str, dialect: Dialect) -> Operand:
    """A column as an operand: widened, NaN and days outside the calendar made missing."""
    import ibis

    found: ir.Value = table[name]
    kind = kind_of(found.type())
    match kind:
        case Type.NUMBER:
            wide = dialect.from_decimal(found) if found.type().is_decimal() else found.cast("float64")
            # NaN first: inside "or" an engine may compare it, which is harmless, but not add or round it.
            gone = wide.isnull() | wide.isnan().fill_null(False)  # noqa: FBT003 - the constant itself
            plain = ibis.cases((gone, ibis.null("float64")), else_=wide)
        case Type.DATE:
            day = found.cast("date")
            known = ((day >= ibis.literal(FIRST_DAY)) & (day <= ibis.literal(LAST_DAY))).fill_null(False)  # noqa: FBT003
            gone, plain = ~known, ibis.cases((known, day), else_=ibis.null("date"))
            return Operand(type=kind, value=ibis.cases((known, day), else_=harmless(kind)), missing=gone, plain=plain)
        case Type.TIME:
            day = found.cast("date")
            known = ((day >= ibis.literal(FIRST_DAY)) & (day <= ibis.literal(LAST_DAY))).fill_null(False)  # noqa: FBT003
            plain = dialect.microseconds(ibis.cases((known, found), else_=ibis.null(found.type())))
            return Operand(type=kind, value=ibis.coalesce(plain, harmless(kind)), missing=~known, plain=plain)
        case Type.WHOLE:
            plain = found.cast("int64")
            gone = plain.isnull()
        case Type.TEXT | Type.TRUTH:
            plain, gone = found, found.isnull()
        case _:
            raise Unsupported(f"column {name!r} has a type that is not supported; nothing was released.")
    return Operand(type=kind, value=ibis.coalesce(plain, harmless(kind)), missing=gone, plain=plain)


def constant(given: Literal) -> Operand:
    """A constant as an operand."""
    import ibis

    match given:
        case Whole():
            return Operand(type=Type.WHOLE, value=whole(given.value), missing=None, constant=True)
        case Number():
            near = float(given.value)
            return Operand(type=Type.NUMBER, value=double(near), missing=None, held=held(near) == near, constant=True)
        case Date():
            return Operand(type=Type.DATE, value=ibis.literal(given.day), missing=None, constant=True)
        case Time():
            return Operand(type=Type.TIME, value=whole(given.microseconds), missing=None, constant=True)
        case Duration():
            return Operand(type=Type.SPAN, value=whole(given.value), missing=None, constant=True)
        case Truth():
            return Operand(type=Type.TRUTH, value=ibis.literal(given.value), missing=None, constant=True)
        case Text():
            return Operand(type=Type.TEXT, value=ibis.literal(given.value), missing=None, constant=True)


def harmless(kind: Type) -> ir.Value:
    """A value of a type that stands where one is missing, and troubles no operation."""
    import ibis

    match kind:
        case Type.NUMBER:
            return double(0.0)
        case Type.WHOLE | Type.TIME | Type.SPAN:
            return whole(0)
        case Type.DATE:
            return ibis.literal(datetime.date(1970, 1, 1))
        case Type.TRUTH:
            return ibis.literal(False)  # noqa: FBT003 - the constant itself
    return ibis.literal("")


def double(value: float) -> ir.Value:
    """A double constant, read from text by the engine: bare digits would be a decimal in some, with its own rules."""
    import ibis

    return ibis.literal(repr(value)).cast("float64")


def whole(value: int) -> ir.Value:
    """A 64-bit constant; bare digits may be narrower, or wider at the ends of the range."""
    import ibis

    return ibis.literal(str(value)).cast("int64")


def any_of(conditions: Sequence[ir.BooleanValue | None]) -> ir.BooleanValue | None:
    """Whether one of several conditions holds; None stands for one that never does."""
    return _joined(operator.or_, [it for it in conditions if it is not None])


def all_of(conditions: Sequence[ir.BooleanValue]) -> ir.BooleanValue:
    """Whether all of several conditions hold."""
    joined = _joined(operator.and_, conditions)
    assert joined is not None  # noqa: S101 - conditions are never none
    return joined


def _joined(how: Callable[[ir.Value, ir.Value], ir.Value], parts: Sequence[ir.Value]) -> ir.Value:
    """Joined as a balanced tree: engines and their printers recurse, and a thousand parts in a row are too deep."""
    if len(parts) < 2:
        return parts[0] if parts else None
    middle = len(parts) // 2
    return how(_joined(how, parts[:middle]), _joined(how, parts[middle:]))
