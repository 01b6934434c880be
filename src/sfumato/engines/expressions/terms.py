"""The Python surface: ``sf.col("age") >= 65``, arithmetic, cases, casts, dates and bins, in canonical form.

A term is a value under construction. Its operators build nodes of the grammar and bring them into the one form that
a question has: ``a + b`` is ``b + a``, ``a > b`` is ``b < a``, a comparison of a column with a constant is the plain
one. Nothing is looked up and nothing is read.
"""

import datetime
import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NoReturn

from sfumato.engines.expressions.grammar import (
    Absolute,
    Arithmetic,
    Branch,
    Cased,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
    Concatenated,
    Cut,
    DatePart,
    DaysBetween,
    Ending,
    Expression,
    Floor,
    Greatest,
    Least,
    Length,
    Missing,
    Named,
    Nearest,
    Negative,
    OneOf,
    Replaced,
    Rounded,
    Seconds,
    Shifted,
    Slice,
    StartsWith,
    Trimmed,
    Truncated,
    UnitsBetween,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    form,
)
from sfumato.engines.expressions.literals import Duration, Literal, Number, Whole, literal
from sfumato.engines.expressions.types import Operator, Part, Side, Sign, Type, Unit
from sfumato.engines.expressions.writing import constant, written
from sfumato.errors import InvalidInput, Unsupported

__all__ = ["Column", "Term", "coalesce", "col", "condition_of", "greatest", "least", "term", "when"]

TYPES = {
    "whole": Type.WHOLE,
    "number": Type.NUMBER,
    "text": Type.TEXT,
    "date": Type.DATE,
    "time": Type.TIME,
}
UNITS = {unit.value: unit for unit in Unit}
CUT_TO = (Unit.YEAR, Unit.QUARTER, Unit.MONTH, Unit.WEEK, Unit.DAY, Unit.HOUR, Unit.MINUTE)
SIDES = {side.value: side for side in Side}
TURNED = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.UNEQUAL: Operator.UNEQUAL,
    Operator.BELOW: Operator.ABOVE,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.ABOVE: Operator.BELOW,
    Operator.AT_LEAST: Operator.AT_MOST,
}


