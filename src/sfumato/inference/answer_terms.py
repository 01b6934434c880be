"""Terms over the columns of an answer: what SQL computes with aggregates, with intervals that follow.

A term that is linear in figures, or one such over another, is worked out as a figure with its own error distribution.
All others, such as a rounded mean or the sum of two ratios, take the intervals of the figures in them, which then hold
at once, and carry them through; that is never too narrow.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from sfumato.core.columns import ResultColumn
from sfumato.errors import InvalidInput
from sfumato.inference.figure import Figure

__all__ = [
    "AllHold",
    "AnswerCondition",
    "AnswerTerm",
    "AnyHolds",
    "Columns",
    "ComparedTerms",
    "Computed",
    "Constant",
    "IsMissing",
    "Negated",
    "OfColumn",
    "OfKey",
    "RoundedTerm",
    "atoms",
    "ends_of",
    "figure_of",
    "holds",
    "names_in",
    "values_of",
]

Number = int | float | Fraction
Cell = str | bool | date | datetime | Number | None
Ends = tuple[Number, Number] | None
Columns = Mapping[str, ResultColumn]
Labels = Mapping[str, Sequence[Cell]]
EVERYTHING = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a text that was written."""

    value: Cell


@dataclass(frozen=True, slots=True)
class OfKey:
    """A key of the group."""

    name: str


@dataclass(frozen=True, slots=True)
class OfColumn:
    """A column of the answer."""

    name: str


@dataclass(frozen=True, slots=True)
class Computed:
    """What an operator or a function makes of its parts."""

    operator: str
    parts: tuple["AnswerTerm", ...]

    def __post_init__(self) -> None:
        if self.operator not in OPERATIONS:
            raise InvalidInput(f"{self.operator!r} is no operation on numbers of an answer; nothing was done.")


@dataclass(frozen=True, slots=True)
class RoundedTerm:
    """A number to this many digits after the point; halves go away from 0."""

    part: "AnswerTerm"
    digits: int


AnswerTerm = Constant | OfKey | OfColumn | Computed | RoundedTerm


@dataclass(frozen=True, slots=True)
class ComparedTerms:
    """Two terms compared, as SQL does: with a missing one the result is unknown."""

    operator: str
    left: AnswerTerm
    right: AnswerTerm


