"""Expressions as Ibis expressions, with our own rules for null, NaN, overflow and order spelt out instead of trusted.

No function written in Python runs in an engine, and no operation is used whose meaning differs between engines where
we use it: the tests compare every one of them, on DuckDB, PostgreSQL and Spark, with the meaning stated in plain
Python.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sfumato.engines import arithmetic, clocks
from sfumato.engines.dialect import Dialect, builtin
from sfumato.engines.dialects import dialect_of
from sfumato.engines.expressions import (
    Absolute,
    AllOf,
    AnyOf,
    Arithmetic,
    Cased,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
    Concatenated,
    Cut,
    Date,
    DatePart,
    DaysBetween,
    Duration,
    Ending,
    Expression,
    Floor,
    Greatest,
    Least,
    Length,
    Literal,
    Missing,
    Named,
    Nearest,
    Negative,
    Not,
    Number,
    OneOf,
    Operator,
    Replaced,
    Rounded,
    Seconds,
    Shifted,
    Sign,
    Slice,
    StartsWith,
    Term,
    Text,
    Time,
    Trimmed,
    Truncated,
    Truth,
    Type,
    Unit,
    UnitsBetween,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    Whole,
)
from sfumato.engines.expressions.grammar import CHARACTERS, summands
from sfumato.engines.expressions.texts import CAPITAL, SMALL
from sfumato.engines.operands import Operand, all_of, any_of, column, constant, harmless

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["constants_of", "place_of", "predicate", "value"]

FALSE, TRUE = False, True
OPERATORS = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.BELOW: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.ABOVE: operator.gt,
    Operator.AT_LEAST: operator.ge,
}
# A whole number of at most 18 digits, said without an end of line: engines differ in what that is.
NUMBER_FORM = "^-?[0123456789]{1,15}([.][0123456789]{1,15})?#"
STARTS_WHOLE, SPOILS_WHOLE = "^-?[0123456789]", "[^0123456789-]|[0123456789-]-|[0123456789]{19}"


def predicate(expression: Expression, table: ir.Table) -> ir.BooleanValue:
    """Compile a checked predicate; the result is never null."""
    return _Compiler(table).predicate(expression)


def value(expression: Value | Term, table: ir.Table) -> ir.Value:
    """Compile a checked value; the result is null where it is missing, and never NaN.

    Text comes as a string, whole numbers as 64 bits, numbers as doubles, dates as dates; times and lengths of time as
    microseconds, those of times since the first moment of the year 1.
    """
    node = expression.node if isinstance(expression, Term) else expression
    return _Compiler(table).operand(node).nullable()


def constants_of(node: Value | None) -> tuple[str | int, ...] | None:
    """What a case or a cut can give, in the order of its branches or bins; None where that is not a list of constants.

    Constants of one type, that is, which are held as they are written: no number, and no time.
    """
    match node:
        case Cut():
            return node.labels
        case CaseWhen():
            given = [branch.then for branch in node.branches] + ([] if node.otherwise is None else [node.otherwise])
            if len({type(each) for each in given}) == 1:
                found = tuple(each.value for each in given if isinstance(each, Text | Whole | Truth))
                return found or None
    return None


def place_of(node: CaseWhen | Cut, places: Sequence[ir.Value], table: ir.Table) -> ir.Value:
    """A checked case or cut that gives one of these instead of its constants; null where it is missing."""
    return _Compiler(table).chosen(node, places)


class _Compiler:
    """One table, and the engine that it lives on."""

    def __init__(self, table: ir.Table) -> None:
        self.table = table
        self.dialect: Dialect = dialect_of(table)

    # ----------------------------------------------------------------------------------------------------- predicates

    def predicate(self, expression: Expression) -> ir.Value:
        match expression:
            case Not():
                return ~self.predicate(expression.part)
            case AllOf():
                return all_of([self.predicate(part) for part in expression.parts])
            case AnyOf():
                return any_of([self.predicate(part) for part in expression.parts])
            case Missing():
                return self._missing(column(self.table, expression.column, self.dialect))
            case ValueMissing():
                return self._missing(self.operand(expression.part))
            case Compare():
                left, right = column(self.table, expression.column, self.dialect), constant(expression.constant)
                return self._compared(left, expression.operator, right)
            case ValueCompare():
                return self._compared(
                    self.operand(expression.left), expression.operator, self.operand(expression.right)
                )
            case OneOf():
                return self._among(column(self.table, expression.column, self.dialect), expression.constants)
            case ValueOneOf():
                return self._among(self.operand(expression.part), expression.constants)
            case StartsWith():
                return self._starts(self.operand(expression.part), expression.prefix)

    def _missing(self, part: Operand) -> ir.Value:
        import ibis

        return ibis.literal(FALSE) if part.missing is None else part.missing

    def _compared(self, left: Operand, how: Operator, right: Operand) -> ir.Value:
        left, right = self._alike([left, right])
        return self._where_present(
            [left, right], lambda mine, other: OPERATORS[how](self._key(left, mine), self._key(right, other))
        )

    def _among(self, part: Operand, constants: Sequence[Literal]) -> ir.Value:
        part, *others = self._alike([part, *(constant(one) for one in constants)])
        keys = [self._key(other, other.value) for other in others]
        return self._where_present([part], lambda mine: self._key(part, mine).isin(keys))

    def _starts(self, part: Operand, prefix: str) -> ir.Value:
        """Bytes from the prefix up to what follows it: UTF-8 never ends in the last byte, so that is the next one."""
        first = prefix.encode()
        past = first[:-1] + bytes([first[-1] + 1])
        low, high = self.dialect.bytes_constant(first), self.dialect.bytes_constant(past)

        def within(mine: ir.Value) -> ir.Value:
            key = self.dialect.bytes_of(mine)
            return (key >= low) & (key < high)

        return self._where_present([part], within)

    def _where_present(self, parts: Sequence[Operand], holds: ir.Value) -> ir.Value:
        """Whether a comparison holds and nothing in it is missing."""
        if all(part.plain is not None or part.missing is None for part in parts):
            return holds(*(part.nullable() for part in parts)).fill_null(FALSE)
        missing = any_of([part.missing for part in parts])
        return ~missing & holds(*(part.value for part in parts))  # type: ignore[operator]  # some part can be missing, as was asked above

    def _key(self, part: Operand, found: ir.Value) -> ir.Value:
        """What is compared: of text its bytes, so that no collation decides."""
        return self.dialect.bytes_of(found) if part.type is Type.TEXT else found

    # --------------------------------------------------------------------------------------------------------- values

    def operand(self, node: Value) -> Operand:
        import ibis

        match node:
            case Named():
                return column(self.table, node.column, self.dialect)
            case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
                return constant(node)
            case Arithmetic():
                return self._arithmetic(node)
            case Negative():
                return arithmetic.negative(self.operand(node.part))
            case Absolute():
                return arithmetic.absolute(self.operand(node.part))
            case Floor():
                return arithmetic.floor(self.operand(node.part))
            case Least():
                return arithmetic.extreme(ibis.least, self._alike([self.operand(part) for part in node.parts]))
            case Greatest():
                return arithmetic.extreme(ibis.greatest, self._alike([self.operand(part) for part in node.parts]))
            case Coalesce():
                return self._coalesced(self._alike([self.operand(part) for part in node.parts]))
            case CaseWhen():
                return self._case(node)
            case Cast():
                return self._cast(self.operand(node.part), node.to)
            case DatePart():
                return clocks.part_of(self.operand(node.part), node.of, self.dialect)
            case DaysBetween():
                return clocks.units_between(self.operand(node.start), self.operand(node.end), Unit.DAY, self.dialect)
            case UnitsBetween():
                return clocks.units_between(self.operand(node.start), self.operand(node.end), node.unit, self.dialect)
            case Truncated():
                return clocks.truncated(self.operand(node.part), node.to, self.dialect)
            case Seconds():
                return clocks.seconds(self.operand(node.part), self.dialect)
            case Shifted():
                return clocks.shifted(self.operand(node.part), node.months, node.microseconds, self.dialect)
            case Rounded():
                return arithmetic.rounded(self.operand(node.part), node.digits)
            case Nearest():
                part = self.operand(node.part)
                return arithmetic.nearest(part) if part.type is Type.NUMBER else self._cast(part, Type.WHOLE)
            case Cased() | Trimmed() | Slice() | Ending() | Replaced():
                return self._text(node)
            case Concatenated():
                texts = [self.operand(part) for part in node.parts]
                joined = reduce(operator.add, [text.value.left(CHARACTERS) for text in texts])
                return Operand(type=Type.TEXT, value=joined, missing=any_of([text.missing for text in texts]))
            case Length():
                part = self.operand(node.part)
                return Operand(type=Type.WHOLE, value=part.value.length().cast("int64"), missing=part.missing)
            case Cut():
                return self._cut(node)

    def _arithmetic(self, node: Arithmetic) -> Operand:
        if node.sign in (Sign.PLUS, Sign.MINUS):
            parts = [self.operand(part) for part in summands(node)]
            if not any(part.type in (Type.DATE, Type.TIME, Type.SPAN) for part in parts):
                return arithmetic.total(node, self._alike(parts), self.dialect)
            left, right = self.operand(node.left), self.operand(node.right)
            found = clocks.difference(node.sign, left, right, self.dialect)
            if found is not None:
                return found
            one, other = self._alike([left, right])
            return arithmetic.added(node.sign, one, other, self.dialect)
        left, right = self._alike([self.operand(node.left), self.operand(node.right)])
        if node.sign is Sign.OVER:
            return arithmetic.quotient(left, right)
        return arithmetic.product(left, right, self.dialect)

    def _coalesced(self, parts: Sequence[Operand]) -> Operand:
        import ibis

        *before, last = parts
        branches = [(self._present(part), part.value) for part in before]
        gone = [part.missing for part in parts]
        return Operand(
            type=last.type,
            value=ibis.cases(*branches, else_=last.value) if branches else last.value,
            missing=None if any(it is None for it in gone) else all_of(gone),
            held=all(part.held for part in parts),
        )

    def _present(self, part: Operand) -> ir.Value:
        return ~self._missing(part)

    def _case(self, node: CaseWhen) -> Operand:
        import ibis

        asked = [self.predicate(branch.when) for branch in node.branches]
        given = [self.operand(branch.then) for branch in node.branches]
        given += [] if node.otherwise is None else [self.operand(node.otherwise)]
        given = self._alike(given)
        kind = given[0].type
        last = given.pop() if node.otherwise is not None else None
        missing = None
        if last is None or any(part.missing is not None for part in (*given, last)):
            gone = ibis.literal(TRUE) if last is None else self._missing(last)
            branches = [(when, self._missing(part)) for when, part in zip(asked, given, strict=True)]
            missing = ibis.cases(*branches, else_=gone)
        branches = [(when, part.value) for when, part in zip(asked, given, strict=True)]
        found = ibis.cases(*branches, else_=harmless(kind) if last is None else last.value)
        held = all(part.held for part in given) and (last is None or last.held)
        return Operand(type=kind, value=found, missing=missing, held=held)

    def chosen(self, node: CaseWhen | Cut, given: Sequence[ir.Value]) -> ir.Value:
        """What belongs to the branch or the bin of each row; null where there is none."""
        import ibis

        none = ibis.null(given[0].type())
        if isinstance(node, CaseWhen):
            asked = [self.predicate(branch.when) for branch in node.branches]
            last = none if node.otherwise is None else given[-1]
            return ibis.cases(*zip(asked, given, strict=False), else_=last)
        part, *edges = self._alike([self.operand(node.part), *map(constant, node.edges)])
        found, given = part.nullable(), list(given)
        first = given.pop(0) if node.below else none
        bins = [(found < edge.value, each) for edge, each in zip(edges, [first, *given], strict=False)]
        past = [(found >= edges[-1].value, given[-1])] if node.above else []
        return ibis.cases(*bins, *past, else_=none)

    def _cast(self, part: Operand, to: Type) -> Operand:
        if part.type is to:
            return part
        match part.type, to:
            case Type.WHOLE, Type.NUMBER:
                return arithmetic.to_number(part)
            case Type.NUMBER, Type.WHOLE:
                return arithmetic.whole_part(part)
            case Type.TRUTH, Type.WHOLE:
                return arithmetic.truth_to_whole(part)
            case Type.TIME, Type.DATE:
                return clocks.as_date(part, self.dialect)
            case Type.DATE, Type.TIME:
                return clocks.as_time(part, self.dialect)
            case Type.TEXT, Type.DATE | Type.TIME:
                return clocks.from_text(part, to, self.dialect)
            case Type.WHOLE | Type.DATE, Type.TEXT:
                return Operand(type=Type.TEXT, value=part.value.cast("string"), missing=part.missing)
        return self._read(part, to)

    def _read(self, part: Operand, to: Type) -> Operand:
        """A text as a number: what is not of the strict form is replaced first, so that there is nothing to fail on."""
        import ibis

        if to is Type.WHOLE:
            strict = part.value.re_search(STARTS_WHOLE) & ~part.value.re_search(SPOILS_WHOLE)
            digits = ibis.cases((strict, part.value), else_=ibis.literal("0"))
            return Operand(type=to, value=digits.cast("int64"), missing=any_of([part.missing, ~strict]))
        head = part.value.left(40)  # longer than every form
        strict = (head + ibis.literal("#")).re_search(NUMBER_FORM) & ~head.re_search("#")
        digits = ibis.cases((strict, head), else_=ibis.literal("0"))
        return Operand(type=to, value=digits.cast("float64"), missing=any_of([part.missing, ~strict]))

    def _text(self, node: Cased | Trimmed | Slice | Ending | Replaced) -> Operand:
        import ibis

        part = self.operand(node.part)
        match node:
            case Cased():
                change = builtin("translate", ("string", "string", "string"), "string")
                found = change(part.value, *((SMALL, CAPITAL) if node.capital else (CAPITAL, SMALL)))
            case Trimmed():
                found = self.dialect.trimmed(part.value, node.side)
            case Slice():
                found = part.value.substr(node.start - 1, node.length)
            case Ending():
                found = part.value.right(node.length) if node.length else ibis.literal("")
            case Replaced():
                found = part.value.left(CHARACTERS).replace(node.old, node.new)
        return Operand(type=Type.TEXT, value=found, missing=part.missing)

    def _cut(self, node: Cut) -> Operand:
        import ibis

        part, *edges = self._alike([self.operand(node.part), *map(constant, node.edges)])
        labels = [ibis.literal(label) for label in node.labels]
        outside = harmless(Type.TEXT)
        first = labels.pop(0) if node.below else outside
        last = labels.pop() if node.above else outside
        bins = zip(edges, [first, *labels], strict=True)
        gone = [part.missing]
        gone += [] if node.below else [part.value < edges[0].value]
        gone += [] if node.above else [part.value >= edges[-1].value]
        found = ibis.cases(*((part.value < edge.value, label) for edge, label in bins), else_=last)
        return Operand(type=Type.TEXT, value=found, missing=any_of(gone))

    def _alike(self, parts: Sequence[Operand]) -> list[Operand]:
        """Whole numbers beside numbers are numbers; times beside dates are their days, unless a constant is a time."""
        kinds = {part.type for part in parts}
        if Type.NUMBER in kinds:
            return [arithmetic.to_number(part) for part in parts]
        if kinds != {Type.DATE, Type.TIME}:
            return list(parts)
        if any(part.constant and part.type is Type.TIME for part in parts):
            return [clocks.as_time(part, self.dialect) for part in parts]
        return [clocks.as_date(part, self.dialect) for part in parts]
