"""Features of a table: numbers held to public bounds, words to public lists, nothing fitted to the rows."""

import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sfumato.core.deprecation import renamed
from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.learning.given import GivenRows

__all__ = ["Features"]

PLAIN = frozenset({str, bytes, bool, int, float, complex, type(None)})
"""Cells with no code of their own, which can be read as they are."""


@renamed(words="categories")
@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Columns as numbers between −1 and 1: what a model is trained on.

    A column of ``bounds`` is held to its bounds and scaled with them; a missing number is the middle. A column of
    ``categories`` becomes one place for each of them that was declared: 1 where it is that one, and 0 everywhere for
    one that was not.

    Guarantee: none is needed. Each row becomes numbers by itself, with no mean, deviation or list taken from other
    rows; a standardised column would have to be charged. Assumes: bounds and categories were not read off the
    data. Public: bounds and categories. Sensitive: what a call returns.

    >>> ward = Features(bounds={"age": (0, 100)}, categories={"sex": ["f", "m"]})
    >>> ward.names
    ('age', 'sex=f', 'sex=m')
    >>> ward({"age": [25, 130, None], "sex": ["f", "m", "?"]}).tolist()
    [[-0.5, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, Sequence[Hashable]]

    def __init__(
        self,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        categories: Mapping[str, Sequence[Hashable]] | None = None,
    ) -> None:
        numbers = {str(name): bounded(pair, f"column {name!r}") for name, pair in (bounds or {}).items()}
        lists = {str(name): tuple(listed) for name, listed in (categories or {}).items()}
        if not numbers and not lists:
            raise NotDeclared("no column is declared; nothing was read. Give bounds of numbers or lists of categories.")
        for name, listed in lists.items():
            if name in numbers:
                raise InvalidInput(f"column {name!r} is declared as numbers and as categories; nothing was read")
            if not listed or len(set(listed)) != len(listed):
                raise InvalidInput(
                    f"the categories of column {name!r} are missing, or not all different; nothing was read"
                )
        object.__setattr__(self, "bounds", numbers)
        object.__setattr__(self, "categories", lists)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order: numbers first."""
        return (*self.bounds, *(f"{name}={word}" for name, listed in self.categories.items() for word in listed))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read, in order: numbers first."""
        return (*self.bounds, *self.categories)

    def rows(self, table: GivenRows) -> int:
        """How many rows a table has; refused where a column is missing, or is no column. Reads no row. Sensitive."""
        lengths = {length_of(_column(table, name), f"column {name!r}") for name in self.columns}
        if len(lengths) != 1:
            raise InvalidInput("the columns of this table have different lengths; nothing was trained")
        return lengths.pop()

    def __call__(self, table: GivenRows) -> Tensor:
        """The features of a table (a mapping of columns, or a frame), one row each."""
        self.rows(table)
        parts: list[GivenRows] = []
        for name, pair in self.bounds.items():
            parts.append(np.nan_to_num(scaled(_column(table, name), pair), nan=0.0)[:, None])
        for name, listed in self.categories.items():
            places = {word: place for place, word in enumerate(listed)}
            found = np.array([place_of(places, cell) for cell in cells(_column(table, name))], np.int64)
            parts.append(found[:, None] == np.arange(len(listed)))
        return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))


def bounded(pair: GivenRows, what: str) -> tuple[float, float]:
    """A pair of finite bounds, the lower below the upper."""
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise InvalidInput(f"the bounds of {what} are a pair of numbers (low, high); nothing was read") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise InvalidInput(f"the bounds of {what} must be finite, the lower below the upper; nothing was read")
    if (high - low) / 2 < sys.float_info.min:
        raise InvalidInput(f"the bounds of {what} are too close for floats to distinguish what lies between them")
    return low, high


def middle(pair: tuple[float, float]) -> tuple[float, float]:
    """The middle of bounds, and how far they are from it; finite for all that :func:`bounded` lets pass.

    >>> middle((1e308, 1.5e308))
    (1.25e+308, 2.5e+307)
    """
    low, high = pair
    return low + (high - low) / 2, (high - low) / 2


