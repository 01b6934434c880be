"""Datasets of every kind that hold the same invented rows, and one that is like those of Hugging Face."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

NUMBER, WIDTH = 60, 3
IDS = [f"p{row % 20}" for row in range(NUMBER)]


def rows_of() -> tuple[Tensor, Tensor]:
    """The rows that all of them hold."""
    inputs = torch.sin(torch.arange(NUMBER * WIDTH, dtype=torch.float32) * 1.7).reshape(NUMBER, WIDTH)
    return inputs, (inputs.sum(1) > 0).long()


class Items(Dataset[Any]):
    """A map-style dataset that remembers what it was asked for; ``make`` makes an item of a row."""

    def __init__(self, make: Callable[[int], Any], number: int = NUMBER) -> None:
        self.make, self.number, self.asked, self.lengths = make, number, [], 0

    asked: list[int]

    def __len__(self) -> int:
        self.lengths += 1
        return self.number

    def __getitem__(self, row: int) -> Any:
        self.asked.append(row)
        return self.make(row)


def pairs() -> Items:
    """Items (x, y)."""
    inputs, targets = rows_of()
    return Items(lambda row: (inputs[row], targets[row]))


def named() -> Items:
    """Items that are dictionaries, with an id."""
    inputs, targets = rows_of()
    return Items(lambda row: {"x": inputs[row].numpy(), "y": int(targets[row]), "id": IDS[row]})


class ColumnDataset:
    """As far as it goes a dataset of Hugging Face: typed columns, rows by number or by lists of them, formats.

    A list of rows gives a mapping from names to lists of Python's own values, a number a mapping from names to values,
    a name a column; ``with_transform`` has a function make what is given of a mapping of lists, for many rows at once.
    """

    __module__ = "datasets.arrow_dataset"  # by this the library is known; it is not installed here

    def __init__(self, columns: Mapping[str, list[Any]], form: str | None = None, transform: Any = None) -> None:
        self._columns, self._form, self._transform = dict(columns), form, transform
        self.asked: list[Any] = []

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

    @property
    def format(self) -> dict[str, Any]:
        return {"type": self._form, "format_kwargs": {}, "columns": self.column_names, "output_all_columns": False}

    def with_format(self, form: str | None) -> "ColumnDataset":
        other = type(self)(self._columns, form)
        other.asked = self.asked
        return other

    def with_transform(self, transform: Any) -> "ColumnDataset":
        other = type(self)(self._columns, "custom", transform)
        other.asked = self.asked
        return other

    def select_columns(self, names: list[str]) -> "ColumnDataset":
        other = type(self)({name: self._columns[name] for name in names}, self._form, self._transform)
        other.asked = self.asked
        return other

    def __len__(self) -> int:
        self.asked.append("len")
        return len(next(iter(self._columns.values())))

    def __getitem__(self, rows: Any) -> Any:
        self.asked.append(rows)
        if isinstance(rows, str):
            return list(self._columns[rows])
        many = [rows] if isinstance(rows, int) else rows
        batch: Any = {name: [column[row] for row in many] for name, column in self._columns.items()}
        batch = batch if self._transform is None else self._transform(batch)
        return {name: column[0] for name, column in batch.items()} if isinstance(rows, int) else batch


class ForeignColumns(ColumnDataset):
    """The same from somebody else."""

    __module__ = "elsewhere"


def columns(kind: type[ColumnDataset] = ColumnDataset) -> ColumnDataset:
    """The same rows in columns."""
    inputs, targets = rows_of()
    return kind({"x": inputs.tolist(), "y": targets.tolist(), "id": list(IDS)})
