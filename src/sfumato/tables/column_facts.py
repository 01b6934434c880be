"""What is publicly known about one column of a table."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, ClassVar  # keys as a person gives them, before they are checked

from sfumato.core.exact import Exact, rational
from sfumato.core.query import check_name
from sfumato.engines.expressions import Type
from sfumato.engines.sources import CellFormat
from sfumato.engines.zones import check_zone
from sfumato.errors import InvalidInput

__all__ = ["ColumnFacts", "Key", "period"]

Key = str | int | bool
DAYS = (Type.DATE, Type.TIME)
MOST_KEYS = 10**6
EXAMPLES = {
    Type.TEXT: "texts",
    Type.WHOLE: "whole numbers of 64 bits",
    Type.TRUTH: "true and false",
    Type.DATE: "dates such as 2026-01-31",
    Type.TIME: "days such as 2026-01-31",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is publicly known about a column: its type, the range of its values, the list of its values.

    Keys of a column of dates or times are held as texts, such as ``2026-01-31``. The range of such a column, or of
    texts that are read as one, is its period, from a first to a last day. ``zone`` is whose clock times with a zone
    are read by. ``cells`` says how its values are written in a file of text, where that is not as the schema says of
    all columns.

    >>> ColumnFacts(name="sbp", type=Type.WHOLE, bounds=(80, 220)).bounds
    (Fraction(80, 1), Fraction(220, 1))
    """

    KIND: ClassVar[str] = "schema.column"
    VERSION: ClassVar[int] = 1
    name: str
    type: Type
    bounds: tuple[Fraction, Fraction] | tuple[date, date] | None = None
    keys: tuple[Key, ...] = ()
    zone: str | None = None
    cells: CellFormat | None = None

    def __post_init__(self) -> None:
        if self.cells is not None and not isinstance(self.cells, CellFormat):
            raise InvalidInput(f"the cells of column {self.name!r} are no CellFormat; nothing was done.")
        if self.cells == CellFormat():
            object.__setattr__(self, "cells", None)
        check_name(self.name, "the name of a column")
        if not isinstance(self.type, Type) or self.type is Type.OTHER:
            raise InvalidInput(
                f"column {self.name!r} must be declared text, whole, number, truth, date or time; nothing was done."
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._range(*self.bounds))
        if self.zone is not None:
            check_zone(self.name, self.zone)
            if self.type is not Type.TIME:
                raise InvalidInput(f"column {self.name!r} holds no times, and has no zone; nothing was done.")
        object.__setattr__(self, "keys", self._listed())

    def _range(self, lower: Exact | date, upper: Exact | date) -> tuple[Fraction, Fraction] | tuple[date, date]:
        if isinstance(lower, date) or isinstance(upper, date):
            if self.type not in (Type.DATE, Type.TIME, Type.TEXT):
                raise InvalidInput(
                    f"column {self.name!r} holds {self.type.value}s, which have no period; nothing was done. "
                    "Give two numbers."
                )
            return period(self.name, lower, upper)
        if self.type not in (Type.WHOLE, Type.NUMBER):
            raise InvalidInput(
                f"column {self.name!r} holds {self.type.value}s, which have no bounds; nothing was done. "
                "Bounds are for whole numbers and numbers."
            )
        low, high = rational(lower, f"lower bound of {self.name!r}"), rational(upper, f"upper bound of {self.name!r}")
        if low > high:
            raise InvalidInput(
                f"the bounds of {self.name!r} are the wrong way round: {low} is above {high}. Nothing was done. "
                "Give (low, high)."
            )
        if self.type is Type.WHOLE and (low.denominator > 1 or high.denominator > 1):
            raise InvalidInput(
                f"the bounds of {self.name!r} must be whole numbers, as its values are; nothing was done."
            )
        if max(abs(low), abs(high)) >= (2**63 if self.type is Type.WHOLE else 2**1000):
            raise InvalidInput(f"the bounds of {self.name!r} are beyond what a column can hold; nothing was done.")
        return low, high

    def _listed(self) -> tuple[Key, ...]:
        if not self.keys:
            return ()
        if self.type is Type.NUMBER:
            raise InvalidInput(
                f"column {self.name!r} holds numbers, which cannot be listed as keys: they do not compare exactly. "
                "Nothing was done. Declare it whole, or cut it into bins in the question."
            )
        if len(self.keys) > MOST_KEYS:
            raise InvalidInput(
                f"column {self.name!r} lists {len(self.keys):,} keys, more than {MOST_KEYS:,}; nothing was done. "
                "Group by something coarser."
            )
        given: tuple[object, ...] = self.keys  # dates are taken too, and held as text
        keys: list[Any] = [key.isoformat() if type(key) is date and self.type in DAYS else key for key in given]
        seen: set[object] = set()
        for place, key in enumerate(keys, 1):
            if not _storable(key, self.type):
                raise InvalidInput(
                    f"key {place} of column {self.name!r} is not of its type; nothing was done. Its keys are "
                    f"{EXAMPLES[self.type]}."
                )
            if key in seen:
                raise InvalidInput(
                    f"key {place} of column {self.name!r} is listed already; nothing was done. List each value once."
                )
            seen.add(key)
        return tuple(keys)


def period(column: str, first: object, last: object) -> tuple[date, date]:
    """The first and the last day of a column of dates or times.

    >>> period("admitted", date(2026, 1, 1), date(2026, 12, 31))
    (datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))
    """
    if type(first) is not date or type(last) is not date or first > last:
        raise InvalidInput(
            f"the period of {column!r} is a first and a last day, the first not after the last; nothing was done. "
            "Give (datetime.date(2025, 1, 1), datetime.date(2025, 12, 31))."
        )
    return first, last


def _storable(key: object, kind: Type) -> bool:
    """Whether a column of this type can hold the key."""
    match kind:
        case Type.TRUTH:
            return isinstance(key, bool)
        case Type.WHOLE:
            return type(key) is int and -(2**63) <= key < 2**63
        case Type.TEXT:
            return isinstance(key, str) and not any("\ud800" <= sign <= "\udfff" for sign in key)
    with suppress(ValueError):
        return isinstance(key, str) and date.fromisoformat(key).isoformat() == key
    return False
