"""Heads of one's own on a body that was trained with others: fitted afterwards, with noise, and kept."""

import copy
from collections.abc import Callable

from torch import Tensor, nn

from sfumato.core.exact import Exact
from sfumato.errors import InvalidInput
from sfumato.gate.session import SessionGate
from sfumato.learning.trainer import Trainer
from sfumato.learning.units import Units

__all__ = ["head_trainer"]


def head_trainer(
    gate: SessionGate, model: nn.Module, loss: Callable[..., Tensor], data: Units, *, head: str, clip: Exact = 1
) -> Trainer:
    """A trainer of the layers whose names begin with ``head``; all others stay as they are in a copy of the model.

    Guarantee: that of :class:`~sfumato.learning.Trainer`, at the cost of the vault whose data it is. The body has been
    released before, so that nothing that others send depends on a head.

    >>> model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    >>> sorted(name for name, _ in model.named_parameters() if name.startswith("1"))
    ['1.bias', '1.weight']
    """
    own = copy.deepcopy(model)
    names = [name for name, _ in own.named_parameters()]
    chosen = [name for name in names if name == head or name.startswith(f"{head}.")]
    if not chosen:
        raise InvalidInput(f"the model has no layer {head!r}; nothing was done. It has {', '.join(names)}.")
    for name, one in own.named_parameters():
        one.requires_grad_(name in chosen)
    return Trainer(gate, own, loss, data=data, clip=clip)
