"""Rows of datasets, made by code of the user item by item: each by itself, or counted for nothing.

Nothing that an item does shows: it is read within :func:`~sfumato.core.interrupts.attempt` and in silence, and what
raises, has another shape or type than was declared, or is not finite, does not count. That is all that happens.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from sfumato.core.interrupts import FAILED, attempt
from sfumato.learning.given import Thing
from sfumato.learning.item_draws import ItemDraws
from sfumato.learning.stored_rows import blank_rows

__all__ = ["ColumnRows", "ItemRows", "Key"]

Key = str | int
"""Where a part of an item is: the name in a dictionary, or the place in a tuple."""


class ItemRows:
    """Items of a map-style dataset, read one by one when a step asks for them.

    ``keys`` are where inputs and, last, targets lie in an item, and ``like`` one of each as models take it. With
    ``batched`` the dataset's ``__getitems__`` is asked for many at once: then it is the caller who vouches that it
    makes each item of its own row.

    Guarantee: an item counts by its own row alone, and what it draws is seeded by the step and its row. Assumes:
    ``__getitem__`` makes an item of its row and of draws, and of no other row. Sensitive: all of it.

    >>> rows = ItemRows([(torch.ones(2), 3), (torch.ones(5), 4)], keys=[0, 1], like=[torch.zeros(2), torch.tensor(0)])
    >>> inputs, targets, fine = rows.read(torch.tensor([1, 0]), 0)
    >>> fine.tolist(), inputs[0][1].tolist(), targets.tolist()
    ([False, True], [1.0, 1.0], [0, 3])
    """

    runs_code = True

    def __init__(self, dataset: Thing, *, keys: Sequence[Key], like: Sequence[Tensor], batched: bool = False) -> None:
        self._dataset, self._keys, self._like, self._batched = dataset, list(keys), list(like), batched
        self._draws = ItemDraws(dataset)

    def blank(self, size: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """Invented rows of the declared shapes and types. Public."""
        return blank_rows(self._like[:-1], self._like[-1], size)

    def read(self, rows: Tensor, step: int) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Some rows, and which of them count; the others are invented ones."""
        inputs, targets = self.blank(len(rows))
        parts, fine = (*inputs, targets), torch.zeros(len(rows), dtype=torch.bool)
        with self._draws.forked() as seeded:
            items = self._many(rows.tolist(), step, seeded)
            for place, row in enumerate(rows.tolist()):
                if items is None:
                    seeded(step, row)
                one = partial(self._one, row) if items is None else partial(items.__getitem__, place)
                fine[place] = _written(one, self._keys, parts, place)
        return inputs, targets, fine

    def ids(self, number: int, key: Key) -> list[object]:
        """The id of each item, None where there is none: all items are read once for it."""
        found: list[object] = [None] * number
        with self._draws.forked() as seeded:
            for row in range(number):
                seeded(-1, row)
                whose = attempt(lambda row=row: self._one(row)[key])  # type: ignore[misc]  # mypy infers no type here
                found[row] = None if whose is FAILED else whose
        return found

    def near(self, device: torch.device) -> None:
        """Items are made anew for each step, and stay where they are made."""

    def _one(self, row: int) -> Thing:
        return self._dataset[row]

    def _many(self, rows: list[int], step: int, seeded: Callable[[int, int], None]) -> Thing:
        if not self._batched or not rows:
            return None
        seeded(step, -1 - rows[0])
        found = attempt(lambda: list(self._dataset.__getitems__(rows)))
        return None if found is FAILED or len(found) != len(rows) else found


class ColumnRows:
    """Rows of a dataset of columns (Hugging Face), in whose reading no code of the user runs.

    ``plain`` gives for a list of rows a mapping from names to lists of Python's own values. These are read as they are
    and never as arrays of a whole batch, whose type would depend on every value in it: one missing number would change
    what the others are.

    Guarantee: a row counts by its own values alone. Sensitive: all of it.
    """

    runs_code = False

    def __init__(self, plain: Thing, *, keys: Sequence[str], like: Sequence[Tensor]) -> None:
        self._plain, self._keys, self._like = plain, list(keys), list(like)

    def blank(self, size: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """Invented rows of the declared shapes and types. Public."""
        return blank_rows(self._like[:-1], self._like[-1], size)

    def read(self, rows: Tensor, step: int) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Some rows, and which of them count; the others are invented ones."""
        inputs, targets = self.blank(len(rows))
        parts, fine = (*inputs, targets), torch.zeros(len(rows), dtype=torch.bool)
        if not len(rows):
            return inputs, targets, fine
        batch = attempt(lambda: self._plain[rows.tolist()])
        if batch is not FAILED and (whole := attempt(partial(self._whole, batch, parts))) is not FAILED:
            return inputs, targets, whole
        for place, row in enumerate(rows.tolist()):
            one = partial(self._plain.__getitem__, row) if batch is FAILED else partial(_row, batch, place)
            fine[place] = _written(one, self._keys, parts, place)
        return inputs, targets, fine

    def near(self, device: torch.device) -> None:
        """Rows stay where the dataset keeps them."""

    def _whole(self, batch: Mapping[str, Thing], parts: tuple[Tensor, ...]) -> Tensor:
        """Write all rows at once, where that can be done as each by itself would be written."""
        found = []
        for key, part in zip(self._keys, parts, strict=True):
            value = torch.from_numpy(np.asarray(batch[key]))
            if value.shape != part.shape or not torch.can_cast(value.dtype, part.dtype):
                raise ValueError
            found.append(value.to(part.dtype))
        fine = torch.stack([_finite(value) for value in found]).all(0)
        for value, part in zip(found, parts, strict=True):
            part[fine] = value[fine]
        return fine


def _row(batch: Mapping[str, Thing], place: int) -> dict[str, Thing]:
    return {name: column[place] for name, column in batch.items()}


def _written(one: Callable[[], Thing], keys: Sequence[Key], parts: Sequence[Tensor], place: int) -> bool:
    """Write an item to its place, all of it or nothing; whether it counts."""

    def made() -> list[Tensor]:
        item = one()
        found = []
        for key, part in zip(keys, parts, strict=True):
            value = item[key]
            value = value.detach().cpu() if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
            if value.shape != part.shape[1:] or not torch.can_cast(value.dtype, part.dtype):
                raise ValueError
            copied = torch.zeros(part.shape[1:], dtype=part.dtype)
            copied.copy_(value)  # whatever class it was of, what goes on is a tensor of ours
            if not bool(_finite(copied[None])[0]):
                raise ValueError
            found.append(copied)
        return found

    found = attempt(made)
    if found is FAILED:
        return False
    for part, value in zip(parts, found, strict=True):
        part[place] = value
    return True


def _finite(rows: Tensor) -> Tensor:
    return torch.isfinite(rows).flatten(1).all(1) if rows.ndim > 1 else torch.isfinite(rows)
