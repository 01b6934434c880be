"""The nodes of the closed grammar: values of one row, and predicates on them.

Each node is a document. A value looks at one row and nothing else, so it never lets one person move another. It may
be missing: null and NaN are. A predicate is two-valued: a comparison with something missing is false, whatever the
operator; ``~`` turns true into false and back. What is not written here is refused by name. What each node means on
every engine: docs/explanation/semantics-of-predicates.md

The file is long because the grammar is one closed list, of some forty small nodes; in several files nobody could see
that nothing else is in it.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from sfumato.core.documents import canonical, encode
from sfumato.engines.expressions.literals import (
    LITERALS,
    MOST_MICROSECONDS,
    Date,
    Duration,
    Literal,
    Number,
    Text,
    Time,
    Truth,
    Whole,
)
from sfumato.engines.expressions.types import Operator, Part, Side, Sign, Type, Unit
from sfumato.errors import InvalidInput

__all__ = [
    "CHARACTERS",
    "EXPRESSIONS",
    "Absolute",
    "AllOf",
    "AnyOf",
    "Arithmetic",
    "Branch",
    "CaseWhen",
    "Cased",
    "Cast",
    "Coalesce",
    "Compare",
    "Concatenated",
    "Cut",
    "DatePart",
    "DaysBetween",
    "Ending",
    "Expression",
    "Floor",
    "Greatest",
    "Least",
    "Length",
    "Missing",
    "Named",
    "Nearest",
    "Negative",
    "Not",
    "OneOf",
    "Replaced",
    "Rounded",
    "Seconds",
    "Shifted",
    "Slice",
    "StartsWith",
    "Trimmed",
    "Truncated",
    "UnitsBetween",
    "Value",
    "ValueCompare",
    "ValueMissing",
    "ValueOneOf",
    "form",
    "inside",
    "summands",
    "write_with",
]

DEEPEST, MOST = 50, 10_000
CHARACTERS = 10_000
"""Of a text that is joined with others or has parts replaced; what is beyond is left out, so that none grows large."""
LONGEST = 100
MOST_MONTHS = 120_000
MOST_DIGITS = 15


def form(node: object) -> str:
    """The canonical text of a node: two nodes are the same question exactly if these are equal."""
    return canonical(encode(node))


# ---------------------------------------------------------------------------------------------------------- values


class _Valued:
    """What all values but constants share: they may be nested only so deep, and be only so long."""

    __slots__ = ()

    def __post_init__(self) -> None:
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(_Valued):
    """The value of a column."""

    KIND: ClassVar[str] = "value.column"
    VERSION: ClassVar[int] = 1
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic(_Valued):
    """Two whole numbers or two numbers, added, subtracted, multiplied or divided; saturating, and by 0 missing."""

    KIND: ClassVar[str] = "value.arithmetic"
    VERSION: ClassVar[int] = 1
    sign: Sign
    left: "Value"
    right: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative(_Valued):
    """The opposite of a whole number or number."""

    KIND: ClassVar[str] = "value.negative"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absolute(_Valued):
    """A whole number or number without its sign."""

    KIND: ClassVar[str] = "value.absolute"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor(_Valued):
    """The largest integer that is not above a number, as a number."""

    KIND: ClassVar[str] = "value.floor"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Least(_Valued):
    """The least of several; missing where one of them is."""

    KIND: ClassVar[str] = "value.least"
    VERSION: ClassVar[int] = 1
    parts: tuple["Value", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "the least")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greatest(_Valued):
    """The greatest of several; missing where one of them is."""

    KIND: ClassVar[str] = "value.greatest"
    VERSION: ClassVar[int] = 1
    parts: tuple["Value", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "the greatest")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalesce(_Valued):
    """The first of several that is not missing."""

    KIND: ClassVar[str] = "value.coalesce"
    VERSION: ClassVar[int] = 1
    parts: tuple["Value", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "the first present")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One case of several: a condition, and the value that it gives."""

    KIND: ClassVar[str] = "value.branch"
    VERSION: ClassVar[int] = 1
    when: "Expression"
    then: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWhen(_Valued):
    """The value of the first branch whose condition holds; of ``otherwise``, or missing, where none does."""

    KIND: ClassVar[str] = "value.case"
    VERSION: ClassVar[int] = 1
    branches: tuple[Branch, ...]
    otherwise: "Value | None"

    def __post_init__(self) -> None:
        _some(self.branches, "a choice")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(_Valued):
    """A value as another type; what cannot be read as it is missing, and a number becomes whole by its floor."""

    KIND: ClassVar[str] = "value.cast"
    VERSION: ClassVar[int] = 1
    part: "Value"
    to: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class DatePart(_Valued):
    """A part of a date or time, such as its year, weekday or hour, as a whole number."""

    KIND: ClassVar[str] = "value.date_part"
    VERSION: ClassVar[int] = 1
    of: Part
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysBetween(_Valued):
    """How many days a date lies after another, as a whole number; negative where it lies before. Times are days."""

    KIND: ClassVar[str] = "value.days_between"
    VERSION: ClassVar[int] = 1
    start: "Value"
    end: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length(_Valued):
    """How many Unicode characters (code points) a text has."""

    KIND: ClassVar[str] = "value.length"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(_Valued):
    """The first day of the year, quarter, month or week of a date or time, or its day; or a time's hour or minute."""

    KIND: ClassVar[str] = "value.truncated"
    VERSION: ClassVar[int] = 1
    to: Unit
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsBetween(_Valued):
    """How many beginnings of a unit lie between two times, as a whole number; of years, how far they are apart."""

    KIND: ClassVar[str] = "value.units_between"
    VERSION: ClassVar[int] = 1
    unit: Unit
    start: "Value"
    end: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds(_Valued):
    """A length of time in seconds, or how many seconds a date or time lies after the beginning of 1970, as a number."""

    KIND: ClassVar[str] = "value.seconds"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted(_Valued):
    """A date or time, moved by months and then by microseconds; missing outside the years 1 to 9999.

    Where a month is too short, its last day is taken. A length of time is moved by microseconds alone.
    """

    KIND: ClassVar[str] = "value.shifted"
    VERSION: ClassVar[int] = 1
    part: "Value"
    months: int
    microseconds: int

    def __post_init__(self) -> None:
        if abs(self.months) > MOST_MONTHS or abs(self.microseconds) > MOST_MICROSECONDS:
            raise InvalidInput("a length of time is beyond ten thousand years; nothing was done.")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cased(_Valued):
    """A text in small or in capital letters: Latin, Greek and Cyrillic letters that have exactly one other form."""

    KIND: ClassVar[str] = "value.cased"
    VERSION: ClassVar[int] = 1
    part: "Value"
    capital: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed(_Valued):
    """A text without the spaces at its ends; other white space stays."""

    KIND: ClassVar[str] = "value.trimmed"
    VERSION: ClassVar[int] = 1
    part: "Value"
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(_Valued):
    """The characters of a text from a place on, which is 1 for the first: all of them, or a number of them."""

    KIND: ClassVar[str] = "value.slice"
    VERSION: ClassVar[int] = 1
    part: "Value"
    start: int
    length: int | None

    def __post_init__(self) -> None:
        _place(self.start, 1, "the place of a first character")
        if self.length is not None:
            _place(self.length, 0, "a number of characters")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending(_Valued):
    """The last characters of a text."""

    KIND: ClassVar[str] = "value.ending"
    VERSION: ClassVar[int] = 1
    part: "Value"
    length: int

    def __post_init__(self) -> None:
        _place(self.length, 0, "a number of characters")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(_Valued):
    """The first 10,000 characters of a text, with one text in the place of another, from left to right."""

    KIND: ClassVar[str] = "value.replaced"
    VERSION: ClassVar[int] = 1
    part: "Value"
    old: str
    new: str

    def __post_init__(self) -> None:
        Text(self.old), Text(self.new)
        if not 1 <= len(self.old) <= LONGEST or len(self.new) > LONGEST:
            raise InvalidInput(
                f"a text of 1 to {LONGEST} characters is replaced, by one of at most {LONGEST}; nothing was done."
            )
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenated(_Valued):
    """Texts one after the other, of each its first 10,000 characters; missing where one is."""

    KIND: ClassVar[str] = "value.concatenated"
    VERSION: ClassVar[int] = 1
    parts: tuple["Value", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "the joined text")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded(_Valued):
    """A number to this many digits after the point, halves away from 0; a whole number is itself."""

    KIND: ClassVar[str] = "value.rounded"
    VERSION: ClassVar[int] = 1
    part: "Value"
    digits: int

    def __post_init__(self) -> None:
        if not 0 <= self.digits <= MOST_DIGITS:
            raise InvalidInput(f"a number is rounded to 0 to {MOST_DIGITS} digits after the point; nothing was done.")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(_Valued):
    """A value as a whole number: of a number the nearest, a half to the even one; what else, as a cast does it."""

    KIND: ClassVar[str] = "value.nearest"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(_Valued):
    """A value as the label of the bin that it lies in; missing outside all bins.

    Bins go from each edge (included) to the next (excluded). ``below`` adds one for all that is less than the first
    edge, ``above`` one for all else. ``labels`` names the bins in ascending order; they are public.
    """

    KIND: ClassVar[str] = "value.cut"
    VERSION: ClassVar[int] = 1
    part: "Value"
    edges: tuple[Literal, ...]
    labels: tuple[str, ...]
    below: bool
    above: bool

    def __post_init__(self) -> None:
        _check_edges(self.edges)
        bins = len(self.edges) - 1 + self.below + self.above
        if bins < 1:
            raise InvalidInput("one edge makes no bin; nothing was done. Give two edges, or ask for below or above.")
        if len(self.labels) != bins:
            raise InvalidInput(f"the edges make {bins} bins, and {len(self.labels)} labels were given; give {bins}.")
        for label in self.labels:
            Text(label)
        if len(set(self.labels)) != len(self.labels):
            raise InvalidInput("two bins have the same label; nothing was done. Give each its own.")
        _modest(self)


