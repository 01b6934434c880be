"""The closed grammar of row-wise predicates, with semantics of our own.

A predicate looks at one row and nothing else, so a filter never lets one person move another. It is two-valued: a
comparison with a missing value (null or NaN) is false, whatever the operator; ``~`` turns true into false and back.
Text compares bytewise. What is not written here is refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar, NoReturn

from sfumato.core.documents import canonical, encode
from sfumato.core.exact import rational
from sfumato.errors import InvalidInput, Unsupported

__all__ = [
    "EXPRESSIONS",
    "AllOf",
    "AnyOf",
    "Column",
    "Compare",
    "Expression",
    "Literal",
    "Missing",
    "Not",
    "Number",
    "OneOf",
    "Operator",
    "Text",
    "Truth",
    "Type",
    "Whole",
    "check",
    "col",
    "columns_of",
]


class Type(Enum):
    """What a column holds, as far as the grammar can tell; ``OTHER`` cannot be used in it."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    TRUTH = "truth value"
    OTHER = "unsupported type"


class Operator(Enum):
    """The comparisons."""

    EQUAL = "="
    UNEQUAL = "!="
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Text:
    """A text constant."""

    KIND: ClassVar[str] = "literal.text"
    VERSION: ClassVar[int] = 1
    value: str

    def __post_init__(self) -> None:
        if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in self.value):
            raise InvalidInput("a text constant must not hold a null character or half a surrogate pair.")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number that fits 64 bits."""

    KIND: ClassVar[str] = "literal.whole"
    VERSION: ClassVar[int] = 1
    value: int

    def __post_init__(self) -> None:
        if not -(2**63) <= self.value < 2**63:
            raise InvalidInput("a whole-number constant must fit 64 bits; nothing was done.")


@dataclass(frozen=True, slots=True)
class Number:
    """A rational constant, compared as the nearest double."""

    KIND: ClassVar[str] = "literal.number"
    VERSION: ClassVar[int] = 1
    value: Fraction

    def __post_init__(self) -> None:
        if abs(self.value) >= 2**1000:
            raise InvalidInput("a number constant is beyond what a double holds; nothing was done.")


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false."""

    KIND: ClassVar[str] = "literal.truth"
    VERSION: ClassVar[int] = 1
    value: bool


Literal = Text | Whole | Number | Truth