@dataclass(frozen=True, slots=True)
class IsMissing:
    """Whether a term has no value."""

    part: AnswerTerm


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite."""

    part: "AnswerCondition"


@dataclass(frozen=True, slots=True)
class AllHold:
    """All of several."""

    parts: tuple["AnswerCondition", ...]


@dataclass(frozen=True, slots=True)
class AnyHolds:
    """One of several, or more."""

    parts: tuple["AnswerCondition", ...]


AnswerCondition = ComparedTerms | IsMissing | Negated | AllHold | AnyHolds

# ------------------------------------------------------------------------------------------------------------- values


def values_of(term: AnswerTerm, columns: Columns, labels: Labels, rows: int) -> list[Cell]:
    """The value of a term in each row; None where there is none, as where something is divided by 0."""
    match term:
        case Constant():
            return [term.value] * rows
        case OfKey():
            return list(labels[term.name])
        case OfColumn():
            return [_known(value) for value in columns[term.name].values]
        case RoundedTerm():
            inner = values_of(term.part, columns, labels, rows)
            return [None if value is None else rounded(_number(value), term.digits) for value in inner]
    parts = [values_of(part, columns, labels, rows) for part in term.parts]
    operation = OPERATIONS[term.operator]
    return [operation.value(*row) for row in zip(*parts, strict=True)]


def rounded(value: Number, digits: int) -> Number:
    """The nearest number with this many digits; halves go away from 0.

    >>> rounded(2.25, 1), rounded(Fraction(-5, 2), 0), rounded(1234, -2)
    (2.3, -3, 1200)
    """
    if not math.isfinite(value):
        return value
    return _stepped(value, digits, lambda steps: math.floor(abs(steps) + Fraction(1, 2)) * (1 if steps >= 0 else -1))


def _stepped(value: Number, digits: int, whole: Callable[[Fraction], int]) -> Number:
    found = Fraction(whole(Fraction(value) * Fraction(10) ** digits)) / Fraction(10) ** digits
    if found.denominator == 1 and not isinstance(value, float):
        return int(found)
    return float(found)


def _known(value: Cell) -> Cell:
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: Cell) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidInput("what is computed with is no number; nothing was done.")
    return value


# ---------------------------------------------------------------------------------------------------------- intervals


def figure_of(term: AnswerTerm, columns: Columns) -> ResultColumn | None:
    """The term as one figure with its own error distribution, where it is one."""
    match term:
        case OfColumn():
            return columns[term.name] if columns[term.name].measured else None
        case Computed(operator="-", parts=(one,)):
            inner = figure_of(one, columns)
            return -inner if isinstance(inner, Figure) else None
        case Computed(operator="+" | "-" | "*" | "/", parts=(left, right)):
            return _combined(term.operator, _operand(left, columns), _operand(right, columns))
    return None


def _operand(term: AnswerTerm, columns: Columns) -> Figure | Number | None:
    if isinstance(term, Constant):
        return term.value if _is_number(term.value) else None  # type: ignore[return-value]  # checked beside it
    found = figure_of(term, columns)
    return found if isinstance(found, Figure) else None


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def _combined(operator: str, left: Figure | Number | None, right: Figure | Number | None) -> ResultColumn | None:
    """A figure with a number or with another figure; None where that is no figure, or a division by 0."""
    if left is None or right is None:
        return None
    match operator, left, right:
        case "+", Figure(), _:
            return left + right
        case "+", _, Figure():
            return right + left
        case "-", Figure(), _:
            return left - right
        case "-", _, Figure():
            return left - right
        case "*", Figure(), int() | Fraction():
            return left * right
        case "*", int() | Fraction(), Figure():
            return right * left
        case "/", Figure(), Figure():
            return left / right
        case "/", Figure(), int() | Fraction() if right != 0:
            return left / right
    return None


def atoms(term: AnswerTerm, columns: Columns) -> dict[AnswerTerm, ResultColumn]:
    """The largest parts of a term that are figures by themselves, each once."""
    found = figure_of(term, columns)
    if found is not None:
        return {term: found}
    parts = term.parts if isinstance(term, Computed) else (term.part,) if isinstance(term, RoundedTerm) else ()
    return {atom: figure for part in parts for atom, figure in atoms(part, columns).items()}


def ends_of(term: AnswerTerm, known: Mapping[AnswerTerm, Sequence[Ends]], labels: Labels, rows: int) -> list[Ends]:
    """Low and high of a term in each row from those of its atoms; none where it is no number."""
    if term in known:
        return list(known[term])
    match term:
        case Constant():
            value = term.value
            number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
            return [(value, value) if number else None] * rows  # type: ignore[list-item]  # a number
        case OfKey():
            return [
                (value, value) if isinstance(value, int | float | Fraction) and not isinstance(value, bool) else None
                for value in labels[term.name]
            ]
        case OfColumn():
            return [None] * rows
        case RoundedTerm():
            return [_rounded_out(ends, term.digits) for ends in ends_of(term.part, known, labels, rows)]
    parts = [ends_of(part, known, labels, rows) for part in term.parts]
    return [OPERATIONS[term.operator].ends(*row) for row in zip(*parts, strict=True)]


def _rounded_out(ends: Ends, digits: int) -> Ends:
    """RoundedTerm outward, so that the interval covers the number before it was rounded too."""
    if ends is None:
        return None
    low, high = (
        _stepped(end, digits, outward) if math.isfinite(end) else end
        for end, outward in zip(ends, (math.floor, math.ceil), strict=True)
    )
    return low, high


# --------------------------------------------------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class _Operation:
    """What an operation makes of values, of which some may be missing, and of intervals."""

    value: Callable[..., Cell]
    ends: Callable[..., Ends]


def _strict(compute: Callable[..., Number | None]) -> Callable[..., Cell]:
    """Missing where a part is missing, or where there is no result."""

    def value(*parts: Cell) -> Cell:
        if any(part is None for part in parts):
            return None
        try:
            found = compute(*(_number(part) for part in parts))
        except (OverflowError, ZeroDivisionError):
            return None
        return _known(found)

    return value


def _of_corners(compute: Callable[..., Number | None]) -> Callable[..., Ends]:
    """The least and the greatest of what the ends of the parts give: for what is monotone in each part."""

    def ends(*parts: Ends) -> Ends:
        if any(part is None for part in parts):
            return None
        if any(not math.isfinite(end) for part in parts if part is not None for end in part):
            return EVERYTHING
        corners: list[tuple[Number, ...]] = [()]
        for part in parts:
            corners = [(*corner, end) for corner in corners for end in part or ()]
        try:
            found = [compute(*corner) for corner in corners]
        except OverflowError:
            return EVERYTHING
        known = [value for value in found if value is not None]
        return (min(known), max(known)) if len(known) == len(found) else EVERYTHING

    return ends


def _divided(left: Number, right: Number) -> Number | None:
    if right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    return Fraction(left) / Fraction(right)


def _quotient_ends(left: Ends, right: Ends) -> Ends:
    if left is None or right is None:
        return None
    if right[0] <= 0 <= right[1]:
        return EVERYTHING
    return _of_corners(_divided)(left, right)


def _absolute_ends(part: Ends) -> Ends:
    if part is None:
        return None
    low, high = part
    sizes = [-end if end < 0 else end for end in (low, high)]
    return (0 if low <= 0 <= high else min(sizes)), max(sizes)


def _monotone_ends(compute: Callable[[Number], Number]) -> Callable[[Ends], Ends]:
    def ends(part: Ends) -> Ends:
        if part is None:
            return None
        low, high = (compute(end) if math.isfinite(end) else end for end in part)
        return low, high

    return ends


def _first(*parts: Cell) -> Cell:
    return next((part for part in parts if part is not None), None)


def _hull(*parts: Ends) -> Ends:
    """What covers whichever of the parts was taken."""
    if any(part is None for part in parts):
        return None
    return min(part[0] for part in parts if part), max(part[1] for part in parts if part)


def _chosen(pick: Callable[..., Number]) -> _Operation:
    """The least or the greatest of those that are there."""

    def value(*parts: Cell) -> Cell:
        there = [_number(part) for part in parts if part is not None]
        return pick(there) if there else None

    def ends(*parts: Ends) -> Ends:
        if any(part is None for part in parts):
            return None
        return pick([part[0] for part in parts if part]), pick([part[1] for part in parts if part])

    return _Operation(value, ends)


def _minus(*parts: Number) -> Number:
    return -parts[0] if len(parts) == 1 else _added(parts[0], -parts[1])


def _added(left: Number, right: Number) -> Number:
    return float(left) + float(right) if isinstance(left, float) or isinstance(right, float) else left + right


def _times(left: Number, right: Number) -> Number:
    return float(left) * float(right) if isinstance(left, float) or isinstance(right, float) else left * right


def _root(value: Number) -> Number | None:
    return None if value < 0 else math.sqrt(value)


def _root_ends(part: Ends) -> Ends:
    if part is None:
        return None
    low, high = (math.sqrt(max(0, end)) if math.isfinite(end) else end for end in part)
    return max(0.0, low), max(0.0, high)


OPERATIONS: Mapping[str, _Operation] = {
    "+": _Operation(_strict(_added), _of_corners(_added)),
    "-": _Operation(_strict(_minus), _of_corners(_minus)),
    "*": _Operation(_strict(_times), _of_corners(_times)),
    "/": _Operation(_strict(_divided), _quotient_ends),
    "abs": _Operation(_strict(abs), _absolute_ends),
    "floor": _Operation(_strict(math.floor), _monotone_ends(math.floor)),
    "ceil": _Operation(_strict(math.ceil), _monotone_ends(math.ceil)),
    "sqrt": _Operation(_strict(_root), _root_ends),
    "coalesce": _Operation(_first, _hull),
    "nullif": _Operation(lambda one, other: None if one == other else one, lambda one, other: one),
    "least": _chosen(min),
    "greatest": _chosen(max),
}

# --------------------------------------------------------------------------------------------------------- conditions


def holds(condition: AnswerCondition, columns: Columns, labels: Labels, rows: int) -> list[bool | None]:
    """Whether a condition holds in each row: true, false or, as in SQL, unknown."""
    match condition:
        case ComparedTerms():
            left = values_of(condition.left, columns, labels, rows)
            right = values_of(condition.right, columns, labels, rows)
            return [_compare(condition.operator, one, other) for one, other in zip(left, right, strict=True)]
        case IsMissing():
            return [value is None for value in values_of(condition.part, columns, labels, rows)]
        case Negated():
            return [None if one is None else not one for one in holds(condition.part, columns, labels, rows)]
    found = [holds(part, columns, labels, rows) for part in condition.parts]
    decides = isinstance(condition, AnyHolds)  # one true part decides an OR, one false part an AND
    return [decides if decides in row else None if None in row else not decides for row in zip(*found, strict=True)]


def _compare(operator: str, left: Cell, right: Cell) -> bool | None:
    if left is None or right is None:
        return None
    one, other = _comparable(left), _comparable(right)
    if type(one) is not type(other):
        raise InvalidInput("two values of different types are compared; nothing was done.")
    match operator:
        case "=":
            return bool(one == other)
        case "<>":
            return bool(one != other)
        case "<":
            return bool(one < other)  # type: ignore[operator]  # of one type, each with an order
        case "<=":
            return bool(one <= other)  # type: ignore[operator]  # the same
        case ">":
            return bool(one > other)  # type: ignore[operator]  # the same
        case ">=":
            return bool(one >= other)  # type: ignore[operator]  # the same
    raise InvalidInput(f"{operator!r} is no comparison; nothing was done.")


def _comparable(value: Cell) -> bool | bytes | Fraction | str:
    """As it compares on the engines: texts byte by byte, numbers as numbers, days as days."""
    match value:
        case bool():
            return value
        case str():
            return value.encode()
        case date():
            return value.isoformat()
        case int() | float() | Fraction():
            return Fraction(value) if math.isfinite(value) else Fraction(10**400 if value > 0 else -(10**400))
    return str(value)


def names_in(part: AnswerTerm | AnswerCondition) -> frozenset[str]:
    """The columns of the answer, keys left out, that a term or a condition uses."""
    match part:
        case OfColumn():
            return frozenset({part.name})
        case Constant() | OfKey():
            return frozenset()
        case RoundedTerm() | IsMissing() | Negated():
            return names_in(part.part)
        case ComparedTerms():
            return names_in(part.left) | names_in(part.right)
    return frozenset(name for each in part.parts for name in names_in(each))
