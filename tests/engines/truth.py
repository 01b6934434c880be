"""Expressions evaluated row by row in plain Python: a second, independent statement of the grammar's rules.

Whole numbers are Python's own, saturated afterwards; numbers are Python's floats, held; text is bytes; dates, times and
lengths of time are those of :mod:`datetime`. None is what is missing.
"""

import calendar
import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache

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
    Side,
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

Cell = str | int | float | bool | Decimal | datetime.date | None  # what a row holds
Present = str | int | float | bool | datetime.date | datetime.timedelta
TICK = datetime.timedelta(microseconds=1)
MIDNIGHT = datetime.time()


class Row(dict[str, Cell]):
    """A row that knows which of its columns hold numbers, so that 1 beside a missing one is still 1.0.

    ``clocks`` are its dates and times.
    """

    def __init__(
        self, cells: Mapping[str, Cell], numbers: frozenset[str], clocks: Mapping[str, Type] | None = None
    ) -> None:
        super().__init__(cells)
        self.numbers = numbers
        self.clocks: Mapping[str, Type] = clocks or {}


FAR = 2.0**480


def holds(expression: Expression, row: Mapping[str, Cell]) -> bool:
    """Whether a row meets a predicate; always true or false, never unknown."""
    match expression:
        case Not():
            return not holds(expression.part, row)
        case AllOf():
            return all(holds(part, row) for part in expression.parts)
        case AnyOf():
            return any(holds(part, row) for part in expression.parts)
        case Missing():
            return leaf(row[expression.column]) is None
        case ValueMissing():
            return value_of(expression.part, row) is None
        case Compare():
            mine, other = _alike([Named(column=expression.column), expression.constant], row)
            return _compares(mine, expression.operator, other)
        case ValueCompare():
            mine, other = _alike([expression.left, expression.right], row)
            return _compares(mine, expression.operator, other)
        case OneOf() | ValueOneOf():
            part = Named(column=expression.column) if isinstance(expression, OneOf) else expression.part
            mine, *others = _alike([part, *expression.constants], row)
            return any(_compares(mine, Operator.EQUAL, one) for one in others)
        case StartsWith():
            text = value_of(expression.part, row)
            assert text is None or isinstance(text, str)
            return text is not None and text.encode().startswith(expression.prefix.encode())


def value_of(expression: Value | Term, row: Mapping[str, Cell]) -> Present | None:
    """The value of an expression for a row, None where it is missing."""
    node = expression.node if isinstance(expression, Term) else expression
    match node:
        case Named():
            return leaf(row[node.column])
        case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
            return _plain(node)
        case Coalesce():
            parts = _alike(node.parts, row)
            return next((part for part in parts if part is not None), None)
        case CaseWhen():
            return _choice(node, row)
        case Cut():
            return _label(node, *_alike([node.part, *node.edges], row))
    return _computed(node, row)


