"""One loss a unit: the loss is asked for one unit at a time, under ``torch.vmap``, and is handed no batch.

Operations with a rule of their own for many units at once (``torch.autograd.Function.vmap``, ``torch.library``) do see
all of them; that such a rule keeps units apart is assumed.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional as F
from torch.utils._pytree import tree_map

from sfumato.learning.given import Tree
from sfumato.learning.kept_tensors import NoAssignedData

__all__ = ["Kind", "Loss", "each", "unit_losses"]

Kind = Literal["record", "user", "group"]
Loss = Callable[..., Tensor]


def each(loss: Loss, outputs: Tree, targets: Tree) -> Tensor:
    """The loss of each record, asked as a batch of one."""
    if _plain_entropy(loss) and isinstance(outputs, Tensor) and outputs.dim() == 2 and _classes(targets):
        smoothing = loss.label_smoothing if isinstance(loss, nn.CrossEntropyLoss) else 0.0
        return F.cross_entropy(outputs, targets, reduction="none", label_smoothing=smoothing)

    def one(output: Tree, target: Tree) -> Tensor:
        return loss(tree_map(_alone, output), tree_map(_alone, target)).sum()

    with NoAssignedData():
        found: Tensor = vmap(one, in_dims=(0, None if targets is None else 0), randomness="different")(outputs, targets)
    return found


def unit_losses(loss: Loss, outputs: Tree, targets: Tree, present: Tensor, kind: Kind) -> Tensor:
    """The loss of each unit from the outputs for all rows; a user's is the mean over the present records."""
    if kind == "record":
        return each(loss, outputs, targets)
    units, places = present.shape if kind == "user" else (len(present), -1)
    if kind == "user":
        records = each(loss, outputs, tree_map(_rows, targets)).view(units, places)
        return torch.where(present, records, 0.0).sum(1) / present.sum(1).clamp(min=1)

    def whole(output: Tree, target: Tree) -> Tensor:
        return loss(output, target).sum()

    outputs = tree_map(lambda part: part.unflatten(0, (units, -1)), outputs)
    with NoAssignedData():
        found: Tensor = vmap(whole, in_dims=(0, None if targets is None else 0), randomness="different")(
            outputs, targets
        )
    return found


def _plain_entropy(loss: Loss) -> bool:
    """Cross entropy without weights, for which the loss of each of a batch is what a batch of one gives."""
    if isinstance(loss, nn.CrossEntropyLoss):
        return type(loss) is nn.CrossEntropyLoss and loss.weight is None and loss.ignore_index == -100
    return loss is F.cross_entropy


def _classes(targets: Tree) -> bool:
    return isinstance(targets, Tensor) and targets.dim() == 1 and targets.dtype == torch.int64


def _alone(part: Tree) -> Tree:
    return part[None] if isinstance(part, Tensor) else part


def _rows(part: Tree) -> Tree:
    return part.flatten(0, 1) if isinstance(part, Tensor) else part
