"""Groups: the product of several keys, and the names of the columns beside them."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from sfumato.core.release import interval_names
from sfumato.errors import InvalidInput
from sfumato.tables.keys import Keys, KeyValue

__all__ = ["MOST_CELLS", "cells_of", "check_grouping", "check_size", "labels_of"]

MOST_CELLS = 10**7


def cells_of(by: Sequence[Keys]) -> int:
    """How many groups the product of some keys has."""
    return prod(keys.size for keys in by)


def labels_of(by: Sequence[Keys]) -> Mapping[str, Sequence[KeyValue]]:
    """The key columns, in the order of the cells: the last key runs fastest."""
    cells = list(product(*(keys.labels for keys in by)))
    return {keys.column: [cell[place] for cell in cells] for place, keys in enumerate(by)}


def check_grouping(by: Sequence[Keys], names: Sequence[str]) -> None:
    """Refuse columns of one name: keys, measures, and the low and high ends of their intervals."""
    columns = [keys.column for keys in by]
    if len(set(columns)) != len(columns):
        raise InvalidInput("a column can be grouped by once only; nothing was done.")
    if len(set(names)) != len(names):
        raise InvalidInput("two measures have one name; nothing was done.")
    ends = [end for name in names for end in interval_names(name)]
    taken = sorted({*names, *ends} & set(columns))
    if taken:
        raise InvalidInput(
            f"a key column must not be called {' or '.join(taken)}: that names a column of the answer. Nothing was "
            "done."
        )
    if set(names) & set(ends):
        raise InvalidInput("a measure is called as the end of another one's interval; nothing was done.")


def check_size(size: int) -> None:
    """Refuse an answer of more numbers than anyone reads."""
    if size > MOST_CELLS:
        raise InvalidInput(
            f"the declared keys make {size:,} cells, more than {MOST_CELLS:,}; nothing was done. "
            "Group by fewer columns, or declare fewer values."
        )
