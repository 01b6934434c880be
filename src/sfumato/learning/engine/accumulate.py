"""Weighted sums over units: single precision in short chunks, double precision across them."""

from functools import cache

import torch
from torch import Tensor

from sfumato.learning.engine.device import weighted_rows
from sfumato.learning.engine.precision import full_precision

__all__ = ["chunk", "even", "outer", "rows"]

SHORTEST = 24
"""Chunks with fewer terms cost more than double precision throughout."""
SLAB = 2**22
"""The most numbers that are held in double precision beside the sum."""
DEEP = 2**12
"""The most products that are summed at a time in double precision, unless one unit has more."""


@full_precision()
def rows(factors: Tensor, values: Tensor, into: Tensor, terms: int, *, clean: bool = False) -> None:
    """Add Σ_u factors[u] · values[u] to a tensor, rounding once; what is not finite counts as 0.

    A unit with such a value has the factor 0. Each entry is a sum of at most ``terms`` products in single precision.
    """
    if values.device.type != "cpu":
        into.add_(weighted_rows(factors, values.flatten(1)).view_as(into))
        return
    values = values.flatten(1) if clean else values.flatten(1).nan_to_num(0.0, 0.0, 0.0)
    units = values.shape[0]
    step = min(terms, units)
    if values.dtype != torch.float32 or step < min(SHORTEST, units):
        step, factors = max(1, SLAB // max(1, values.shape[1])), factors.double()
        found = factors[:step] @ values[:step].double()
        for at in range(step, units, step):
            found += factors[at : at + step] @ values[at : at + step].double()
    else:
        step, factors = even(units, step), factors.float()
        found = factors[:step] @ values[:step]
        if step < units:
            found = found.double()
            for at in range(step, units, step):
                found += factors[at : at + step] @ values[at : at + step]
    into.add_(found.view_as(into))


@full_precision()
def outer(
    factors: Tensor,
    left: Tensor,
    right: Tensor,
    into: Tensor,
    terms: int,
    *,
    clean: bool = False,
    beside: Tensor | None = None,
) -> None:
    """Put Σ_u factors[u] Σ_t left[u, t] right[u, t]ᵀ into a matrix, rounding once; what is not finite counts as 0.

    An entry is at most ``terms`` roundings deep in single precision: products within a chunk of units, then chunks.
    Where that cannot be, it is summed in double precision. Σ_u factors[u] Σ_t left[u, t] is added to ``beside``, a
    bias, in the same way.
    """
    units, places = left.shape[:2]
    right = right if clean else right.nan_to_num(0.0, 0.0, 0.0)
    near = left.device.type == "cpu"  # on a device double precision is cheap
    step = chunk(units, places, terms) if left.dtype == torch.float32 and near else 0
    if step:
        left = left * factors.float()[:, None, None]
        left = left if clean else left.nan_to_num_(0.0, 0.0, 0.0)
        found = into if into.dtype == torch.float32 else torch.empty_like(into, dtype=torch.float32)
        chunks = (torch.split(values.flatten(0, 1), step * places) for values in (left, right))
        for place, (some, other) in enumerate(zip(*chunks, strict=True)):
            found.addmm_(some.t(), other, beta=1 if place else 0)
        if found is not into:
            into.copy_(found)
        if beside is not None:
            beside.add_(_columns(left.flatten(0, 1), step * places))
        return
    wide = into if into.dtype == torch.float64 else torch.empty_like(into, dtype=torch.float64)
    wide.zero_()
    edge = torch.zeros(left.shape[2], dtype=torch.float64, device=left.device)
    step = max(1, min(DEEP // places, SLAB // max(1, left[0].numel() + right[0].numel())))
    for at in range(0, units, step):
        one, other = left[at : at + step].double() * factors[at : at + step, None, None], right[at : at + step].double()
        wide.add_(one.nan_to_num_(0.0, 0.0, 0.0).flatten(0, 1).t() @ other.flatten(0, 1))
        if beside is not None:
            edge += one.sum((0, 1))
    if wide is not into:
        into.copy_(wide)
    if beside is not None:
        beside.add_(edge)


def _columns(values: Tensor, step: int) -> Tensor:
    """The sum of rows: within chunks of ``step`` rows, then chunks; roundings are as deep as in a product."""
    whole = len(values) // step * step
    found = values[:whole].reshape(-1, step, values.shape[1]).sum(1).sum(0)
    return found if whole == len(values) else found + values[whole:].sum(0)


@cache
def chunk(units: int, places: int, terms: int) -> int:
    """How many units one product in single precision holds: as many as leave room to add up the chunks.

    0 where chunks would be so short that double precision throughout is cheaper, or needed.

    >>> chunk(256, 1, 109), chunk(32, 8, 81), chunk(4096, 1, 5)
    (86, 8, 0)
    """
    for number in range(1, units + 1):
        step = even(units, -(-units // number))
        if step * places + number <= terms:
            return step if step * places >= min(SHORTEST, units * places) else 0
        if step == 1:
            break
    return 0


def even(units: int, most: int) -> int:
    """A chunk of a limited number of units, all about equally long.

    >>> even(256, 118)
    86
    """
    return -(-units // -(-units // most))
