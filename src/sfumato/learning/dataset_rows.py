"""Rows of datasets: map-style ones of torch, and those of Hugging Face, whose items are read step by step."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from sfumato.core.foreign import Array
from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.learning.given import GivenRows, Thing
from sfumato.learning.given_rows import listed_ids, model_number
from sfumato.learning.item_rows import ColumnRows, ItemRows, Key
from sfumato.learning.laid import OpenedRows, ReadRows
from sfumato.learning.stored_rows import StoredRows

__all__ = ["WRAP", "DatasetRows", "refuse_dataset"]

ITERABLE = (
    "an IterableDataset gives its items in its own order, and privacy by sampling needs each unit to be in a step by "
    "chance, by itself: nobody can ask it for the items that were drawn. Nothing was read and nothing was spent. Give "
    "a dataset with __len__ and __getitem__, or write the rows to a file and map it: "
    "Units(numpy.load('rows.npy', mmap_mode='r'), …)."
)
WRAP = (
    "a dataset needs public facts beside it; nothing was read and nothing was spent. Say "
    "data=learning.Units.of_dataset(dataset, like=…, n_units=…, name=…)."
)


def refuse_dataset(data: object) -> None:
    """Refuse what cannot be sampled, or comes without its public facts; whatever else it is passes.

    >>> refuse_dataset(torch.zeros(3))
    """
    if isinstance(data, IterableDataset) or type(data).__name__ == "IterableDataset":
        raise Unsupported(ITERABLE)
    if isinstance(data, DataLoader):
        raise Unsupported(
            "a DataLoader makes its own batches, and privacy by sampling needs each unit to be in a step by chance, by "
            "itself. Nothing was read and nothing was spent. Give its dataset: Units.of_dataset(loader.dataset, …)."
        )
    if isinstance(data, Mapping) and any(_has_columns(each) for each in data.values()):
        raise InvalidInput(
            "this is a dictionary of datasets; nothing was read and nothing was spent. Choose one of its parts, and "
            "say data=learning.Units.of_dataset(data['train'], …)."
        )


class _Parts:
    """Where inputs, targets and the id lie in an item, and one invented one of each. Public."""

    def __init__(self, inputs: Sequence[Key], targets: Key, ids: Key | None, like: Sequence[Tensor]) -> None:
        self.keys, self.ids, self.like = [*inputs, targets], ids, list(like)

    @classmethod
    def of(cls, like: object, inputs: Key | Sequence[Key] | None, targets: Key | None, ids: Key | None) -> "_Parts":
        if not isinstance(like, tuple | list | Mapping):
            raise InvalidInput(
                "like is one invented item, a tuple or a dictionary of tensors, as the dataset's items are; nothing "
                "was read or spent."
            )
        places: list[Key] = list(like) if isinstance(like, Mapping) else [*range(len(like))]
        rest = [key for key in places if key != ids]
        if isinstance(like, Mapping) and (inputs is None or targets is None):
            raise NotDeclared(
                f"items that are dictionaries need inputs=… and targets=…, names out of {places}; nothing was read or "
                "spent."
            )
        chosen = rest[-1] if targets is None and rest else targets
        taken = [key for key in rest if key != chosen] if inputs is None else inputs
        taken = [taken] if isinstance(taken, Key) else list(taken)
        if chosen is None or not taken or any(key not in places for key in (*taken, chosen)):
            raise InvalidInput(
                f"inputs=… and targets=… say where they lie in an item, out of {places}; nothing was read or spent."
            )
        return cls(taken, chosen, ids, [_one_like(cast("Thing", like)[key]) for key in (*taken, chosen)])

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse names that a dataset of columns does not have; they are public."""
        missing = [key for key in (*self.keys, self.ids) if key is not None and key not in columns]
        if missing:
            raise InvalidInput(
                f"the dataset has no column {missing[0]!r}; nothing was read and nothing was spent. It has "
                f"{', '.join(map(str, columns))}."
            )


