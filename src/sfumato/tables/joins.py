"""Joins: rows with what a public table says about them, or with other rows of the same person.

A public table is looked up by a key that it has once, so no row becomes two. Two private tables are joined on the
person and whatever else is named: then what a person's rows become depends on that person alone, and the limit holds
what the join made of them. A join on anything but the person would let one person move another's rows; it is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.query import Dataset
from sfumato.core.units import Family, Unit, User, describe
from sfumato.errors import InvalidInput, Refused

__all__ = ["Join", "check_joins", "prefixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A table that stands beside the rows, and the pairs of columns (here, there) that must be equal.

    Its columns are called by its name, a dot and their own name. Rows without a match do not count, unless
    ``unmatched``: then they stay, and what the other table, a public one, would say of them is missing. ``content`` is
    the digest of a public table's rows: another content under the same name makes another question. (Joins that were
    written down before there was such a digest have none.) Of a private table there is none: that would be an output.
    """

    KIND: ClassVar[str] = "join"
    VERSION: ClassVar[int] = 3
    dataset: Dataset
    on: tuple[tuple[str, str], ...]
    public: bool
    content: str | None = None
    unmatched: bool = False

    def __post_init__(self) -> None:
        if not self.on:
            raise InvalidInput("a join needs the columns that must be equal; nothing was done. Say on='hospital'.")
        if self.unmatched and not self.public:
            raise InvalidInput(
                "rows without a match stay beside a public table only; nothing was done. Leave 'left' out."
            )
        if self.content is not None and not self.public:
            raise InvalidInput(
                "a digest of private rows would reveal something about them; nothing was done. Leave content out."
            )


def prefixed(dataset: Dataset, column: str) -> str:
    """What a column of a joined table is called.

    >>> prefixed(Dataset(name="labs", edition="1"), "result")
    'labs.result'
    """
    return f"{dataset.name}.{column}"


def check_joins(joins: Sequence[Join], unit: Unit) -> None:
    """Refuse joins that would let one unit move the rows of another."""
    names = [join.dataset.name for join in joins]
    if len(set(names)) != len(names):
        raise InvalidInput("two joined tables have one name; nothing was done.")
    for join in joins:
        if join.public:
            continue
        if not isinstance(unit, User | Family):
            raise Refused(
                f"two private tables can be joined where persons are protected; under {describe(unit)} one row could "
                "meet any number of others. Nothing was read and nothing was spent."
            )
        if (unit.column, unit.column) not in join.on:
            raise Refused(
                f"the join with {join.dataset.name!r} does not ask for the same {unit.column!r}: one person's rows "
                "would meet another's. Nothing was read and nothing was spent. Join on the person too."
            )
