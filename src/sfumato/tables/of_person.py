"""What can be asked of all rows of one person (``sf.first``, ``sf.max``, ``sf.any`` …), and what is known of it.

A value of a person has public facts of its own: the range that follows from declared bounds and from how many rows of a
person count, and the list of what it can be where that is short. Nothing is read for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.core.exact import natural
from sfumato.engines.expressions import (
    Expression,
    Named,
    Term,
    Value,
    bounds_of,
    col,
    possible_values,
    surely_whole,
    term,
)
from sfumato.engines.person_values import MOST_PLACES, Fold, PersonValue
from sfumato.errors import InvalidInput
from sfumato.tables.clamped import Bounds
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Asked
from sfumato.tables.measures.average import MeanValue
from sfumato.tables.measures.row_count import RowCount
from sfumato.tables.measures.total import Total

__all__ = [
    "MOST_LISTED",
    "AskedOfPerson",
    "PublicFacts",
    "any_of",
    "distinct",
    "every",
    "first",
    "greatest_of",
    "last",
    "least_of",
    "person_value",
]

MOST_LISTED = 1_000
"""Whole numbers are listed as keys by themselves up to this many; where there are more, the question must say which."""

KEPT_WHOLE = (Fold.SUM, Fold.LEAST, Fold.GREATEST, Fold.FIRST, Fold.LAST)  # of whole numbers they are whole


@dataclass(frozen=True, slots=True)
class AskedOfPerson:
    """A value of one person that still needs a name.

    >>> first("ward", by="admitted").named("ward").fold
    <Fold.FIRST: 'first'>
    """

    named: Callable[[str], PersonValue]


def first(value: str | Term, *, by: str | Term, place: int = 1) -> AskedOfPerson:
    """The value in a person's first row ``by`` another, such as a date; for :meth:`Table.per_person`.

    ``place=2`` is the second row, and missing where a person has no second one. Of rows that are equal in that, the one
    whose values come first counts: the order in which rows are stored never decides. Rows without a value to go ``by``
    do not count.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> visits().per_person(hospital=sf.first("hospital", by="age")).group_by("hospital").count().query.labels()
    {'hospital': ['A', 'B']}
    """
    return _ordered(Fold.FIRST, value, by, place)


def last(value: str | Term, *, by: str | Term, place: int = 1) -> AskedOfPerson:
    """The value in a person's last row ``by`` another, such as a date; see :func:`first`. ``place`` counts back.

    >>> last("ward", by="admitted").named("ward").fold
    <Fold.LAST: 'last'>
    """
    return _ordered(Fold.LAST, value, by, place)


def least_of(value: str | Term) -> AskedOfPerson:
    """The least value in a person's rows, such as the first date (``sf.min``); for :meth:`Table.per_person`.

    >>> import sfumato as sf
    >>> sf.min("admitted").named("earliest").fold
    <Fold.LEAST: 'least'>
    """
    node = _node(value)
    return AskedOfPerson(lambda name: PersonValue(name=name, fold=Fold.LEAST, value=node))


def greatest_of(value: str | Term) -> AskedOfPerson:
    """The greatest value in a person's rows (``sf.max``); for :meth:`Table.per_person`.

    >>> import sfumato as sf
    >>> sf.max("sbp").named("highest").fold
    <Fold.GREATEST: 'greatest'>
    """
    node = _node(value)
    return AskedOfPerson(lambda name: PersonValue(name=name, fold=Fold.GREATEST, value=node))


def distinct(value: str | Term) -> AskedOfPerson:
    """How many different values there are in a person's rows; for :meth:`Table.per_person`.

    >>> distinct("ward").named("wards").fold
    <Fold.DISTINCT: 'distinct'>
    """
    node = _node(value)
    return AskedOfPerson(lambda name: PersonValue(name=name, fold=Fold.DISTINCT, value=node))


def any_of(where: Expression) -> AskedOfPerson:
    """Whether some row of a person meets a condition (``sf.any``); for :meth:`Table.per_person`.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> ever = visits().per_person(ever=sf.any(sf.col("sbp") >= 140))
    >>> ever.group_by("ever").count().query.labels()
    {'ever': [False, True]}
    """
    return _condition(Fold.ANY, where)


def every(where: Expression) -> AskedOfPerson:
    """Whether each row of a person meets a condition; for :meth:`Table.per_person`.

    >>> every(col("age") >= 65).named("always").fold
    <Fold.EVERY: 'every'>
    """
    return _condition(Fold.EVERY, where)


def person_value(name: str, asked: object, bounds: Bounds) -> PersonValue:
    """A value of a person from what was asked for: one of this file, or a count, a sum or a mean of the rows."""
    if isinstance(asked, AskedOfPerson):
        return asked.named(name)
    measure = asked.bound(name, bounds) if isinstance(asked, Asked) else None
    match measure:
        case RowCount():
            return PersonValue(name=name, fold=Fold.ROWS, where=measure.condition)
        case Total() | MeanValue():
            of = measure.of
            fold = Fold.SUM if isinstance(measure, Total) else Fold.MEAN
            return PersonValue(name=name, fold=fold, value=of.value, low=of.low, high=of.high)
    given = type(asked).__name__ if measure is None else type(measure).__name__
    raise InvalidInput(
        f"per_person({name}=...) takes sf.count(), sf.sum, sf.mean, sf.min, sf.max, sf.first, sf.last, sf.distinct, "
        f"sf.any or sf.every and was given {given}; nothing was done."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFacts:
    """What is publicly known of the columns of a table."""

    keys: Mapping[str, Keys]
    bounds: Bounds
    wholes: frozenset[str]
    integers: frozenset[str]
    most_rows: int | None

    @property
    def whole_columns(self) -> frozenset[str]:
        """The columns that are known to hold whole numbers: by what they are, by their type or by all their keys."""
        keys = (name for name, keys in self.keys.items() if all(type(one) is int for one in keys.values))
        return self.wholes.union(self.integers, keys)

    def of_persons(self, values: tuple[PersonValue, ...]) -> "PublicFacts":
        """What is then known of one row a person."""
        keys, bounds, wholes = dict[str, Keys](), dict[str, tuple[Fraction, Fraction]](), set[str]()
        for each in values:
            found = self._range(each)
            bounds |= {} if found is None else {each.name: found}
            if self._whole(each):
                wholes.add(each.name)
            listed = self._keys(each, found)
            keys |= {} if listed is None else {each.name: listed}
        known = self.whole_columns
        integers = frozenset(
            each.name
            for each in values
            if each.value is not None and each.fold in KEPT_WHOLE and surely_whole(each.value, known)
        )
        return PublicFacts(keys=keys, bounds=bounds, wholes=frozenset(wholes), integers=integers, most_rows=1)

    def _range(self, each: PersonValue) -> tuple[Fraction, Fraction] | None:
        rows = self.most_rows
        match each.fold:
            case Fold.ROWS | Fold.DISTINCT:
                if rows is None:
                    return None
                fewest = int(each.fold is Fold.ROWS and each.where is None and rows > 1)
                return Fraction(fewest), Fraction(rows)
            case Fold.MEAN | Fold.SUM:
                if each.low is None or each.high is None or (each.fold is Fold.SUM and rows is None):
                    return None
                times = rows if each.fold is Fold.SUM and rows is not None else 1
                return min(each.low, each.low * times), max(each.high, each.high * times)
            case Fold.ANY | Fold.EVERY:
                return None
        return None if each.value is None else bounds_of(each.value, self.bounds)

    def _whole(self, each: PersonValue) -> bool:
        if each.fold in (Fold.ROWS, Fold.DISTINCT):
            return True
        return each.fold not in (Fold.MEAN, Fold.ANY, Fold.EVERY) and self._holds_whole(each.value)

    def _holds_whole(self, value: Value | None) -> bool:
        if not isinstance(value, Named):
            return False
        known = self.keys.get(value.column)
        return value.column in self.wholes or (known is not None and all(type(one) is int for one in known.values))

    def _keys(self, each: PersonValue, found: tuple[Fraction, Fraction] | None) -> Keys | None:
        if each.fold in (Fold.ANY, Fold.EVERY):
            return Keys(column=each.name, values=(False, True))
        if each.fold in (Fold.FIRST, Fold.LAST, Fold.LEAST, Fold.GREATEST) and each.value is not None:
            if isinstance(each.value, Named):
                known = self.keys.get(each.value.column)
                return None if known is None else replace(known, column=each.name, value=None)
            listed = possible_values(each.value)
            return None if listed is None else Keys(column=each.name, values=listed)
        if found is None or not self._whole(each):
            return None
        whole = range(-int(-found[0] // 1), int(found[1] // 1) + 1)
        plain = range(1, whole.stop) if each.fold is Fold.ROWS and each.where is None else whole
        return Keys(column=each.name, values=tuple(plain)) if 0 < len(plain) <= MOST_LISTED else None


def _ordered(fold: Fold, value: str | Term, by: str | Term, place: int) -> AskedOfPerson:
    node, order = _node(value), _node(by)
    at = None if natural(place, "place", most=MOST_PLACES) == 1 else place
    return AskedOfPerson(lambda name: PersonValue(name=name, fold=fold, value=node, by=order, place=at))


def _condition(fold: Fold, where: Expression) -> AskedOfPerson:
    if not isinstance(where, Expression):
        raise InvalidInput(
            f"{fold.value}(...) takes a predicate such as sf.col('age') >= 65 and was given {type(where).__name__}; "
            "nothing was done."
        )
    return AskedOfPerson(lambda name: PersonValue(name=name, fold=fold, where=where))


def _node(value: str | Term) -> Value:
    found: Value = term(col(value) if isinstance(value, str) else value).node
    return found
