"""What a clipped sum means, for any model: the gradient of each unit's loss by itself, in chunks of units."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map

from sfumato.learning.engine.groups import ClipGroups, group_factors, owner
from sfumato.learning.engine.layers import forward_of
from sfumato.learning.engine.losses import Kind, Loss, unit_losses
from sfumato.learning.engine.measure import squares
from sfumato.learning.engine.record import ForwardRecord
from sfumato.learning.given import Tree
from sfumato.learning.kept_tensors import NoAssignedData
from sfumato.learning.unchanged import Unchanged

__all__ = ["MEMORY", "batched_forms", "semantic_sum", "unit_gradient"]

MEMORY = 2**25
"""The most numbers of gradients that are held at a time, unless one unit alone has more."""


def semantic_sum(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    present: Tensor,
    *,
    clip: float,
    kind: Kind,
    into: dict[str, Tensor],
    chunk: int | None = None,
    groups: ClipGroups | None = None,
) -> tuple[Tensor, Tensor]:
    """Put the sum of clipped gradients into double precision tensors; return norms and losses.

    With ``groups`` the gradient of each group of layers is clipped by itself, and ``clip`` does not count.

    Whatever the model writes to in one chunk, or for one unit alone, is put back before the next one. What it computes
    from has memory of its own each time: a unit alone finds no other unit behind it, nor what an attempt wrote to it.
    """
    one = unit_gradient(model, loss, kind)
    parameters = {name: value.detach() for name, value in model.named_parameters() if name in into}
    size = sum(value.numel() for value in parameters.values())
    chunk = chunk or max(1, min(len(present), MEMORY // max(1, size)))
    call = vmap(one, in_dims=(None, 0, None if targets is None else 0, 0), randomness="different")
    groups = groups or ClipGroups.of({"": clip})
    places = {name: groups.place(owner(name)) for name in parameters}
    for value in into.values():
        value.zero_()
    norms, losses = [], []
    for start in range(0, len(present), chunk):
        some, target, here = tree_map(_part(start, start + chunk), (inputs, targets, present))
        with batched_forms(model), NoAssignedData(), Unchanged(model, loss) as kept:
            try:
                gradients, values = call(parameters, *tree_map(_own, (some, target, here)))
            except RuntimeError:  # something in the model cannot be computed for many units at once
                kept.restore()
                gradients, values = _one_by_one(one, parameters, some, target, here, kept)
        measured = {name: squares(g.flatten(1)) for name, g in gradients.items()}
        nothing = torch.zeros_like(next(iter(measured.values())))
        squared = [
            torch.stack([measured[name] for name in measured if places[name] == place] or [nothing]).sum(0)
            for place in range(len(groups.clips))
        ]
        found = group_factors(squared, None, here.any(1) if kind == "user" else here, groups.clips)
        for name, gradient in gradients.items():
            clean = torch.nan_to_num(gradient.flatten(1).double(), 0.0, 0.0, 0.0)
            into[name].add_((found.factors[places[name]] @ clean).view_as(into[name]))
        norms.append(found.norms)
        losses.append(torch.where(found.counted, values, 0.0).nan_to_num(0.0, 0.0, 0.0))
    return torch.cat(norms), torch.cat(losses)


def unit_gradient(model: nn.Module, loss: Loss, kind: Kind) -> Callable[..., Tree]:
    """The function from parameters and one unit to the gradient and the loss of that unit."""

    def one(parameters: dict[str, Tensor], inputs: tuple[Tensor, ...], target: Tree, here: Tensor) -> Tensor:
        if kind == "record":
            inputs, target, here = tree_map(_alone, (inputs, target, here))
            return unit_losses(loss, functional_call(model, parameters, inputs), target, here, kind).sum()
        outputs = functional_call(model, parameters, inputs)
        target, here = tree_map(_alone, (target, here))
        return unit_losses(loss, outputs, target, here, kind).sum()

    return grad_and_value(one)


def _one_by_one(
    one: Callable[..., Tree],
    parameters: dict[str, Tensor],
    inputs: Tree,
    targets: Tree,
    present: Tensor,
    kept: Unchanged,
) -> tuple[dict[str, Tensor], Tensor]:
    """The same without computing several units at once."""
    found = []
    for at in range(len(present)):
        found.append(one(parameters, *tree_map(_place(at), (inputs, targets, present))))
        kept.restore()
    gradients = {name: torch.stack([gradient[name] for gradient, _ in found]) for name in parameters}
    return gradients, torch.stack([value for _, value in found])


@contextmanager
def batched_forms(model: nn.Module) -> Iterator[None]:
    """Use forms of attention and of recurrent cells that can be computed for many units at once."""
    cells = {layer: forward_of(layer, "", ForwardRecord(writes=False)) for layer in model.modules()}
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.filterwarnings("ignore", message="There is a performance drop")
        try:
            for layer, forward in cells.items():
                if forward is not None:
                    layer.forward = forward
            yield
        finally:
            for layer, forward in cells.items():
                if forward is not None:
                    layer.__dict__.pop("forward", None)


def _part(start: int, stop: int) -> Callable[[Tree], Tree]:
    return lambda part: part[start:stop] if isinstance(part, Tensor) else part


def _place(at: int) -> Callable[[Tree], Tree]:
    return lambda part: part[at].clone() if isinstance(part, Tensor) else part


def _own(part: Tree) -> Tree:
    return part.clone() if isinstance(part, Tensor) else part


def _alone(part: Tree) -> Tree:
    return part[None] if isinstance(part, Tensor) else part
