"""Features of a table: numbers held to public bounds, words to public lists, nothing fitted to the rows."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sfumato.errors import InvalidInput, NotDeclared

__all__ = ["Features"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Columns as numbers between −1 and 1: what a model is trained on.

    A column of ``bounds`` is held to its bounds and scaled with them; a missing number is the middle. A column of
    ``words`` becomes one place for each declared word: 1 where it is that one, and 0 everywhere for an undeclared one.

    Guarantee: none is needed. Each row becomes numbers by itself, with no mean, deviation or list taken from other
    rows; a standardised column would have to be charged. Assumes: bounds and words were not read off the data.
    Public: bounds and words. Sensitive: what a call returns.

    >>> ward = Features(bounds={"age": (0, 100)}, words={"sex": ["f", "m"]})
    >>> ward.names
    ('age', 'sex=f', 'sex=m')
    >>> ward({"age": [25, 130, None], "sex": ["f", "m", "?"]}).tolist()
    [[-0.5, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    bounds: Mapping[str, tuple[float, float]]
    words: Mapping[str, Sequence[Hashable]]

    def __init__(
        self,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        words: Mapping[str, Sequence[Hashable]] | None = None,
    ) -> None:
        numbers = {str(name): bounded(pair, f"column {name!r}") for name, pair in (bounds or {}).items()}
        lists = {str(name): tuple(listed) for name, listed in (words or {}).items()}
        if not numbers and not lists:
            raise NotDeclared("no column is declared; nothing was read. Give bounds of numbers or lists of words.")
        for name, listed in lists.items():
            if name in numbers:
                raise InvalidInput(f"column {name!r} is declared as numbers and as words; nothing was read")
            if not listed or len(set(listed)) != len(listed):
                raise InvalidInput(f"the words of column {name!r} are none, or not all different; nothing was read")
        object.__setattr__(self, "bounds", numbers)
        object.__setattr__(self, "words", lists)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order: numbers first."""
        return (*self.bounds, *(f"{name}={word}" for name, listed in self.words.items() for word in listed))

    def __call__(self, table: Any) -> Tensor:
        """The features of a table (a mapping of columns, or a frame), one row each."""
        parts: list[Any] = []
        for name, (low, high) in self.bounds.items():
            held = np.clip(numbers(_column(table, name)), low, high)
            scaled = (held - (low + high) / 2) / ((high - low) / 2)
            parts.append(np.nan_to_num(scaled, nan=0.0)[:, None])
        for name, listed in self.words.items():
            places = {word: place for place, word in enumerate(listed)}
            found = np.array([place_of(places, cell) for cell in cells(_column(table, name))], np.int64)
            parts.append(found[:, None] == np.arange(len(listed)))
        if len({len(part) for part in parts}) != 1:
            raise InvalidInput("the columns of this table have different lengths; nothing was trained")
        return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))


def bounded(pair: Any, what: str) -> tuple[float, float]:
    """A pair of finite bounds, the lower below the upper."""
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise InvalidInput(f"the bounds of {what} are a pair of numbers (low, high); nothing was read") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise InvalidInput(f"the bounds of {what} must be finite, the lower below the upper; nothing was read")
    return low, high


def numbers(column: Any) -> Any:
    """A column as floats; what is no number is not one, whatever the rest of the column is.

    >>> numbers(["1", None, "two", 3]).tolist()
    [1.0, nan, nan, 3.0]
    """
    try:
        return np.asarray(column, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(cell) for cell in cells(column)], dtype=np.float64)


def cells(column: Any) -> list[Any]:
    """The cells of a column as Python's own values, whatever holds them.

    >>> cells(np.array([1, 2]))
    [1, 2]
    """
    for way in ("to_pylist", "tolist"):
        if hasattr(column, way):
            return list(getattr(column, way)())
    return list(column)


def place_of(places: Mapping[Any, int], cell: Any) -> int:
    """Where a declared word stands, or −1."""
    try:
        return places.get(cell, -1)
    except TypeError:  # not hashable, so no declared word
        return -1


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _column(table: Any, name: str) -> Any:
    try:
        return table[name]
    except (KeyError, IndexError, TypeError):
        raise InvalidInput(
            f"the table has no column {name!r}; nothing was trained. Declare only columns that it has."
        ) from None
