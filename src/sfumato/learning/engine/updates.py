"""The update of each unit by itself: its gradient, or what a few steps of descent on its own rows do."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils._pytree import tree_map

from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import InvalidInput
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

    With ``local_steps`` it is (w − w′)/local_rate for the w′ that this many steps of gradient descent on this unit
    alone lead to from the weights w; one step gives the gradient. A unit that the model or the loss cannot compute has
    zeros.
    Guarantee: each row depends on its own unit and the weights, and what the model writes to is put back. A unit that
    cannot be computed changes no number of another, but takes time, which a watcher could see.
    """
    one = _update(model, loss, kind, max(1, local_steps), local_rate)
    parameters = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    call = vmap(one, in_dims=(None, 0, None if targets is None else 0, 0), randomness="different")
    own = (inputs, targets, present)
    with batched_forms(model), NoAssignedData(), Unchanged(model, loss) as kept:

        def without(absent: Tensor) -> Tensor | object:
            kept.restore()
            return attempt(lambda: _flat(call(parameters, *_blank(own, absent)), len(present)))

        found = without(torch.zeros(len(present), dtype=torch.bool))
        if found is FAILED:
            foul = _foul(without, torch.ones(len(present), dtype=torch.bool))
            there_is = ~foul
            found = without(foul)
            present = present & (there_is[:, None] if present.ndim > 1 else there_is)
        if not isinstance(found, Tensor):
            raise InvalidInput("the model or its loss does not compute a batch of absent units; nothing was learned.")
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


def _foul(without: Callable[[Tensor], Tensor | object], some: Tensor) -> Tensor:
    """Which of some units cannot be computed: found by halves, in batches of one shape where all others are absent."""
    none = torch.zeros_like(some)
    if not some.any() or without(~some) is not FAILED:
        return none
    places = some.nonzero().flatten()
    if len(places) == 1:
        return some
    first, second = none.clone(), none.clone()
    first[places[: len(places) // 2]] = True
    second[places[len(places) // 2 :]] = True
    return _foul(without, first) | _foul(without, second)


def _blank(own: Tree, absent: Tensor) -> Tree:
    """Copies in which absent units have zeros, as those that fill up a batch; shapes stay as they are."""

    def copied(part: Tree) -> Tree:
        if not isinstance(part, Tensor):
            return part
        copy = part.clone()
        copy[absent] = 0
        return copy

    return tree_map(copied, own)


def _flat(gradients: dict[str, Tensor], number: int) -> Tensor:
    return torch.cat([part.detach().reshape(number, -1).double() for part in gradients.values()], dim=1)
