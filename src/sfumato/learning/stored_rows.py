"""Rows that lie in a file or in tensors and are read some at a time: memory-mapped arrays, parts of datasets."""

import mmap
from collections.abc import Sequence
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sfumato.learning.given import Thing
from sfumato.learning.laid import fits_on

if TYPE_CHECKING:
    import numpy.typing as npt

    from sfumato.core.foreign import Array

__all__ = ["StoredRows", "blank_rows", "invented", "is_mapped", "mapped_file"]

HELD = 1 << 26
"""Of a mapped file no more bytes than these are in memory before its pages are given back."""
AROUND = 1 << 21
"""Whoever touches a mapped file is given a page of up to this many bytes."""
CHUNK = 1 << 26


class StoredRows:
    """Inputs and targets in arrays, of which rows are read when they are asked for; the last array has the targets.

    ``like`` are rows as models take them, one each: what is read has their types. With ``index`` row k is row
    ``index[k]`` of the arrays. Pages of a mapped file are given back to the system after some have been read, so that
    what a run takes of memory does not grow to the size of the file.

    Guarantee: nothing of a row is kept, and no code of the user runs. Sensitive: what is read.

    >>> rows = StoredRows([np.arange(6.0).reshape(3, 2), np.arange(3)], [torch.zeros(2), torch.tensor(0)])
    >>> inputs, targets, fine = rows.read(torch.tensor([2, 0]), 0)
    >>> inputs[0].tolist(), targets.tolist(), fine.tolist()
    ([[4.0, 5.0], [0.0, 1.0]], [2, 0], [True, True])
    """

    runs_code = False

    def __init__(
        self, arrays: "Sequence[Array]", like: Sequence[Tensor], index: "npt.NDArray[np.int64] | None" = None
    ) -> None:
        self._arrays, self._like, self._index = list(arrays), list(like), index
        self._alone = Lock()

    def blank(self, size: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """Invented rows of the same shapes and types. Public."""
        return blank_rows(self._like[:-1], self._like[-1], size)

    def read(self, rows: Tensor, step: int) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Some rows, in memory of their own; all of them can be read."""
        wanted = rows.numpy() if self._index is None else self._index[rows.numpy()]
        order = np.argsort(wanted, kind="stable")  # in the order of the file
        ordered, back = wanted[order], np.empty_like(order)
        back[order] = np.arange(len(order))
        with self._alone:
            parts = [self._part(place, ordered)[torch.from_numpy(back)] for place in range(len(self._arrays))]
        return tuple(parts[:-1]), parts[-1], torch.ones(len(rows), dtype=torch.bool)

    def near(self, device: torch.device) -> tuple[tuple[Tensor, ...], Tensor] | None:
        """All rows on a device, copied there in parts, if they take less than a quarter of its free memory."""
        number = len(self._arrays[-1]) if self._index is None else len(self._index)
        each = sum(like.nbytes for like in self._like)
        if not fits_on(device, number * each):
            return None
        moved = [torch.empty((number, *like.shape), dtype=like.dtype, device=device) for like in self._like]
        some = max(1, CHUNK // max(1, each))
        for start in range(0, number, some):
            inputs, targets, _ = self.read(torch.arange(start, min(start + some, number)), 0)
            for part, there in zip((*inputs, targets), moved, strict=True):
                there[start : start + len(part)] = part
        return tuple(moved[:-1]), moved[-1]

    def _part(self, place: int, rows: "npt.NDArray[np.int64]") -> Tensor:
        """Rows of one array, in their order; of a mapped file some at a time, and then its pages are given back."""
        array, like = self._arrays[place], self._like[place]
        if isinstance(array, Tensor):
            return array.detach()[torch.from_numpy(rows).to(array.device)].cpu().to(like.dtype)
        file, whole = mapped_file(array), np.asarray(array)
        found = torch.empty((len(rows), *like.shape), dtype=like.dtype)
        cuts = [] if file is None else _cuts(rows, whole[:1].nbytes)
        for start, stop in pairwise([0, *cuts, len(rows)]):
            found[start:stop] = torch.from_numpy(np.take(whole, rows[start:stop], axis=0))
            if file is not None and whole.nbytes > HELD:
                file.madvise(mmap.MADV_DONTNEED)
        return found


def _cuts(rows: "npt.NDArray[np.int64]", size: int) -> list[int]:
    """Where rows of this many bytes, in their order, are cut so that each part touches no more than ``HELD`` of a file.

    >>> _cuts(np.arange(4) * 40, 1 << 20)
    []
    >>> _cuts(np.arange(100), 1 << 20)
    [64]
    """
    first, last = rows * size // AROUND, ((rows + 1) * size - 1) // AROUND
    fresh = last - np.maximum(np.concatenate(([-1], last[:-1])), first - 1)
    part = (np.cumsum(fresh) - 1) // max(1, HELD // AROUND)
    return [int(place) + 1 for place in np.flatnonzero(np.diff(part))]


def is_mapped(array: Thing) -> bool:
    """Whether an array lies in a file that is mapped into memory, so that it is not read whole.

    >>> is_mapped(np.zeros(3))
    False
    """
    return isinstance(array, np.ndarray) and (isinstance(array, np.memmap) or is_mapped(array.base))


def mapped_file(array: Thing) -> mmap.mmap | None:
    """The mapping that an array lies in, where its pages can be given back and read again as they were.

    >>> mapped_file(np.zeros(3)) is None
    True
    """
    while isinstance(array, np.ndarray):
        held: Thing = getattr(array, "_mmap", None)
        if isinstance(held, mmap.mmap):
            # what was written to a mapping of one's own ("c") is nowhere else
            kept = getattr(array, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED")
            return held if kept else None
        array = array.base
    return None


def blank_rows(inputs: Sequence[Tensor], targets: Tensor, size: int) -> tuple[tuple[Tensor, ...], Tensor]:
    """Invented rows like one each of inputs and targets: ordinary numbers, and zeros for targets, as for the checks.

    >>> inputs, targets = blank_rows([torch.zeros(2)], torch.tensor(0), 3)
    >>> inputs[0].shape, targets.tolist()
    (torch.Size([3, 2]), [0, 0, 0])
    """
    return tuple(invented(part, (size,)) for part in inputs), torch.zeros((size, *targets.shape), dtype=targets.dtype)


def invented(like: Tensor, lead: tuple[int, ...]) -> Tensor:
    """Ordinary numbers of the type of ``like``, in its shape behind some axes more; zeros where it holds no floats."""
    shape = (*lead, *like.shape)
    if like.dtype.is_floating_point:
        count = int(torch.tensor(shape).prod())
        return torch.sin(torch.arange(count) * 0.7853981 + 0.3).reshape(shape).to(like.dtype)
    return torch.zeros(shape, dtype=like.dtype)