class Term:
    """A value of one row: a column, or something computed from columns and constants."""

    __slots__ = ("node",)
    __hash__ = None  # type: ignore[assignment]  # a comparison is a condition, so no term is a key

    def __init__(self, node: Value) -> None:
        self.node = node

    # ------------------------------------------------------------------------------------------------ comparisons

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # a condition, not a truth
        return _compare(self.node, Operator.EQUAL, _node(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # as above: a condition, not a truth
        return _compare(self.node, Operator.UNEQUAL, _node(other))

    def __lt__(self, other: object) -> Expression:
        return _compare(self.node, Operator.BELOW, _node(other))

    def __le__(self, other: object) -> Expression:
        return _compare(self.node, Operator.AT_MOST, _node(other))

    def __gt__(self, other: object) -> Expression:
        return _compare(self.node, Operator.ABOVE, _node(other))

    def __ge__(self, other: object) -> Expression:
        return _compare(self.node, Operator.AT_LEAST, _node(other))

    def between(self, low: object, high: object) -> Expression:
        """Whether the value is at least ``low`` and at most ``high``."""
        return (self >= low) & (self <= high)

    def isin(self, values: Iterable[object]) -> Expression:
        """Whether the value is one of ``values``."""
        found = {form(one): one for one in map(literal, _listed(values, f"{written(self.node)!r}.isin(...)"))}
        if not found:
            raise InvalidInput(f"{written(self.node)!r}.isin(...) was given no value; nothing was done.")
        constants = tuple(found[text] for text in sorted(found))
        if isinstance(self.node, Named):
            return OneOf(column=self.node.column, constants=constants)
        return ValueOneOf(part=self.node, constants=constants)

    def isnull(self) -> Expression:
        """Whether the value is missing."""
        if isinstance(self.node, Named):
            return Missing(column=self.node.column)
        return ValueMissing(part=self.node)

    def startswith(self, prefix: str) -> Expression:
        """Whether a text begins with ``prefix``, byte for byte."""
        if not isinstance(prefix, str):
            raise InvalidInput(f"a prefix is a text and not {type(prefix).__name__}; nothing was done.")
        return StartsWith(part=self.node, prefix=prefix)

    # ------------------------------------------------------------------------------------------------- arithmetic

    def __add__(self, other: object) -> "Term":
        return _arithmetic(Sign.PLUS, self.node, _node(other))

    def __radd__(self, other: object) -> "Term":
        return _arithmetic(Sign.PLUS, _node(other), self.node)

    def __sub__(self, other: object) -> "Term":
        return _arithmetic(Sign.MINUS, self.node, _node(other))

    def __rsub__(self, other: object) -> "Term":
        return _arithmetic(Sign.MINUS, _node(other), self.node)

    def __mul__(self, other: object) -> "Term":
        return _arithmetic(Sign.TIMES, self.node, _node(other))

    def __rmul__(self, other: object) -> "Term":
        return _arithmetic(Sign.TIMES, _node(other), self.node)

    def __truediv__(self, other: object) -> "Term":
        return _arithmetic(Sign.OVER, self.node, _node(other))

    def __rtruediv__(self, other: object) -> "Term":
        return _arithmetic(Sign.OVER, _node(other), self.node)

    def __neg__(self) -> "Term":
        return Term(Negative(part=self.node))

    def __abs__(self) -> "Term":
        return Term(Absolute(part=self.node))

    def abs(self) -> "Term":
        """A number without its sign."""
        return abs(self)

    def floor(self) -> "Term":
        """The largest integer that is not above the number."""
        return Term(Floor(part=self.node))

    def ceil(self) -> "Term":
        """The least integer that is not below the number."""
        return -(-self).floor()

    def round(self, digits: int = 0) -> "Term":
        """The number to this many digits after the point; halves go away from 0."""
        if isinstance(digits, bool) or not isinstance(digits, int):
            raise InvalidInput("a number of digits is a whole number; nothing was done.")
        return Term(Rounded(part=self.node, digits=digits))

    def nearest(self) -> "Term":
        """The nearest whole number, of two the even one; texts and truth values become whole as a cast makes them."""
        return Term(Nearest(part=self.node))

    def clip(self, low: object, high: object) -> "Term":
        """The value, or ``low`` where it is below, or ``high`` where it is above."""
        return greatest(low, least(self, high))

    def __floordiv__(self, other: object) -> NoReturn:
        self._refuse("//", "divide with / and take .floor()")

    __rfloordiv__ = __floordiv__

    def __mod__(self, other: object) -> NoReturn:
        self._refuse("%", "there is no remainder")

    __rmod__ = __mod__

    def __pow__(self, other: object) -> NoReturn:
        self._refuse("**", "multiply the value by itself")

    __rpow__ = __pow__

    # ------------------------------------------------------------------------------ missing values, types and bins

    def fill(self, value: object) -> "Term":
        """The value, or ``value`` where it is missing."""
        return coalesce(self, value)

    def cast(self, to: str) -> "Term":
        """The value as a ``"whole"`` number, a ``"number"``, a ``"text"``, a ``"date"`` or a ``"time"``.

        What cannot be read so is missing.
        """
        if to not in TYPES:
            raise Unsupported(
                f"{written(self.node)!r} cannot be cast to {to!r}: casts lead to 'whole', 'number', 'text', 'date' and "
                "'time' only; nothing was done."
            )
        return Term(Cast(part=self.node, to=TYPES[to]))

    def cut(
        self,
        edges: Sequence[object],
        *,
        labels: Sequence[str] | None = None,
        below: bool = False,
        above: bool = False,
    ) -> "Term":
        """The label of the bin that the value lies in: from each edge (included) to the next (excluded).

        Outside all bins it is missing, unless ``below`` and ``above`` ask for bins there. Labels are public, so bins
        can be grouped by.

        >>> col("age").cut([0, 18, 65], above=True).node.labels
        ('[0, 18)', '[18, 65)', '>= 65')
        """
        places = [literal(edge) for edge in _listed(edges, f"{written(self.node)!r}.cut(...)")]
        if any(isinstance(place, Number) for place in places):  # 18 beside 18.5 is a number as well
            places = [Number(Fraction(place.value)) if isinstance(place, Whole) else place for place in places]
        names = tuple(_bins(places, below=below, above=above)) if labels is None else tuple(labels)
        if any(not isinstance(name, str) for name in names):
            raise InvalidInput("labels of bins are texts; nothing was done.")
        return Term(Cut(part=self.node, edges=tuple(places), labels=names, below=below, above=above))

    # ------------------------------------------------------------------------------------------- dates and texts

    def year(self) -> "Term":
        """The year of a date."""
        return Term(DatePart(of=Part.YEAR, part=self.node))

    def quarter(self) -> "Term":
        """The quarter of a date, 1 to 4."""
        return Term(DatePart(of=Part.QUARTER, part=self.node))

    def month(self) -> "Term":
        """The month of a date, 1 to 12."""
        return Term(DatePart(of=Part.MONTH, part=self.node))

    def day(self) -> "Term":
        """The day of the month of a date, 1 to 31."""
        return Term(DatePart(of=Part.DAY, part=self.node))

    def weekday(self) -> "Term":
        """The weekday of a date: 1 for Monday to 7 for Sunday."""
        return Term(DatePart(of=Part.WEEKDAY, part=self.node))

    def week(self) -> "Term":
        """The week of a date by ISO 8601, 1 to 53."""
        return Term(DatePart(of=Part.WEEK, part=self.node))

    def hour(self) -> "Term":
        """The hour of a time, 0 to 23."""
        return Term(DatePart(of=Part.HOUR, part=self.node))

    def minute(self) -> "Term":
        """The minute of a time, 0 to 59."""
        return Term(DatePart(of=Part.MINUTE, part=self.node))

    def truncate(self, unit: str) -> "Term":
        """The first day of the ``"year"``, ``"quarter"``, ``"month"`` or ``"week"``, the ``"day"``, the ``"hour"``."""
        found = UNITS.get(unit)
        if found not in CUT_TO:
            known = ", ".join(repr(each.value) for each in CUT_TO)
            raise Unsupported(f"times are cut to {known}, and not to {unit!r}; nothing was done.")
        return Term(Truncated(to=found, part=self.node))

    def days_since(self, start: object) -> "Term":
        """How many days the date lies after ``start``; negative where it lies before."""
        return Term(DaysBetween(start=_node(start), end=self.node))

    def since(self, start: object, unit: str) -> "Term":
        """How many times a ``"year"``, ``"month"``, ``"week"``, ``"hour"`` … has begun since ``start``.

        The year of a date less that of another, say, which is not how many whole years lie between them.
        """
        if unit not in UNITS:
            raise Unsupported(
                f"times are counted in {', '.join(map(repr, UNITS))}, and not in {unit!r}; nothing was done."
            )
        if unit == "day":
            return self.days_since(start)
        return Term(UnitsBetween(unit=UNITS[unit], start=_node(start), end=self.node))

    def seconds(self) -> "Term":
        """A difference of times in seconds; of a date or time, the seconds since the beginning of 1970."""
        return Term(Seconds(part=self.node))

    def shift(self, *, months: int = 0, days: int = 0, seconds: int = 0) -> "Term":
        """A later time; where a month is too short, its last day is taken."""
        if any(isinstance(each, bool) or not isinstance(each, int) for each in (months, days, seconds)):
            raise InvalidInput("a time is moved by whole numbers of months, days and seconds; nothing was done.")
        length = datetime.timedelta(days=days, seconds=seconds) // datetime.timedelta(microseconds=1)
        return Term(Shifted(part=self.node, months=months, microseconds=length))

    def lower(self) -> "Term":
        """A text in small letters: Latin, Greek and Cyrillic ones."""
        return Term(Cased(part=self.node, capital=False))

    def upper(self) -> "Term":
        """A text in capital letters: Latin, Greek and Cyrillic ones."""
        return Term(Cased(part=self.node, capital=True))

    def strip(self, side: str = "both") -> "Term":
        """A text without the spaces at both ends, or at its ``"start"`` or ``"end"``."""
        if side not in SIDES:
            raise InvalidInput("the ends of a text are 'both', 'start' and 'end'; nothing was done.")
        return Term(Trimmed(part=self.node, side=SIDES[side]))

    def substring(self, start: int, length: int | None = None) -> "Term":
        """The characters of a text from a place on, 1 for the first; ``length`` of them, or all."""
        _whole(start, length)
        return Term(Slice(part=self.node, start=start, length=length))

    def left(self, length: int) -> "Term":
        """The first characters of a text."""
        return self.substring(1, length)

    def right(self, length: int) -> "Term":
        """The last characters of a text."""
        _whole(length)
        return Term(Ending(part=self.node, length=length))

    def replace(self, old: str, new: str) -> "Term":
        """A text with ``new`` wherever it has ``old``."""
        if not isinstance(old, str) or not isinstance(new, str):
            raise InvalidInput("a text is replaced by a text; nothing was done.")
        return Term(Replaced(part=self.node, old=old, new=new))

    def concat(self, *others: object) -> "Term":
        """The text with others after it."""
        nodes = [self.node, *map(_node, others)]
        parts = tuple(part for node in nodes for part in (node.parts if isinstance(node, Concatenated) else (node,)))
        return Term(Concatenated(parts=parts))

    def length(self) -> "Term":
        """How many Unicode characters (code points) a text has."""
        return Term(Length(part=self.node))

    # ------------------------------------------------------------------------------- truth values as conditions

    def __and__(self, other: object) -> Expression:
        return condition_of(self) & condition_of(other)

    __rand__ = __and__

    def __or__(self, other: object) -> Expression:
        return condition_of(self) | condition_of(other)

    __ror__ = __or__

    def __invert__(self) -> Expression:
        return ~condition_of(self)

    # ---------------------------------------------------------------------------------------------------- refusals

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            f"{written(self.node)!r} has no truth value: compare it, e.g. sf.col({written(self.node)!r}) == 'x'."
        )

    def __repr__(self) -> str:
        return f"<{written(self.node)}>"

    def _refuse(self, operation: str, instead: str) -> NoReturn:
        raise Unsupported(
            f"{operation} on {written(self.node)!r} is not supported; nothing was done. Instead: {instead}."
        )


class Column(Term):
    """A column by name, to be compared and computed with; ``sf.col("age") >= 65``."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInput("a column is named by a non-empty text; nothing was done.")
        super().__init__(Named(column=name))


class _Choice(Term):
    """A case under construction: another branch can follow, or what holds otherwise."""

    __slots__ = ()

    def when(self, condition: object) -> "_Condition":
        """Another condition, looked at where none before holds."""
        assert isinstance(self.node, CaseWhen)  # noqa: S101 - made so by then()
        return _Condition(condition, self.node.branches)

    def otherwise(self, value: object) -> Term:
        """The value where no condition holds; without it the value is missing there."""
        assert isinstance(self.node, CaseWhen)  # noqa: S101 - made so by then()
        last = _node(value)
        if isinstance(last, CaseWhen):  # a choice inside "otherwise" is more branches of this one
            return Term(CaseWhen(branches=self.node.branches + last.branches, otherwise=last.otherwise))
        return Term(CaseWhen(branches=self.node.branches, otherwise=last))


class _Condition:
    """A condition that waits for its value."""

    __slots__ = ("before", "condition")

    def __init__(self, condition: object, before: tuple[Branch, ...] = ()) -> None:
        condition = condition_of(condition)
        if not isinstance(condition, Expression):
            raise InvalidInput(
                f"when(...) takes a predicate such as sf.col('age') >= 65 and was given {type(condition).__name__}; "
                "nothing was done."
            )
        self.condition: Expression = condition
        self.before = before

    def then(self, value: object) -> _Choice:
        """The value where the condition holds, and none before it did."""
        branches = (*self.before, Branch(when=self.condition, then=_node(value)))
        return _Choice(CaseWhen(branches=branches, otherwise=None))


def col(name: str) -> Column:
    """Name a column, to build an expression with.

    >>> ((col("age") >= 65) & (col("diagnosis") == "ILI")).KIND
    'expression.all_of'
    >>> (col("weight") / (col("height") * col("height"))).cut([0, 18.5, 25, 30], above=True)
    <cut(weight / (height * height), 0, 18.5, 25, 30)>
    """
    return Column(name)


def term(value: object) -> Term:
    """A term as it is, or a constant as a term; what is neither is refused by name.

    >>> term(3)
    <3>
    """
    return value if isinstance(value, Term) else Term(literal(value))


def when(condition: object) -> _Condition:
    """A value that depends on conditions; the first that holds decides.

    >>> when(col("age") < 18).then("minor").when(col("age") >= 65).then("senior").otherwise("adult")
    <(when age < 18 then "minor" when age >= 65 then "senior" otherwise "adult")>
    """
    return _Condition(condition)


def condition_of(value: object) -> Expression:
    """A condition as it is; of a column of truth values, or a value that is one, whether it is true.

    >>> condition_of(col("died")) == (col("died") == True)
    True
    """
    return value == True if isinstance(value, Term) else value  # type: ignore[return-value]  # noqa: E712 - a condition


def coalesce(*values: object) -> Term:
    """The first of several values that is not missing.

    >>> coalesce(col("weight"), col("weight_last_visit"), 70.0)
    <coalesce(weight, weight_last_visit, 70)>
    """
    parts: dict[str, Value] = {}
    for value in values:
        node = _node(value)
        for part in node.parts if isinstance(node, Coalesce) else (node,):
            parts.setdefault(form(part), part)
    kept: list[Value] = []
    for part in parts.values():
        kept.append(part)
        if isinstance(part, Literal):  # never missing: nothing after it is looked at
            break
    return Term(kept[0] if len(kept) == 1 else Coalesce(parts=tuple(kept)))


def least(*values: object) -> Term:
    """The least of several values; missing where one of them is.

    >>> least(col("stay"), 30)
    <least(stay, 30)>
    """
    return _extreme(Least, values)


def greatest(*values: object) -> Term:
    """The greatest of several values; missing where one of them is.

    >>> greatest(col("stay"), 0)
    <greatest(stay, 0)>
    """
    return _extreme(Greatest, values)


# ------------------------------------------------------------------------------------------------- canonical forms


def _node(value: object) -> Value:
    return value.node if isinstance(value, Term) else literal(value)


def _extreme(kind: type[Least] | type[Greatest], values: tuple[object, ...]) -> Term:
    parts: dict[str, Value] = {}
    for value in values:
        node = _node(value)
        for part in node.parts if isinstance(node, kind) else (node,):
            parts[form(part)] = part
    ordered = tuple(parts[text] for text in sorted(parts))
    return Term(ordered[0] if len(ordered) == 1 else kind(parts=ordered))


def _arithmetic(sign: Sign, left: Value, right: Value) -> Term:
    if isinstance(left, Duration) and sign is Sign.PLUS:
        left, right = right, left
    if isinstance(right, Duration) and sign in (Sign.PLUS, Sign.MINUS):
        length = right.value if sign is Sign.PLUS else -right.value
        return Term(Shifted(part=left, months=0, microseconds=length))
    if sign in (Sign.PLUS, Sign.TIMES) and form(right) < form(left):
        left, right = right, left
    return Term(Arithmetic(sign=sign, left=left, right=right))


def _compare(left: Value, operator: Operator, right: Value) -> Expression:
    constant_left, constant_right = isinstance(left, Literal), isinstance(right, Literal)
    if constant_left and not constant_right:
        left, operator, right = right, TURNED[operator], left
        constant_left, constant_right = constant_right, constant_left
    if constant_right:
        if isinstance(left, Named):
            return Compare(column=left.column, operator=operator, constant=right)  # type: ignore[arg-type]  # it is a constant
        return ValueCompare(left=left, operator=operator, right=right)
    symmetric = operator in (Operator.EQUAL, Operator.UNEQUAL)
    if operator in (Operator.ABOVE, Operator.AT_LEAST) or (symmetric and form(right) < form(left)):
        left, operator, right = right, TURNED[operator], left
    return ValueCompare(left=left, operator=operator, right=right)


def _whole(*values: int | None) -> None:
    if any(isinstance(value, bool) or not isinstance(value, int | None) for value in values):
        raise InvalidInput("places and numbers of characters are whole numbers; nothing was done.")


def _listed(values: object, what: str) -> list[object]:
    if isinstance(values, str | bytes | Term) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} takes a list of constants and was given {type(values).__name__}; nothing was done.")
    return list(values)


def _bins(edges: Sequence[Literal], *, below: bool, above: bool) -> Iterable[str]:
    names = [constant(edge) for edge in edges]
    if below and names:
        yield f"< {names[0]}"
    for low, high in itertools.pairwise(names):
        yield f"[{low}, {high})"
    if above and names:
        yield f">= {names[-1]}"
