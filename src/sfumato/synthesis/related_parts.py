"""What persons and their rows were made of, as one wide row a person: for the page and the folder about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.synthesis.columns import ListedColumn, SyntheticColumn
from sfumato.synthesis.declared import DeclaredRows
from sfumato.synthesis.measured import Codes, MeasuredTable
from sfumato.synthesis.related_rows import MadeFamily, RelatedShape

__all__ = ["RelatedParts", "wide_codes", "wide_columns"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelatedParts:
    """Persons as cells of all that was measured of one, the noisy tables, and what was declared of each file.

    A function of the release and of what was declared.
    """

    columns: tuple[SyntheticColumn, ...]
    """Of the person, the numbers of rows, and then of each row; of these the last cell is that of no such row."""
    top: int
    """How many of them are of the person and the numbers of rows."""
    first: tuple[int, ...]
    """Where the columns of first rows stand."""
    codes: Codes
    measured: tuple[MeasuredTable, ...]
    declared: Mapping[str, DeclaredRows]
    """The columns of each file but those that link them, by its name."""
    labels: Mapping[str, str]
    """The column of a file that a column of a measured table stands for, by the latter's name."""

    @property
    def absent(self) -> frozenset[int]:
        """The columns whose last cell says that a person has no such row."""
        return frozenset(range(self.top, len(self.columns)))


def wide_columns(
    persons: Sequence[SyntheticColumn], children: Mapping[str, tuple[int, Sequence[SyntheticColumn]]]
) -> tuple[SyntheticColumn, ...]:
    """The columns of one wide row a person; children by name, each with how many rows it has at most.

    >>> sex, ward = (ListedColumn(name=name, values=("a", "b")) for name in ("sex", "ward"))
    >>> [column.name for column in wide_columns([sex], {"stays": (2, [ward])})]
    ['sex', 'stays', 'stays.ward_1', 'stays.ward_2']
    """
    numbers = [ListedColumn(name=name, values=tuple(range(most + 1))) for name, (most, _) in children.items()]
    below = [
        replace(column, name=f"{name}.{column.name}_{row}", missing=True)
        for name, (most, columns) in children.items()
        for row in range(1, most + 1)
        for column in columns
    ]
    return (*persons, *numbers, *below)


def wide_codes(family: MadeFamily, shape: RelatedShape) -> Codes:
    """Persons as cells of all columns of the shape, from persons and rows that were made."""
    persons, own = len(family.persons), len(shape.persons)
    found = np.empty((persons, len(shape.sizes)), dtype=np.int32)
    found[:, :own] = family.persons
    for child, made in enumerate(family.children):
        found[:, shape.number(child)] = np.bincount(made.owner, minlength=persons)
        for column, size in enumerate(shape.children[child].sizes):
            for row in range(1, shape.children[child].most + 1):
                here = made.number == row
                place = shape.place(child, row, column)
                found[:, place] = size
                found[made.owner[here], place] = made.codes[here, column]
    return found
