"""Augmentation multiplicity: several augmented copies of one unit, averaged before the clip.

A unit with K copies is a unit with K records: its loss is their mean, its gradient is clipped once, and it moves the
sum no further than without them. The copies are made unit by unit (``torch.vmap``), so that none holds anything of
another unit; and from fresh secret draws. Public draws that go by a unit's place in the batch would not do: one unit
more moves all places behind it, and with them the copies of everybody else.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from sfumato.core.deprecation import renamed
from sfumato.core.exact import natural
from sfumato.errors import Refused, Unsupported
from sfumato.learning.given import Tree
from sfumato.learning.kept_tensors import NoAssignedData
from sfumato.learning.unchanged import Unchanged
from sfumato.noise import Words

__all__ = ["Multiplied", "mirrored", "shifted"]

BITS = 24
Augment = Callable[[Tensor, Tensor], Tensor]


@renamed(copies="augmentations")
class Multiplied:
    """Turn batches of units into batches of units with ``augmentations`` augmented records each.

    ``augment(record, draws)`` makes one copy of one record from ``numbers`` uniform draws in [0, 1). It runs under
    ``torch.vmap``, which hands it one record, and what it writes to is put back. The first copy is the record itself
    where ``original``.

    Guarantee: what leaves has units of kind *user*, one clip each: the sensitivity of a step is what it was. Assumes:
    ``words`` are fresh and secret; no code in ``augment`` has a rule of its own for many records at once
    (``torch.autograd.Function.vmap``, ``torch.library.register_vmap``) that mixes them. Sensitive: the copies.

    >>> from sfumato.noise import SystemWords
    >>> twice = Multiplied(mirrored, augmentations=2)
    >>> inputs, targets, present = twice(
    ...     torch.tensor([[[1.0, 2.0]]]), torch.tensor([3]), torch.tensor([True]), words=SystemWords()
    ... )
    >>> inputs.shape, targets.tolist(), present.tolist()
    (torch.Size([1, 2, 1, 2]), [[3, 3]], [[True, True]])
    """

    def __init__(self, augment: Augment, *, augmentations: int, numbers: int = 2, original: bool = True) -> None:
        self.augment, self.original = augment, original
        self.augmentations = natural(augmentations, "augmentations", most=1024)
        self.numbers = natural(numbers, "numbers", most=1024)

    def __call__(
        self, inputs: Tree, targets: Tensor, present: Tensor, *, words: Words, kind: str = "record"
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The batch with its copies on a second axis: (units, records · augmentations, …). Sensitive: all of it."""
        if kind not in ("record", "user"):
            raise Unsupported(f"units of kind {kind!r} have one loss together and cannot be copied; nothing was done.")
        if not isinstance(inputs, Tensor):
            raise Unsupported("copies are made of one tensor of inputs, and there are several; nothing was done.")
        if kind == "record":
            inputs, targets, present = inputs[:, None], targets[:, None], present[:, None]
        units, records = inputs.shape[:2]
        draws = _uniform((units * records, self.augmentations, self.numbers), words).to(inputs.device)
        rows = inputs.reshape(units * records, *inputs.shape[2:])
        with Unchanged(self.augment), NoAssignedData():
            made = torch.vmap(lambda row, some: torch.vmap(lambda one: self.augment(row, one))(some))(rows, draws)
        if made.shape[2:] != rows.shape[1:]:
            raise Refused("an augmented record has another shape than the record; nothing was released.")
        if self.original:
            made = torch.cat([rows[:, None], made[:, 1:]], dim=1)
        return (
            made.reshape(units, records * self.augmentations, *inputs.shape[2:]),
            targets.repeat_interleave(self.augmentations, dim=1),
            present.repeat_interleave(self.augmentations, dim=1),
        )


def _uniform(shape: tuple[int, ...], words: Words) -> Tensor:
    """Draws from [0, 1) in steps of 2^−24."""
    some = np.empty(int(np.prod(shape)), dtype=np.uint64)
    words.fill(some)
    return torch.from_numpy((some >> np.uint64(words.width - BITS)).astype(np.float32) / 2**BITS).reshape(shape)


def mirrored(image: Tensor, draws: Tensor) -> Tensor:
    """An image (…, height, width), mirrored from left to right half of the time."""
    return torch.where(draws[0] < 0.5, image, image.flip(-1))


def shifted(pixels: int) -> Augment:
    """Shift an image (…, height, width) by up to this many pixels either way; the border is repeated.

    >>> image = torch.tensor([[1.0, 2.0, 3.0]])
    >>> shifted(1)(image, torch.tensor([0.5, 0.99]))
    tensor([[2., 3., 3.]])
    """
    most = natural(pixels, "pixels")

    def shift(image: Tensor, draws: Tensor) -> Tensor:
        height, width = image.shape[-2:]
        by = (draws[:2] * (2 * most + 1)).floor().long() - most
        rows = (torch.arange(height, device=image.device) + by[0]).clamp(0, height - 1)
        columns = (torch.arange(width, device=image.device) + by[1]).clamp(0, width - 1)
        return image[..., rows[:, None], columns]

    return shift