class _Predicate:
    """What all predicates share: ``&``, ``|``, ``~``, and a refusal of Python's ``and``/``or``."""

    __slots__ = ()

    def __and__(self, other: object) -> "Expression":
        parts = _flat(AllOf, self, other)
        return AllOf(parts=parts) if len(parts) > 1 else parts[0]

    def __or__(self, other: object) -> "Expression":
        parts = _flat(AnyOf, self, other)
        return AnyOf(parts=parts) if len(parts) > 1 else parts[0]

    def __invert__(self) -> "Expression":
        return self.part if isinstance(self, Not) else Not(part=_predicate(self))

    def __bool__(self) -> NoReturn:
        raise InvalidInput("a predicate has no truth value of its own: combine with & | ~, not with and, or, not.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(_Predicate):
    """A column against a constant of its type; false where the column is missing."""

    KIND: ClassVar[str] = "expression.compare"
    VERSION: ClassVar[int] = 1
    column: str
    operator: Operator
    constant: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(_Predicate):
    """Whether a column is one of several constants; false where it is missing."""

    KIND: ClassVar[str] = "expression.one_of"
    VERSION: ClassVar[int] = 1
    column: str
    constants: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.constants:
            raise InvalidInput("one of no values is no question; nothing was done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing(_Predicate):
    """Whether a column is null or NaN."""

    KIND: ClassVar[str] = "expression.missing"
    VERSION: ClassVar[int] = 1
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(_Predicate):
    """The opposite of a predicate."""

    KIND: ClassVar[str] = "expression.not"
    VERSION: ClassVar[int] = 1
    part: "Compare | OneOf | Missing | Not | AllOf | AnyOf"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(_Predicate):
    """True where every part is."""

    KIND: ClassVar[str] = "expression.all_of"
    VERSION: ClassVar[int] = 1
    parts: tuple["Compare | OneOf | Missing | Not | AllOf | AnyOf", ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(_Predicate):
    """True where some part is."""

    KIND: ClassVar[str] = "expression.any_of"
    VERSION: ClassVar[int] = 1
    parts: tuple["Compare | OneOf | Missing | Not | AllOf | AnyOf", ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


Expression = Compare | OneOf | Missing | Not | AllOf | AnyOf
EXPRESSIONS = (Compare, OneOf, Missing, Not, AllOf, AnyOf, Text, Whole, Number, Truth)


class Column:
    """A column by name, to be compared; ``sf.col("age") >= 65``."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInput("a column is named by a non-empty text; nothing was done.")
        self.name = name

    def __eq__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare(column=self.name, operator=Operator.EQUAL, constant=_literal(other))

    def __ne__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare(column=self.name, operator=Operator.UNEQUAL, constant=_literal(other))

    def __lt__(self, other: object) -> Compare:
        return Compare(column=self.name, operator=Operator.BELOW, constant=_literal(other))

    def __le__(self, other: object) -> Compare:
        return Compare(column=self.name, operator=Operator.AT_MOST, constant=_literal(other))

    def __gt__(self, other: object) -> Compare:
        return Compare(column=self.name, operator=Operator.ABOVE, constant=_literal(other))

    def __ge__(self, other: object) -> Compare:
        return Compare(column=self.name, operator=Operator.AT_LEAST, constant=_literal(other))

    def isin(self, values: list[object] | tuple[object, ...]) -> OneOf:
        """Whether the column is one of ``values``."""
        constants = {canonical(encode(_literal(value))): _literal(value) for value in values}
        if not constants:
            raise InvalidInput(f"{self.name!r}.isin(...) was given no value; nothing was done.")
        return OneOf(column=self.name, constants=tuple(constants[text] for text in sorted(constants)))

    def isnull(self) -> Missing:
        """Whether the column is missing."""
        return Missing(column=self.name)

    def __bool__(self) -> NoReturn:
        raise InvalidInput(f"column {self.name!r} has no truth value: compare it, e.g. sf.col({self.name!r}) == 'x'.")


def col(name: str) -> Column:
    """Name a column, to build a predicate with.

    >>> ((col("age") >= 65) & (col("diagnosis") == "ILI")).KIND
    'expression.all_of'
    """
    return Column(name)


def columns_of(expression: Expression) -> frozenset[str]:
    """All columns that a predicate looks at.

    >>> sorted(columns_of((col("age") >= 65) | col("sex").isnull()))
    ['age', 'sex']
    """
    match expression:
        case Not():
            return columns_of(expression.part)
        case AllOf() | AnyOf():
            return frozenset().union(*(columns_of(part) for part in expression.parts))
    return frozenset({expression.column})


def check(expression: Expression, columns: Mapping[str, Type]) -> None:
    """Refuse a predicate that does not fit the declared columns, naming what is wrong."""
    match expression:
        case Not():
            check(expression.part, columns)
        case AllOf() | AnyOf():
            for part in expression.parts:
                check(part, columns)
        case Missing():
            _type_of(expression.column, columns)
        case Compare():
            _fits(expression.column, expression.constant, columns)
            if isinstance(expression.constant, Truth) and expression.operator not in (
                Operator.EQUAL,
                Operator.UNEQUAL,
            ):
                raise Unsupported(
                    f"truth values have no order: {expression.column!r} can be compared with = and != only."
                )
        case OneOf():
            for constant in expression.constants:
                _fits(expression.column, constant, columns)


def _fits(column: str, constant: Literal, columns: Mapping[str, Type]) -> None:
    held = _type_of(column, columns)
    allowed = {
        Text: {Type.TEXT},
        Whole: {Type.WHOLE, Type.NUMBER},
        Number: {Type.NUMBER},
        Truth: {Type.TRUTH},
    }
    if held not in allowed[type(constant)]:
        given = constant.KIND.removeprefix("literal.")
        raise InvalidInput(
            f"column {column!r} holds {held.value}s and cannot be compared with a constant of type {given}; "
            "nothing was read and nothing was spent. Compare it with a constant of its own type."
        )


def _type_of(column: str, columns: Mapping[str, Type]) -> Type:
    if column not in columns:
        raise InvalidInput(
            f"there is no column {column!r}; nothing was read and nothing was spent. "
            f"The columns are {', '.join(sorted(columns))}."
        )
    if columns[column] is Type.OTHER:
        raise Unsupported(f"column {column!r} has a type that the grammar does not know yet; nothing was read.")
    return columns[column]


def _literal(value: object) -> Literal:
    match value:
        case bool():
            return Truth(value)
        case int():
            return Whole(value)
        case str():
            return Text(value)
        case float() | Fraction():
            return Number(rational(value, "constant"))
    raise Unsupported(
        f"a constant of type {type(value).__name__} is not in the grammar; nothing was done. "
        "Give text, a number, or true or false."
    )


def _predicate(value: object) -> Expression:
    if not isinstance(value, Compare | OneOf | Missing | Not | AllOf | AnyOf):
        raise InvalidInput(
            f"{type(value).__name__} is not a predicate; combine predicates such as sf.col('age') >= 65."
        )
    return value


def _check_parts(parts: "tuple[Expression, ...]") -> None:
    if not parts:
        raise InvalidInput("a combination of no predicates is no question; nothing was done.")
    if max(map(_depth, parts)) > 50:
        raise InvalidInput("predicates are nested more than 50 deep; nothing was done. Ask a simpler question.")


def _depth(expression: "Expression") -> int:
    match expression:
        case Not():
            return 1 + _depth(expression.part)
        case AllOf() | AnyOf():
            return 1 + max(map(_depth, expression.parts))
    return 1


def _flat(kind: type[AllOf] | type[AnyOf], *several: object) -> tuple[Expression, ...]:
    """Merge nested parts, drop repeats and sort, so that one question has one canonical form."""
    parts: dict[str, Expression] = {}
    for one in several:
        predicate = _predicate(one)
        for part in predicate.parts if isinstance(predicate, kind) else (predicate,):
            parts[canonical(encode(part))] = part
    return tuple(parts[text] for text in sorted(parts))
