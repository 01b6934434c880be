"""Keys: what a table is grouped by, with the public list of all groups."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import ClassVar

from sfumato.engines.expressions import Date, Time, Value
from sfumato.errors import InvalidInput

__all__ = ["KeyValue", "Keys", "keys_of"]

KeyValue = str | int | bool
MOST_KEYS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Keys:
    """A column to group by, with the public list of all values that it may take, empty groups included.

    ``value`` computes it where it is not a column of the table. ``other`` names a last group, for rows with any value
    that is not listed and for those without one; without it such rows do not count. Dates are held as
    :class:`~sfumato.engines.expressions.Date`, times as :class:`~sfumato.engines.expressions.Time`.

    >>> Keys(column="sex", values=("F", "M"), other="else").labels
    ('F', 'M', 'else')
    """

    KIND: ClassVar[str] = "keys"
    VERSION: ClassVar[int] = 2
    column: str
    values: tuple[str | int | bool | Date | Time, ...]
    value: Value | None = None
    other: str | None = None

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput(f"the key list of {self.column!r} is empty; nothing was done. Declare its values.")
        if len(self.values) > MOST_KEYS:
            raise InvalidInput(
                f"the key list of {self.column!r} has more than {MOST_KEYS:,} values; nothing was done. Group by "
                "something coarser."
            )
        held = self.values
        kinds = {type(value) for value in held}
        if len(kinds) > 1 or not kinds <= {str, int, bool, Date, Time}:
            raise InvalidInput(
                f"keys of {self.column!r} must be all text, all whole numbers, all dates, all times or all truth "
                "values. Nothing was done."
            )
        if any(not _storable(value) for value in held):
            raise InvalidInput(
                f"keys of {self.column!r} must be whole numbers of 64 bits, or text without half a surrogate pair. "
                "Nothing was done."
            )
        if len(set(held)) != len(held):
            raise InvalidInput(f"the key list of {self.column!r} names a value twice; nothing was done.")
        if self.other is not None and (
            type(self.other) is not str or type(held[0]) is not str or self.other in held or not _storable(self.other)
        ):
            raise InvalidInput(
                f"the rest of {self.column!r} cannot be called {self.other!r}: keys must be text, and none of them "
                "may have that name. Nothing was done."
            )

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.values) + (self.other is not None)

    @property
    def labels(self) -> tuple[KeyValue, ...]:
        """The names of all groups; dates and times as texts such as ``2026-01-31`` and ``2026-01-31 13:00:00``."""
        listed = tuple(
            value.value.replace("T", " ") if isinstance(value, Date | Time) else value for value in self.values
        )
        return listed if self.other is None else (*listed, self.other)

    def __repr__(self) -> str:
        more = ", …" if self.size > 5 else ""
        return f"<Keys {self.column}: {self.size:,} groups: {', '.join(map(repr, self.labels[:5]))}{more}>"


def keys_of(column: str, values: Iterable[KeyValue | date]) -> Keys:
    """Keys from the values as a caller gives them, days among them.

    >>> keys_of("day", [date(2026, 1, 31)]).labels
    ('2026-01-31',)
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"the keys of {column!r} are a list of values, not one alone; nothing was done. Say [...] around them."
        )
    held = (Date(value.isoformat()) if isinstance(value, date) else value for value in values)
    return Keys(column=column, values=tuple(islice(held, MOST_KEYS + 1)))


def _storable(value: object) -> bool:
    """Whether a column can hold a key, so that nothing can go wrong with it after the charge."""
    if isinstance(value, str):
        return not any("\ud800" <= sign <= "\udfff" for sign in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63
