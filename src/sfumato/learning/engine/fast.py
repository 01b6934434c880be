"""The fast way: one backward pass gives the output gradients of all layers; norms and weighted sums come from them."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from sfumato.learning.engine.bounds import ErrorBudget
from sfumato.learning.engine.groups import ClipGroups, group_factors
from sfumato.learning.engine.layers import BatchShape, Direct, LayerPart, part_of, with_views
from sfumato.learning.engine.losses import Kind, Loss, unit_losses
from sfumato.learning.engine.record import Site
from sfumato.learning.engine.recording import recording
from sfumato.learning.given import Tree

__all__ = ["KEEP", "Changed", "fast_sum"]

KEEP = {"cpu": 2**26, "cuda": 2**30}
"""The most numbers of written-out gradients that are kept between norms and sums; beyond it they are made twice."""


class Changed(RuntimeError):
    """The model did something else than when it was planned."""


def fast_sum(
    model: nn.Module,
    loss: Loss,
    inputs: tuple[Tensor, ...],
    targets: Tree,
    present: Tensor,
    *,
    clip: float,
    kind: Kind,
    layers: dict[str, nn.Module],
    into: dict[str, Tensor],
    batches: int,
    expected: dict[Site, int] | None = None,
    groups: ClipGroups | None = None,
) -> tuple[Tensor, Tensor, dict[Site, str]]:
    """Put the sum of clipped gradients into double precision tensors; return norms, losses, and each site's way.

    With ``groups`` the gradient of each group of layers is clipped by itself, and ``clip`` does not count.
    """
    units = present.shape[0]
    rows = units if kind == "record" else units * inputs[0].shape[1]
    shape = BatchShape(units=units, rows=rows, batches=batches)
    if kind != "record":
        inputs = tree_map(lambda part: part.flatten(0, 1), inputs)
    with torch.enable_grad(), recording(layers) as record:
        losses = unit_losses(loss, model(*inputs), targets, present, kind)
        total = losses.sum()
    if expected is not None and {site: len(calls) for site, calls in record.calls.items()} != expected:
        raise Changed("the model used its layers differently from the plan; nothing was summed. Use way='semantic'.")
    sites = list(record.calls)
    edges = [call.edge for site in sites for call in record.calls[site]]
    found = iter(torch.autograd.grad(total, edges, allow_unused=True)) if total.requires_grad else iter(())
    parts: dict[Site, LayerPart] = {}
    for site in sites:
        used = [(call, gradient) for call in record.calls[site] if (gradient := next(found)) is not None]
        for call, gradient in used:
            if not call.intact() or call.inputs.shape[0] != rows or gradient.shape[0] != rows:
                raise Changed(f"layer {site.layer!r} does not see one row a record, or its input is changed in place")
        if used:
            seen, gradients = [single(call.inputs) for call, _ in used], [single(gradient) for _, gradient in used]
            parts[site] = part_of(layers[site.layer], site, seen, gradients, shape, set(into))
    del record, edges
    _keep(list(parts.values()), inputs[0].device.type)
    into = with_views(into, layers)
    here = present.any(1) if kind == "user" else present
    groups = groups or ClipGroups.of({"": clip})
    norms, counted = _sum(parts, here, groups, into, ErrorBudget(units=units, batches=batches, crowded=False))
    losses = torch.where(counted, losses.detach(), 0.0).nan_to_num(0.0, 0.0, 0.0)
    return norms, losses, {site: part.way for site, part in parts.items()}


def single(values: Tensor) -> Tensor:
    """Values of half precision in single precision; others as they are."""
    return values.float() if values.is_floating_point() and values.element_size() < 4 else values


def _sum(
    sites: dict[Site, LayerPart], present: Tensor, groups: ClipGroups, into: dict[str, Tensor], budget: ErrorBudget
) -> tuple[Tensor, Tensor]:
    """Measure all parts, clip those of each group, and sum them."""
    parts, places = list(sites.values()), [groups.place(site.layer) for site in sites]
    budget = ErrorBudget(units=budget.units, batches=budget.batches, crowded=any(part.crowded for part in parts))
    with torch.autocast(present.device.type, enabled=False):
        measured = [part.measure() for part in parts]
    nothing = torch.zeros(present.shape[0], dtype=torch.float64, device=present.device)
    number = len(groups.clips)
    squared = _by_group([own for own, _ in measured], places, number, nothing)
    crowd = _by_group([behind for _, behind in measured], places, number, nothing) if budget.crowded else None
    found = group_factors(squared, crowd, present, groups.clips)
    budget = replace(budget, clean=present.device.type == "cpu" and _finite([*squared, *(crowd or ())]))
    filled = {part.fills for part in parts}
    for name, value in into.items():
        if name not in filled:
            value.zero_()
    with torch.autocast(present.device.type, enabled=False):
        for part, place in zip(parts, places, strict=True):
            part.put(found.factors[place], into, budget)
    return found.norms, found.counted


def _by_group(values: list[Tensor], places: list[int], number: int, nothing: Tensor) -> list[Tensor]:
    """The sums of the values of each group."""
    return [
        torch.stack([one for one, at in zip(values, places, strict=True) if at == place] or [nothing]).sum(0)
        for place in range(number)
    ]


def _finite(squared: list[Tensor]) -> bool:
    """Whether all squares are finite, absent units' too; then all values are, and need not be looked through again.

    What is summed is the same either way.
    """
    return all(bool(torch.isfinite(each).all()) for each in squared)


def _keep(parts: list[LayerPart], device: str) -> None:
    """Decide which gradients are written out once: the smallest first, within the memory that is set aside."""
    left = KEEP.get(device, KEEP["cpu"])
    direct = sorted((part for part in parts if isinstance(part, Direct)), key=lambda part: part.size * part.units)
    for part in direct:
        part.keep = part.size * part.units <= left
        left -= part.size * part.units if part.keep else 0
        part.slab = max(1, KEEP.get(device, KEEP["cpu"]) // (8 * part.size))
