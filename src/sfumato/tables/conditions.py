"""A condition as people read it: ``diagnosis = “ILI”``, ``the year of admitted ≥ 2024``."""

from collections.abc import Iterable
from fractions import Fraction

from sfumato.core.description import Joined, Word, WordRun, phrase
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
    Part,
    Replaced,
    Rounded,
    Seconds,
    Shifted,
    Sign,
    Slice,
    StartsWith,
    Text,
    Time,
    Trimmed,
    Truncated,
    Truth,
    Type,
    UnitsBetween,
    Value,
    ValueCompare,
    ValueMissing,
    Whole,
)
from sfumato.engines.expressions.literals import DAY
from sfumato.engines.expressions.writing import shown

__all__ = ["condition", "value"]

OPERATORS = {Operator.UNEQUAL: "≠", Operator.AT_MOST: "≤", Operator.AT_LEAST: "≥"}
PARTS = {Part.SUNDAY_WEEKDAY: "sunday_weekday", Part.YEAR_DAY: "year_day"}
CASTS = {Type.WHOLE: "whole", Type.NUMBER: "number", Type.TEXT: "text", Type.DATE: "date", Type.TIME: "time"}
SIGNS = {Sign.PLUS: "+", Sign.MINUS: "−", Sign.TIMES: "×", Sign.OVER: "/"}


def condition(expression: Expression) -> Word:
    """Write a predicate in words and signs. Public: all of it, as the question is.

    >>> from sfumato.engines.expressions import col
    >>> condition(~col("region").isnull())
    Phrase(key='condition.not', words={'part': Phrase(key='condition.missing', words={'column': 'region'})})
    """
    match expression:
        case Compare():
            return _compared(expression.column, expression.operator, _constant(expression.constant))
        case ValueCompare():
            return _compared(value(expression.left), expression.operator, value(expression.right))
        case Missing():
            return phrase("condition.missing", column=expression.column)
        case ValueMissing():
            return phrase("condition.missing", column=value(expression.part))
        case StartsWith():
            prefix = phrase("condition.text", value=expression.prefix)
            return phrase("value.starts", part=value(expression.part), prefix=prefix)
        case Not():
            return phrase("condition.not", part=condition(expression.part))
        case AllOf() | AnyOf():
            by = "condition.and" if isinstance(expression, AllOf) else "condition.or"
            return Joined(by, tuple(_bracketed(part) for part in expression.parts))
    part = expression.column if isinstance(expression, OneOf) else value(expression.part)
    return phrase("condition.one_of", column=part, values=_listed(map(_constant, expression.constants)))


def value(node: Value) -> Word:
    """Write a value of one row in words and signs.

    >>> from sfumato.engines.expressions import col
    >>> value(abs(col("age")).node)
    WordRun(parts=('|', 'age', '|'))
    """
    match node:
        case Named():
            return node.column
        case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
            return _constant(node)
        case Arithmetic():
            return WordRun((_closed(node.left), f" {SIGNS[node.sign]} ", _closed(node.right)))
        case Negative():
            return WordRun(("−", _closed(node.part)))
        case Absolute():
            return WordRun(("|", value(node.part), "|"))
        case Floor():
            return WordRun(("⌊", value(node.part), "⌋"))
        case Least() | Greatest() | Coalesce():
            return phrase(node.KIND, parts=_listed(map(value, node.parts)))
        case CaseWhen():
            return _case(node)
        case Cast():
            return phrase(f"value.{CASTS[node.to]}", part=_closed(node.part))
        case DatePart():
            return phrase(f"value.{PARTS.get(node.of, node.of.value)}", part=_closed(node.part))
        case DaysBetween():
            return phrase("value.days", start=value(node.start), end=value(node.end))
        case Length():
            return phrase("value.length", part=_closed(node.part))
        case Truncated():
            return phrase(f"value.begun_{node.to.value}", part=_closed(node.part))
        case UnitsBetween():
            return phrase(f"value.{node.unit.value}s_between", start=value(node.start), end=value(node.end))
        case Shifted():
            return _shifted(node)
        case Seconds() | Nearest():
            return phrase(node.KIND, part=_closed(node.part))
        case Rounded():
            return phrase("value.rounded", part=_closed(node.part), digits=str(node.digits))
        case Cased() | Trimmed() | Slice() | Ending() | Replaced():
            return _changed(node)
        case Concatenated():
            return phrase("value.concatenated", parts=_listed(map(value, node.parts)))
        case Cut():
            labels = _listed(phrase("condition.text", value=label) for label in node.labels)
            return phrase("value.cut", part=_closed(node.part), parts=labels)


def _shifted(node: Shifted) -> Word:
    words: Word = _closed(node.part)
    if node.months:
        words = phrase("value.months_later", part=words, number=str(node.months))
    if node.microseconds:
        words = WordRun((words, " + ", _length(node.microseconds)))
    return words


def _length(microseconds: int) -> Word:
    """A length of time in whole days, or in seconds."""
    if microseconds % DAY == 0:
        return phrase("value.length_days", number=str(microseconds // DAY))
    return phrase("value.length_seconds", number=shown(Fraction(microseconds, 10**6)))


def _changed(node: Cased | Trimmed | Slice | Ending | Replaced) -> Word:
    part = _closed(node.part)
    match node:
        case Cased():
            return phrase("value.upper" if node.capital else "value.lower", part=part)
        case Trimmed():
            return phrase(f"value.trimmed_{node.side.value}", part=part)
        case Slice(length=None):
            return phrase("value.from_place", part=part, start=str(node.start))
        case Slice(start=1):
            return phrase("value.first_signs", part=part, length=str(node.length))
        case Slice():
            return phrase("value.signs", part=part, start=str(node.start), length=str(node.length))
        case Ending():
            return phrase("value.last_signs", part=part, length=str(node.length))
    old, new = (phrase("condition.text", value=text) for text in (node.old, node.new))
    return phrase("value.replaced", part=part, old=old, new=new)


def _case(node: CaseWhen) -> Word:
    branches: list[Word] = [
        phrase("value.branch", when=condition(branch.when), then=_closed(branch.then)) for branch in node.branches
    ]
    if node.otherwise is not None:
        branches.append(phrase("value.otherwise", then=_closed(node.otherwise)))
    return phrase("value.case", branches=Joined("value.between", tuple(branches)))


def _compared(left: Word, operator: Operator, right: Word) -> Word:
    return WordRun((left, f" {OPERATORS.get(operator, operator.value)} ", right))


def _listed(parts: Iterable[Word]) -> Word:
    return Joined("list.between", tuple(parts))


def _closed(node: Value) -> Word:
    """With brackets where another sign could bind tighter."""
    words = value(node)
    return WordRun(("(", words, ")")) if isinstance(node, Arithmetic | Negative) else words


def _bracketed(part: Expression) -> Word:
    words = condition(part)
    return phrase("condition.bracket", part=words) if isinstance(part, AllOf | AnyOf) else words


def _constant(constant: Literal) -> Word:
    match constant:
        case Text():
            return phrase("condition.text", value=constant.value)
        case Truth():
            return phrase("condition.true" if constant.value else "condition.false")
        case Number():
            return shown(constant.value)
        case Time():
            return constant.value.replace("T", " ")
        case Duration():
            return _length(constant.value)
    return str(constant.value)