def scaled(column: GivenRows, pair: tuple[float, float]) -> GivenRows:
    """A column as numbers between −1 and 1, held to its bounds; a value that is not a number stays missing. Sensitive.

    >>> scaled([0, 5, 99, None], (0, 10)).tolist()
    [-1.0, 0.0, 1.0, nan]
    """
    centre, half = middle(pair)
    return np.clip((np.clip(numbers(column), *pair) - centre) / half, -1, 1)


def numbers(column: GivenRows) -> GivenRows:
    """A column as floats; a value that is not a number stays NaN, whatever the rest of the column is.

    >>> numbers(["1", None, "two", 3]).tolist()
    [1.0, nan, nan, 3.0]
    """
    if isinstance(column, Tensor):
        found: GivenRows = column.detach().cpu().double().numpy()
        return found
    if hasattr(column, "__array__"):
        array = np.asarray(column)
        if array.ndim == 1 and array.dtype.kind in "biuf":
            return array.astype(np.float64)
    return np.array([_number(cell) for cell in cells(column)], dtype=np.float64)


def cells(column: GivenRows) -> list[GivenRows]:
    """The cells of a column as Python's own values, whatever holds them.

    >>> cells(np.array([1, 2]))
    [1, 2]
    """
    for way in ("to_pylist", "tolist"):
        if hasattr(column, way):
            return list(getattr(column, way)())
    return list(column)


def is_column(column: GivenRows) -> bool:
    """Whether it is one value after another, by its type and shape alone; what the values are is not looked at.

    >>> is_column([1, 2]), is_column(np.zeros((3, 1))), is_column("text")
    (True, False, False)
    """
    if isinstance(column, str | bytes | Mapping) or len(getattr(column, "shape", (0,))) != 1:
        return False
    if isinstance(column, Tensor) and (column.layout != torch.strided or column.is_complex()):
        return False
    return hasattr(column, "__len__") and hasattr(column, "__iter__")


def length_of(column: GivenRows, what: str) -> int:
    """How long a column is; anything but a column is refused, by its type and shape alone. Sensitive: the length."""
    if not is_column(column):
        raise InvalidInput(
            f"{what} must have one value for each row, in a column, an array or a list of one axis; nothing was "
            "trained and nothing was spent. An array of one column is flattened by .ravel()."
        )
    return len(column)


def place_of(places: Mapping[GivenRows, int], cell: GivenRows) -> int:
    """Where a declared word stands, or −1, whatever the cell does when it is asked: a refusal would reveal it."""
    if type(cell) in PLAIN:
        return places.get(cell, -1)
    found = attempt(lambda: places.get(cell, -1))
    return -1 if found is FAILED else found


def row_of(row: GivenRows, width: int) -> list[GivenRows] | None:
    """The cells of a row; None where it is no row of this width, whatever it does when it is read.

    >>> row_of([1, 2], 2), row_of([1], 2), row_of("no", 2)
    ([1, 2], None, None)
    """

    def taken() -> list[GivenRows] | None:
        found = cells(row) if is_column(row) else []
        return found if len(found) == width else None

    found = taken() if type(row) in (list, tuple) else attempt(taken)
    return None if found is FAILED else found


def _number(cell: GivenRows) -> float:
    """A cell as a float, or none: an error, of whatever kind, would reveal something about this cell."""
    found = attempt(lambda: float(cell)) if type(cell) not in PLAIN else _plain_number(cell)
    return math.nan if found is FAILED else found


def _plain_number(cell: GivenRows) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _column(table: GivenRows, name: str) -> GivenRows:
    try:
        return table[name]
    except (KeyError, IndexError, TypeError):
        raise InvalidInput(
            f"the table has no column {name!r}; nothing was trained. Declare only columns that it has."
        ) from None
