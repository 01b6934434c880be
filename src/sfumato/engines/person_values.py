"""What is made of all rows of one person: a number of rows, a sum, the first or the last, whether ever.

Each is a declaration without data, as expressions are. All of them are total: whatever the rows hold, each has a value
or is missing, and no engine can fail on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.core.documents import LEFT_OUT
from sfumato.core.exact import natural
from sfumato.core.query import check_name
from sfumato.engines.expressions import Expression, Least, Type, Value, check, type_of, written
from sfumato.engines.lattice import check_range
from sfumato.errors import InvalidInput

__all__ = ["Fold", "PersonValue"]


class Fold(Enum):
    """How the rows of a person become one value."""

    ROWS = "rows"
    DISTINCT = "distinct"
    SUM = "sum"
    MEAN = "mean"
    LEAST = "least"
    GREATEST = "greatest"
    FIRST = "first"
    LAST = "last"
    ANY = "any"
    EVERY = "every"


NEEDS_VALUE = frozenset(Fold) - {Fold.ROWS, Fold.ANY, Fold.EVERY}
ADDED = frozenset({Fold.SUM, Fold.MEAN})
ORDERED = frozenset({Fold.FIRST, Fold.LAST})
CONDITIONS = frozenset({Fold.ANY, Fold.EVERY})
MOST_PLACES = 2**31
COMPARED = (Type.TEXT, Type.WHOLE, Type.TRUTH, Type.DATE, Type.TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonValue:
    """One value of a person, from all rows of that person that meet ``where``.

    ``rows`` counts them and ``distinct`` the different values in them. ``sum`` and ``mean`` hold each value to ``low``
    and ``high`` first; ``least``, ``greatest``, ``sum`` and ``mean`` are missing where no row has a value. ``first``
    and ``last`` are of the row that comes first or last ``by`` another value, or at another ``place`` from there; rows
    without that do not count, and rows with the same come in the order of the values themselves. ``any`` and ``every``
    say whether some row, or each, meets ``where``.

    Guarantee: a function of the rows of one person, in whatever order they are stored.
    """

    KIND: ClassVar[str] = "person_value"
    VERSION: ClassVar[int] = 1
    name: str
    fold: Fold
    value: Value | None = None
    where: Expression | None = None
    by: Value | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    place: int | None = field(default=None, metadata={LEFT_OUT: True})
    """From 2 on; the first, or the last, where there is none."""

    def __post_init__(self) -> None:
        if self.place is not None:
            natural(self.place, "place", least=2, most=MOST_PLACES)
        if self.place is not None and self.fold not in ORDERED:
            raise InvalidInput(f"{self.name!r} has a place only if it is the first or the last; nothing was done.")
        check_name(self.name, "the name of a value of a person")
        if (self.value is not None) != (self.fold in NEEDS_VALUE):
            raise InvalidInput(f"{self.name!r} is of a value exactly if it is neither rows, any nor every.")
        if (self.by is not None) != (self.fold in ORDERED):
            raise InvalidInput(f"{self.name!r} is by another value exactly if it is the first or the last.")
        if self.fold in CONDITIONS and self.where is None:
            raise InvalidInput(f"{self.name!r} needs a condition, such as sf.col('age') >= 65; nothing was done.")
        if (self.low is not None, self.high is not None) != (self.fold in ADDED,) * 2:
            raise InvalidInput(f"{self.name!r} has a range exactly if it is a sum or a mean; nothing was done.")
        if self.low is not None and self.high is not None:
            check_range(self.low, self.high)

    def type_in(self, columns: Mapping[str, Type]) -> Type:
        """The type of the value; one that does not fit the columns is refused by name, and nothing is read."""
        if self.where is not None:
            check(self.where, columns)
        if self.value is None:
            return Type.WHOLE if self.fold is Fold.ROWS else Type.TRUTH
        held = type_of(self.value, columns)
        if held is Type.SPAN:
            raise InvalidInput(
                f"{self.name!r} would be a length of time, which no column holds; nothing was read and nothing was "
                "spent. Say it in seconds or days: EXTRACT(EPOCH FROM end - start)."
            )
        if self.by is not None and type_of(self.by, columns) is not Type.TEXT:
            type_of(Least(parts=(self.by,)), columns)  # refuses what has no order
        match self.fold:
            case Fold.SUM | Fold.MEAN if held not in (Type.WHOLE, Type.NUMBER):
                raise InvalidInput(
                    f"{self.name!r} needs numbers, and {written(self.value)} is a {held.value}; nothing was read and "
                    "nothing was spent."
                )
            case Fold.MEAN:
                return Type.NUMBER
            case Fold.DISTINCT:
                if held not in COMPARED:
                    raise InvalidInput(
                        f"{self.name!r} counts different values, and {written(self.value)} is a {held.value}, which "
                        "does not compare exactly; nothing was read and nothing was spent. Cut it into bins."
                    )
                return Type.WHOLE
            case Fold.LEAST | Fold.GREATEST:
                return type_of(Least(parts=(self.value,)), columns)
        return held