class DatasetRows:
    """The items of a dataset as rows of units; see :meth:`Units.of_dataset`.

    Guarantee: neither the length of the dataset nor an item is asked for before :meth:`opened`, which a run calls once
    it was charged. Assumes: an item is made of its own row, and of draws from generators that can be seen.
    """

    def __init__(self, dataset: object, parts: _Parts, ids: "Array | None", *, batched: bool) -> None:
        self._dataset, self._parts, self._ids, self._batched = cast("Thing", dataset), parts, ids, batched

    @classmethod
    def of(
        cls,
        dataset: object,
        *,
        like: object,
        inputs: Key | Sequence[Key] | None,
        targets: Key | None,
        ids: GivenRows,
        batched: bool,
    ) -> "DatasetRows":
        """The rows of a dataset by what is said of them; refused by types and names alone."""
        refuse_dataset(dataset)
        if not (hasattr(type(dataset), "__getitem__") and hasattr(type(dataset), "__len__")):
            raise InvalidInput(
                "a dataset has __len__ and __getitem__; nothing was read and nothing was spent. Tensors and arrays are "
                "Units(inputs, targets, …)."
            )
        if batched and not hasattr(dataset, "__getitems__"):
            raise InvalidInput("batched=True asks the dataset's __getitems__, and it has none; nothing was read.")
        tensors = _tensors_of(dataset.dataset if type(dataset) is Subset else dataset)
        if like is None and tensors is not None:
            like = tuple(tensor.new_zeros(tensor.shape[1:]) for tensor in tensors)
        if like is None:
            raise NotDeclared(
                "units of a dataset need like=…, one invented item of the shapes and types that items have: none of "
                "the real ones is looked at. Nothing was read and nothing was spent."
            )
        key = ids if isinstance(ids, Key) and not isinstance(ids, bool) else None
        parts = _Parts.of(like, inputs, targets, key)
        if _has_columns(dataset):
            parts.check_columns(cast("Thing", dataset).column_names)
        return cls(dataset, parts, None if ids is None or key is not None else listed_ids(ids), batched=batched)

    @property
    def like(self) -> list[Tensor]:
        """One invented row. Public."""
        return self._parts.like

    @property
    def named(self) -> bool:
        """Whether ids tell persons apart. Public."""
        return self._ids is not None or self._parts.ids is not None

    def check_home(self, notary: object) -> None:
        """What a user hands over is of no vault."""

    def opened(self) -> OpenedRows:
        """Ask for the length and the ids; items are read step by step. Sensitive: all."""
        source, length = self._opened()
        ids = self._ids_of(source, length)
        if ids is not None:
            length = min(length, len(ids))
            ids = ids[:length]
        return OpenedRows((), torch.empty(0), length, ids, source)

    def _opened(self) -> tuple[ReadRows, int]:
        found = attempt(lambda: len(self._dataset))
        length = 0 if found is FAILED else found
        if self._parts.ids is None and not self._batched and (held := self._held()) is not None:
            return held, length
        if _is_read_by_columns(self._dataset):
            plain = self._dataset.with_format(None)
            return ColumnRows(plain, keys=cast("list[str]", self._parts.keys), like=self._parts.like), length
        return ItemRows(self._dataset, keys=self._parts.keys, like=self._parts.like, batched=self._batched), length

    def _held(self) -> ReadRows | None:
        """What reads the tensors of the dataset without its code; None where that would not give the same rows."""
        tensors = _tensors_of(self._dataset)
        if tensors is None:
            return None
        parts = tensors
        if not all(isinstance(key, int) and key < len(parts) for key in self._parts.keys):
            return None
        chosen = [parts[cast("int", key)] for key in self._parts.keys]
        if not all(
            type(each) is Tensor and each.shape[1:] == like.shape and torch.can_cast(each.dtype, like.dtype)
            for each, like in zip(chosen, self._parts.like, strict=True)
        ):
            return None
        return StoredRows(chosen, self._parts.like, None)

    def _ids_of(self, source: ReadRows, length: int) -> "Array | None":
        key = self._parts.ids
        if key is None:
            return self._ids
        if _has_columns(self._dataset):
            return listed_ids(_column(self._dataset, cast("str", key)))
        return listed_ids(cast("ItemRows", source).ids(length, key))


def _column(dataset: Thing, name: str) -> list[object]:
    """A column of a dataset of columns, as Python's own values: no type that depends on all of them."""
    plain = dataset.with_format(None)
    if hasattr(plain, "select_columns"):
        plain = plain.select_columns([name])
    return list(plain[name])


def _has_columns(dataset: object) -> bool:
    """Whether a dataset is one of Hugging Face, by what it offers."""
    return all(hasattr(dataset, each) for each in ("column_names", "with_format", "__getitem__", "__len__"))


def _is_read_by_columns(dataset: Thing) -> bool:
    """Whether rows are read many at once: in datasets of the library itself, unless code of the user makes items.

    A transform (``with_transform``) sees all rows that are asked for at once, and could pad or scale each by the
    others; it is asked for one at a time, and so is a class of somebody else.
    """
    formatted = getattr(dataset, "format", None)
    ours = type(dataset).__module__.partition(".")[0] == "datasets" and _has_columns(dataset)
    return ours and isinstance(formatted, Mapping) and formatted.get("type") != "custom"


def _tensors_of(dataset: object) -> "tuple[Tensor, ...] | None":
    """The tensors of a TensorDataset; None for any other dataset.

    Of a Subset items are asked for one by one: whether its list of rows fits the tensors depends on each of them, and
    how the others are read must not.
    """
    return dataset.tensors if type(dataset) is TensorDataset else None


def _one_like(value: object) -> Tensor:
    found = value.detach().cpu() if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    return model_number(found, flat=found.ndim == 0)