# ------------------------------------------------------------------------------------------------------- predicates


class _Predicate:
    """What all predicates share: ``&``, ``|``, ``~``, and a refusal of Python's ``and``/``or``."""

    __slots__ = ()
    writer: ClassVar[Callable[..., str]] = staticmethod(form)

    def __post_init__(self) -> None:
        _modest(self)

    def __and__(self, other: object) -> "Expression":
        if hasattr(other, "node"):  # a column of truth values, which knows what to do
            return NotImplemented
        parts = _flat(AllOf, self, other)
        return AllOf(parts=parts) if len(parts) > 1 else parts[0]

    def __or__(self, other: object) -> "Expression":
        if hasattr(other, "node"):
            return NotImplemented
        parts = _flat(AnyOf, self, other)
        return AnyOf(parts=parts) if len(parts) > 1 else parts[0]

    def __invert__(self) -> "Expression":
        return self.part if isinstance(self, Not) else Not(part=_predicate(self))

    def __bool__(self) -> NoReturn:
        raise InvalidInput("a predicate has no truth value: combine with & | ~, not with and, or, not.")

    def __str__(self) -> str:
        return self.writer(self)

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compare(_Predicate):
    """A column against a constant of its type; false where the column is missing."""

    KIND: ClassVar[str] = "expression.compare"
    VERSION: ClassVar[int] = 1
    column: str
    operator: Operator
    constant: Literal


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneOf(_Predicate):
    """Whether a column is one of several constants; false where it is missing."""

    KIND: ClassVar[str] = "expression.one_of"
    VERSION: ClassVar[int] = 1
    column: str
    constants: tuple[Literal, ...]

    def __post_init__(self) -> None:
        _some(self.constants, "one")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Missing(_Predicate):
    """Whether a column is null or NaN."""

    KIND: ClassVar[str] = "expression.missing"
    VERSION: ClassVar[int] = 1
    column: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ValueCompare(_Predicate):
    """Two values of one type against each other; false where one of them is missing."""

    KIND: ClassVar[str] = "expression.value_compare"
    VERSION: ClassVar[int] = 1
    left: "Value"
    operator: Operator
    right: "Value"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ValueOneOf(_Predicate):
    """Whether a value is one of several constants; false where it is missing."""

    KIND: ClassVar[str] = "expression.value_one_of"
    VERSION: ClassVar[int] = 1
    part: "Value"
    constants: tuple[Literal, ...]

    def __post_init__(self) -> None:
        _some(self.constants, "one")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ValueMissing(_Predicate):
    """Whether a value is missing."""

    KIND: ClassVar[str] = "expression.value_missing"
    VERSION: ClassVar[int] = 1
    part: "Value"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StartsWith(_Predicate):
    """Whether a text begins with a prefix, byte for byte; false where it is missing."""

    KIND: ClassVar[str] = "expression.starts_with"
    VERSION: ClassVar[int] = 1
    part: "Value"
    prefix: str

    def __post_init__(self) -> None:
        Text(self.prefix)
        if not self.prefix:
            raise InvalidInput(
                "every text begins with an empty prefix; nothing was done. Give one that says something."
            )
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Not(_Predicate):
    """The opposite of a predicate."""

    KIND: ClassVar[str] = "expression.not"
    VERSION: ClassVar[int] = 1
    part: "Expression"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllOf(_Predicate):
    """True where every part is."""

    KIND: ClassVar[str] = "expression.all_of"
    VERSION: ClassVar[int] = 1
    parts: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "all")
        _modest(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnyOf(_Predicate):
    """True where some part is."""

    KIND: ClassVar[str] = "expression.any_of"
    VERSION: ClassVar[int] = 1
    parts: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _some(self.parts, "any")
        _modest(self)


def write_with(writer: Callable[..., str]) -> None:
    """Let predicates show themselves in the words of a writer, which is made of them and so comes later."""
    _Predicate.writer = staticmethod(writer)


Value = (
    Named
    | Text
    | Whole
    | Number
    | Truth
    | Date
    | Time
    | Duration
    | Arithmetic
    | Negative
    | Absolute
    | Floor
    | Least
    | Greatest
    | Coalesce
    | CaseWhen
    | Cast
    | DatePart
    | DaysBetween
    | Length
    | Cut
    | Truncated
    | UnitsBetween
    | Seconds
    | Shifted
    | Cased
    | Trimmed
    | Slice
    | Ending
    | Replaced
    | Concatenated
    | Rounded
    | Nearest
)
Expression = Compare | OneOf | Missing | ValueCompare | ValueOneOf | ValueMissing | StartsWith | Not | AllOf | AnyOf
EXPRESSIONS = (
    *(Compare, OneOf, Missing, ValueCompare, ValueOneOf, ValueMissing, StartsWith, Not, AllOf, AnyOf),
    *(Named, Arithmetic, Negative, Absolute, Floor, Least, Greatest, Coalesce, CaseWhen, Branch),
    *(Cast, DatePart, DaysBetween, Length, Cut, Truncated, UnitsBetween, Seconds, Shifted),
    *(Cased, Trimmed, Slice, Ending, Replaced, Concatenated, Rounded, Nearest),
    *LITERALS,
)


def inside(node: Value | Expression) -> Iterable[Value | Expression]:
    """The parts that a node is made of, one level down; constants that it is compared with are not among them."""
    match node:
        case Arithmetic() | ValueCompare():
            return (node.left, node.right)
        case DaysBetween() | UnitsBetween():
            return (node.start, node.end)
        case Least() | Greatest() | Coalesce() | Concatenated() | AllOf() | AnyOf():
            return node.parts
        case CaseWhen():
            parts = [part for branch in node.branches for part in (branch.when, branch.then)]
            return parts if node.otherwise is None else [*parts, node.otherwise]
        case Compare() | OneOf() | Missing():
            return (Named(column=node.column),)
        case Named() | Text() | Whole() | Number() | Truth() | Date() | Time() | Duration():
            return ()
    return (node.part,)


def summands(node: Value) -> list[Value]:
    """What a run of additions and subtractions adds and subtracts, from left to right; else the value alone."""
    if isinstance(node, Arithmetic) and node.sign in (Sign.PLUS, Sign.MINUS):
        return summands(node.left) + summands(node.right)
    return [node]


def _modest(node: object) -> None:
    """Refuse what is nested too deep or written out too long; parts that are used twice count twice."""
    depth, nodes = _measured(node, {})
    if depth > DEEPEST:
        raise InvalidInput(f"an expression is nested more than {DEEPEST} deep; nothing was done. Ask a simpler one.")
    if nodes > MOST:
        raise InvalidInput(f"an expression has more than {MOST:,} parts; nothing was done. Ask a simpler one.")


def _measured(node: object, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Depth and number of nodes; each shared part is looked at once, so that sharing cannot make this slow."""
    if id(node) not in known:
        match node:
            case Text() | Whole() | Number() | Truth() | Date() | Time() | Duration() | Named():
                known[id(node)] = 1, 1
            case Compare() | OneOf() | Missing():
                known[id(node)] = 1, 1
            case _:
                parts = [_measured(part, known) for part in inside(node)]  # type: ignore[arg-type]  # what is left has parts
                known[id(node)] = 1 + max(depth for depth, _ in parts), 1 + sum(nodes for _, nodes in parts)
    return known[id(node)]


def _some(parts: tuple[object, ...], what: str) -> None:
    if not parts:
        raise InvalidInput(f"{what} of no values is not a question; nothing was done.")


def _place(value: int, least: int, what: str) -> None:
    if not least <= value < 2**31:
        raise InvalidInput(f"{what} is a whole number from {least} on; nothing was done.")


def _check_edges(edges: tuple[Literal, ...]) -> None:
    if not edges:
        raise InvalidInput("a cut without edges makes no bins; nothing was done. Give them in ascending order.")
    kinds = {type(edge) for edge in edges}
    if len(kinds) > 1 or not kinds <= {Whole, Number, Date, Time}:
        raise InvalidInput("edges must be all whole numbers, all numbers, all dates or all times; nothing was done.")
    # Numbers are used as the nearest doubles: two edges that differ less than those would make an empty bin.
    places = [
        float(edge.value) if isinstance(edge, Number) else edge.microseconds if isinstance(edge, Time) else edge.value
        for edge in edges
    ]
    if any(not low < high for low, high in itertools.pairwise(places)):  # type: ignore[operator]  # all edges are of one kind
        raise InvalidInput("edges must ascend, each above the one before; nothing was done.")


def _predicate(value: object) -> Expression:
    if not isinstance(value, Expression):
        raise InvalidInput(
            f"{type(value).__name__} is not a predicate; combine predicates such as sf.col('age') >= 65."
        )
    return value


def _flat(kind: type[AllOf] | type[AnyOf], *several: object) -> tuple[Expression, ...]:
    """Merge nested parts, drop repeats and sort, so that one question has one canonical form."""
    parts: dict[str, Expression] = {}
    for one in several:
        predicate = _predicate(one)
        for part in predicate.parts if isinstance(predicate, kind) else (predicate,):
            parts[form(part)] = part
    return tuple(parts[text] for text in sorted(parts))
