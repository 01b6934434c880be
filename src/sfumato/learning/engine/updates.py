"""The update of each unit by itself: its gradient, or what a few steps of descent on its own rows do."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils._pytree import tree_map

from sfumato.core.interrupts import FAILED, attempt
from sfumato.learning.engine.losses import Kind, Loss
from sfumato.learning.engine.semantics import batched_forms, unit_gradient
from sfumato.learning.given import Tree
from sfumato.learning.kept_tensors import NoAssignedData
from sfumato.learning.unchanged import Unchanged

__all__ = ["unit_updates"]

Updates = Callable[..., dict[str, Tensor]]


def unit_updates(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    present: Tensor,
    *,
    kind: Kind,
    local_steps: int = 0,
    local_rate: float = 1.0,
) -> Tensor:
    """One row a unit: its flat update at the model's weights, in double precision; zeros for one that is not there.

    With ``local_steps`` it is (w − w′)/local_rate for the w′ that so many steps of gradient descent on this unit alone
    lead to from the weights w; one step gives the gradient. A unit that the model or the loss cannot compute has zeros.
    Guarantee: each row depends on its own unit and the weights, and what the model writes to is put back.
    """
    one = _update(model, loss, kind, max(1, local_steps), local_rate)
    parameters = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    call = vmap(one, in_dims=(None, 0, None if targets is None else 0, 0), randomness="different")
    own = (inputs, targets, present)
    with batched_forms(model), NoAssignedData(), Unchanged(model, loss) as kept:
        found = attempt(lambda: _flat(call(parameters, *tree_map(_copied, own)), len(present)))
        if found is FAILED:
            rows = []
            for at in range(len(present)):
                kept.restore()
                rows.append(_alone(call, parameters, own, at))
            found = torch.cat(rows)
    there = present.any(1) if present.ndim > 1 else present
    return torch.where(there[:, None], found, 0.0)


def _update(model: nn.Module, loss: Loss, kind: Kind, steps: int, rate: float) -> Updates:
    gradient = unit_gradient(model, loss, kind)

    def one(parameters: dict[str, Tensor], inputs: tuple[Tensor, ...], target: Tree, here: Tensor) -> dict[str, Tensor]:
        if steps == 1:
            only: dict[str, Tensor] = gradient(parameters, inputs, target, here)[0]
            return only
        now = parameters
        for _ in range(steps):
            found, _value = gradient(now, inputs, target, here)
            now = {name: value - rate * found[name] for name, value in now.items()}
        return {name: (parameters[name] - now[name]) / rate for name in parameters}

    return one


def _alone(call: Updates, parameters: dict[str, Tensor], own: Tree, at: int) -> Tensor:
    """The update of one unit; zeros where it cannot be computed."""
    some = tree_map(lambda part: part[at : at + 1].clone() if isinstance(part, Tensor) else part, own)
    found = attempt(lambda: _flat(call(parameters, *some), 1))
    size = sum(value.numel() for value in parameters.values())
    return torch.zeros(1, size, dtype=torch.float64) if found is FAILED else found


def _flat(gradients: dict[str, Tensor], number: int) -> Tensor:
    return torch.cat([part.detach().reshape(number, -1).double() for part in gradients.values()], dim=1)


def _copied(part: Tree) -> Tree:
    return part.clone() if isinstance(part, Tensor) else part