def leaf(value: Cell) -> Present | None:
    """A cell as the grammar sees it: null and NaN are missing; infinities, empty text and -0.0 are not."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(value) if isinstance(value, Decimal) else value


# ------------------------------------------------------------------------------------------------------ comparisons


def _compares(mine: Present | None, operator: Operator, other: Present | None) -> bool:
    if mine is None or other is None:
        return False
    order = _order(mine, other)
    match operator:
        case Operator.EQUAL:
            return order == 0
        case Operator.UNEQUAL:
            return order != 0
        case Operator.BELOW:
            return order < 0
        case Operator.AT_MOST:
            return order <= 0
        case Operator.ABOVE:
            return order > 0
        case Operator.AT_LEAST:
            return order >= 0


def _order(mine: Present, other: Present) -> int:
    """-1, 0 or 1: text by its bytes, whole numbers exactly, anything beside a double as doubles."""
    if isinstance(mine, str) and isinstance(other, str):
        one, two = mine.encode(), other.encode()
        return (one > two) - (one < two)
    if isinstance(mine, float) or isinstance(other, float):
        mine, other = float(mine), float(other)  # type: ignore[arg-type]
    return (mine > other) - (mine < other)  # type: ignore[operator]


def _plain(constant: Literal) -> Present:
    match constant:
        case Number():
            return float(constant.value)
        case Date():
            return datetime.date.fromisoformat(constant.value)
        case Time():
            return datetime.datetime.fromisoformat(constant.value)
        case Duration():
            return TICK * constant.value
    return constant.value


# ---------------------------------------------------------------------------------------------------------- choices


def _choice(node: CaseWhen, row: Mapping[str, Cell]) -> Present | None:
    thens = [branch.then for branch in node.branches]
    values = _alike(thens if node.otherwise is None else [*thens, node.otherwise], row)
    for branch, value in zip(node.branches, values, strict=False):
        if holds(branch.when, row):
            return value
    return None if node.otherwise is None else values[-1]


def _label(node: Cut, value: Present | None, *ends: Present | None) -> str | None:
    if value is None:
        return None
    edges = [edge for edge in ends if edge is not None]
    bins = list(itertools.pairwise(edges))
    labels = list(node.labels)
    lowest = labels.pop(0) if node.below else None
    highest = labels.pop() if node.above else None
    if _order(value, edges[0]) < 0:
        return lowest
    for (low, high), label in zip(bins, labels, strict=True):
        if _order(value, low) >= 0 and _order(value, high) < 0:
            return label
    return highest


def _alike(nodes: Sequence[Value], row: Mapping[str, Cell]) -> list[Present | None]:
    """The values of several nodes; whole-number constants beside numbers are numbers."""
    values = [value_of(node, row) for node in nodes]
    if any(_is_number(node, row) for node in nodes):
        return [float(value) if type(value) is int else value for value in values]
    if {_clock(node, row) for node in nodes} == {Type.DATE, Type.TIME}:
        return [_at(value) if any(isinstance(node, Time) for node in nodes) else _on(value) for value in values]
    return values


def _on(value: Present | None) -> Present | None:
    """The day of a time."""
    return value.date() if isinstance(value, datetime.datetime) else value


def _at(value: Present | None) -> Present | None:
    """The first moment of a day."""
    day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return datetime.datetime.combine(value, MIDNIGHT) if day else value  # type: ignore[arg-type]


def _clock(node: Value, row: Mapping[str, Cell]) -> Type | None:
    """Whether a value is a date, a time or a length of time."""
    match node:
        case Named():
            return getattr(row, "clocks", {}).get(node.column)
        case Date():
            return Type.DATE
        case Time():
            return Type.TIME
        case Duration():
            return Type.SPAN
        case Truncated():
            return Type.TIME if node.to in (Unit.HOUR, Unit.MINUTE) else Type.DATE
        case Cast():
            return node.to if node.to in (Type.DATE, Type.TIME) else None
        case Shifted():
            return Type.SPAN if _clock(node.part, row) is Type.SPAN else Type.TIME
        case Arithmetic():
            return _sum_of_clocks(node, _clock(node.left, row), _clock(node.right, row))
        case Least() | Greatest() | Coalesce():
            return _clock_of_all(node.parts, row)
        case CaseWhen():
            thens = [branch.then for branch in node.branches]
            return _clock_of_all(thens if node.otherwise is None else [*thens, node.otherwise], row)
    return None


def _clock_of_all(nodes: Sequence[Value], row: Mapping[str, Cell]) -> Type | None:
    kinds = {_clock(node, row) for node in nodes}
    if kinds == {Type.DATE, Type.TIME}:
        return Type.TIME if any(isinstance(node, Time) for node in nodes) else Type.DATE
    return kinds.pop()


def _sum_of_clocks(node: Arithmetic, left: Type | None, right: Type | None) -> Type | None:
    days = (Type.DATE, Type.TIME)
    if left in days and right in days:
        return None if (left, right) == (Type.DATE, Type.DATE) else Type.SPAN
    if Type.SPAN in (left, right):
        return Type.TIME if left in days or right in days else Type.SPAN
    return Type.DATE if Type.DATE in (left, right) else None


def _is_number(node: Value, row: Mapping[str, Cell]) -> bool:
    match node:
        case Number():
            return True
        case Named():
            return isinstance(row[node.column], float | Decimal) or node.column in getattr(row, "numbers", ())
        case Arithmetic():
            return node.sign is Sign.OVER or _is_number(node.left, row) or _is_number(node.right, row)
        case Negative() | Absolute() | Floor() | Rounded():
            return _is_number(node.part, row)
        case Seconds():
            return True
        case Least() | Greatest() | Coalesce():
            return any(_is_number(part, row) for part in node.parts)
        case CaseWhen():
            thens = [branch.then for branch in node.branches]
            last = [] if node.otherwise is None else [node.otherwise]
            return any(_is_number(part, row) for part in (*thens, *last))
        case Cast():
            return node.to is Type.NUMBER
    return False


# ------------------------------------------------------------------------------------------------------- operations


def _computed(node: Value, row: Mapping[str, Cell]) -> Present | None:
    match node:
        case Arithmetic() if _clock(node.left, row) or _clock(node.right, row):
            return _moved(node, value_of(node.left, row), value_of(node.right, row))
        case Arithmetic(sign=Sign.PLUS | Sign.MINUS):
            return _total(node, row)
        case Arithmetic():
            parts = _alike([node.left, node.right], row)
        case DaysBetween() | UnitsBetween():
            parts = [value_of(node.start, row), value_of(node.end, row)]
        case Concatenated():
            parts = [value_of(part, row) for part in node.parts]
        case Least() | Greatest():
            parts = _alike(node.parts, row)
        case _:
            parts = [value_of(node.part, row)]  # type: ignore[union-attr]
    present = [part for part in parts if part is not None]
    return _operation(node, *present) if len(present) == len(parts) else None


def _moved(node: Arithmetic, left: Present | None, right: Present | None) -> Present | None:
    """What is added and subtracted where one side is a date, a time or a length of time."""
    if left is None or right is None:
        return None
    if isinstance(right, datetime.date) and not isinstance(left, datetime.date):
        left, right = right, left
    if isinstance(right, datetime.date):
        if not isinstance(left, datetime.datetime) and not isinstance(right, datetime.datetime):
            return (left - right).days  # type: ignore[operator]
        return _at(left) - _at(right)  # type: ignore[operator]
    sign = 1 if node.sign is Sign.PLUS else -1
    try:
        if isinstance(right, int):
            return left + datetime.timedelta(days=sign * max(-(10**7), min(10**7, right)))  # type: ignore[operator]
        if isinstance(left, datetime.timedelta):
            return _span(left + sign * right)  # type: ignore[operator]
        return _at(left) + sign * right  # type: ignore[operator]
    except OverflowError:
        return None


def _span(length: datetime.timedelta) -> datetime.timedelta:
    most = datetime.timedelta(days=3_652_059)
    return max(-most, min(most, length))


def _total(node: Value, row: Mapping[str, Cell]) -> Present | None:
    """A whole run of additions and subtractions: operands are held, and the total once more."""
    numbers = _is_number(node, row)

    def added(part: Value) -> int | float | None:
        if isinstance(part, Arithmetic) and part.sign in (Sign.PLUS, Sign.MINUS):
            left, right = added(part.left), added(part.right)
            if left is None or right is None:
                return None
            return left + right if part.sign is Sign.PLUS else left - right
        value = value_of(part, row)
        assert value is None or isinstance(value, int | float)
        return held(float(value)) if numbers and value is not None else value

    found = added(node)
    if found is None:
        return None
    return held(found) if isinstance(found, float) else saturated(found)


def _operation(node: Value, *parts: Present) -> Present | None:
    match node, parts:
        case Arithmetic(), (float() | int() as mine, float() | int() as other):
            return _product_or_quotient(node.sign, mine, other)
        case Negative(), (float() as mine,):
            return -mine
        case Negative(), (int() as mine,):
            return saturated(-mine)
        case Absolute(), (float() as mine,):
            return abs(mine)
        case Absolute(), (int() as mine,):
            return saturated(abs(mine))
        case Floor() | Rounded() | Nearest(), (int() as mine,):
            return int(mine)
        case Nearest(), (float() as mine,):
            return saturated(round(mine) if math.isfinite(mine) else 2**63 if mine > 0 else -(2**63))
        case Nearest(), (str() as mine,):
            return int(mine) if re.fullmatch("-?[0-9]{1,18}", mine, re.ASCII) else None
        case Rounded(), (float() as mine,):
            return _rounded(mine, node.digits)
        case Floor(), (float() as mine,):
            return mine if math.isinf(mine) else float(math.floor(mine))
        case Least(), _:
            return min(parts)  # type: ignore[type-var]
        case Greatest(), _:
            return max(parts)  # type: ignore[type-var]
        case Cast(to=Type.NUMBER), (int() as mine,):
            return float(mine)
        case Cast(to=Type.WHOLE), (float() as mine,):
            if math.isinf(mine):
                return saturated(2**63 if mine > 0 else -(2**63))
            return saturated(math.floor(mine))
        case Cast(to=Type.WHOLE), (int() as mine,):
            return int(mine)
        case Cast(to=Type.NUMBER), (float() as mine,):
            return mine
        case Cast(to=Type.NUMBER), (str() as mine,):
            return float(mine) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", mine, re.ASCII) else None
        case Cast(to=Type.TEXT), (str() | int() as mine,):
            return str(mine)
        case Cast(to=Type.TEXT), (datetime.date() as mine,):
            return mine.isoformat()
        case Cast(to=Type.DATE | Type.TIME), (str() as mine,):
            return _read(mine, node.to)
        case Cast(to=Type.DATE), (datetime.date() as mine,):
            return _on(mine)
        case Cast(to=Type.TIME), (datetime.date() as mine,):
            return _at(mine)
        case Cast(to=Type.WHOLE), (str() as mine,):
            return int(mine) if re.fullmatch("-?[0-9]{1,18}", mine, re.ASCII) else None
        case DatePart(), (datetime.date() as mine,):
            return _date_part(node.of, mine)
        case DaysBetween(), (datetime.date() as start, datetime.date() as end):
            return end.toordinal() - start.toordinal()
        case UnitsBetween(), (datetime.date() as start, datetime.date() as end):
            return _place(end, node.unit) - _place(start, node.unit)
        case Truncated(), (datetime.date() as mine,):
            return _begun(mine, node.to)
        case Seconds(), (datetime.timedelta() as mine,):
            return mine // TICK / 1e6
        case Seconds(), (datetime.date() as mine,):
            return (_at(mine) - datetime.datetime(1970, 1, 1)) // TICK / 1e6  # type: ignore[operator]
        case Shifted(), (datetime.timedelta() as mine,):
            return _span(mine + node.microseconds * TICK)
        case Shifted(), (datetime.date() as mine,):
            return _later(_at(mine), node.months, node.microseconds)  # type: ignore[arg-type]
        case Cased(), (str() as mine,):
            return "".join(_other_form(sign, node.capital) for sign in mine)
        case Trimmed(), (str() as mine,):
            found = re.sub("^ *" if node.side is not Side.END else "^(?!)", "", mine)
            return re.sub(r" *\Z", "", found) if node.side is not Side.START else found
        case Slice(), (str() as mine,):
            return "".join(list(mine)[node.start - 1 :][: node.length])
        case Ending(), (str() as mine,):
            return mine[max(0, len(mine) - node.length) :]
        case Replaced(), (str() as mine,):
            return node.new.join(mine.split(node.old))
        case Concatenated(), _:
            return "".join(map(str, parts))
        case Length(), (str() as mine,):
            return len(mine)
    raise AssertionError((node, parts))


def _rounded(value: float, digits: int) -> float:
    size, steps = held(abs(value)), float(10**digits)
    found = size if size * steps >= 2.0**53 else math.floor(size * steps + 0.5) / steps
    return held(-found if value < 0 else found)


def _read(text: str, to: Type) -> datetime.date | None:
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?", text, re.ASCII)
    if found is None:
        return None
    *parts, rest = (part or "0" for part in found.groups())
    try:
        moment = datetime.datetime(*map(int, parts), int(rest.ljust(6, "0")))  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return moment.date() if to is Type.DATE else moment


def _place(moment: datetime.date, unit: Unit) -> int:
    months = {Unit.YEAR: 12, Unit.QUARTER: 3, Unit.MONTH: 1}
    if unit in months:
        return (moment.year * 12 + moment.month - 1) // months[unit]
    if unit is Unit.WEEK:
        return (moment.toordinal() - 1) // 7
    seconds = {Unit.DAY: 86400, Unit.HOUR: 3600, Unit.MINUTE: 60, Unit.SECOND: 1}[unit]
    return (_at(moment) - datetime.datetime.min) // datetime.timedelta(seconds=seconds)  # type: ignore[operator,no-any-return]


def _begun(moment: datetime.date, unit: Unit) -> datetime.date:
    day = datetime.date(moment.year, moment.month, moment.day)
    match unit:
        case Unit.HOUR | Unit.MINUTE:
            assert isinstance(moment, datetime.datetime)
            whole = moment.replace(second=0, microsecond=0)
            return whole.replace(minute=0) if unit is Unit.HOUR else whole
        case Unit.YEAR:
            return day.replace(month=1, day=1)
        case Unit.QUARTER:
            return day.replace(month=(day.month + 2) // 3 * 3 - 2, day=1)
        case Unit.MONTH:
            return day.replace(day=1)
        case Unit.WEEK:
            return day - datetime.timedelta(days=day.weekday())
    return day


def _later(moment: datetime.datetime, months: int, length: int) -> datetime.datetime | None:
    reached = moment.year * 12 + moment.month - 1 + months
    if not 12 <= reached < 120_000:
        return None
    last = calendar.monthrange(reached // 12, reached % 12 + 1)[1]
    moved = moment.replace(year=reached // 12, month=reached % 12 + 1, day=min(moment.day, last))
    try:
        return moved + length * TICK
    except OverflowError:
        return None


def _other_form(sign: str, capital: bool) -> str:
    """One letter in its other form, if it is one of the blocks that have them and the way back leads to it."""
    code = ord(sign)
    if code >= 0x530 or (0x180 <= code < 0x370):
        return sign
    form = sign.upper() if capital else sign.lower()
    back = form.lower() if capital else form.upper()
    inside = len(form) == 1 and back == sign and (ord(form) < 0x180 or 0x370 <= ord(form) < 0x530)
    return form if inside else sign


def _product_or_quotient(sign: Sign, mine: float, other: float) -> float | None:
    if sign is Sign.OVER:
        top, bottom = held(float(mine)), held(float(other))
        return None if bottom == 0 else held(top / bottom)
    if isinstance(mine, int) and isinstance(other, int):
        return saturated(mine * other)
    return held(held(mine) * held(other))


def saturated(value: int) -> int:
    """Brought into 64 bits."""
    return max(-(2**63), min(2**63 - 1, value))


@cache
def held(value: float) -> float:
    """Brought into ±2^480, then rounded as doubles are beside 3 * 2^-429: near 0 to a multiple of 2^-480.

    Said with rationals: the nearest double to the sum, less what was added, is a double again.
    """
    inside = max(-FAR, min(FAR, value))
    added = 3 * Fraction(1, 2**429)
    beside = Fraction(float(Fraction(inside) + added))
    return float(beside - added)


def _date_part(of: Part, day: datetime.date) -> int:
    match of:
        case Part.YEAR:
            return day.year
        case Part.QUARTER:
            return (day.month + 2) // 3
        case Part.MONTH:
            return day.month
        case Part.DAY:
            return day.day
        case Part.WEEKDAY:
            return day.isoweekday()
        case Part.SUNDAY_WEEKDAY:
            return day.isoweekday() % 7
        case Part.WEEK:
            return day.isocalendar().week
        case Part.YEAR_DAY:
            return day.timetuple().tm_yday
    assert isinstance(day, datetime.datetime)
    return day.hour if of is Part.HOUR else day.minute
