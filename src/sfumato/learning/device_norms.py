"""Gradients of layer normalisations unit by unit, on CUDA devices: inputs and output gradients are read once.

Where Triton is not installed, and on processors, the same is computed by tensor operations.
"""

import torch
from torch import Tensor

from sfumato.learning.device_kernels import at_hand, jit

try:
    import triton
    from triton import language as tl
except ImportError:
    pass

__all__ = ["WIDEST", "fits", "norm_gradients"]

WIDEST = 4096
"""The most numbers of a row: a row lies in the registers of one program."""


def fits(values: Tensor, gradients: Tensor, size: int) -> bool:
    """Whether this kernel is at hand for rows of this many numbers.

    >>> fits(torch.ones(2, 3), torch.ones(2, 3), 3)
    False
    """
    return at_hand(values.device) and values.dtype == gradients.dtype == torch.float32 and size <= WIDEST


def norm_gradients(values: Tensor, gradients: Tensor, *, units: int, size: int, eps: float) -> Tensor:
    """The gradients of weight and bias, one row a unit: those of the weight first, then those of the bias."""
    values, gradients = values.reshape(units, -1, size).contiguous(), gradients.reshape(units, -1, size).contiguous()
    found = torch.empty((units, 2 * size), dtype=torch.float32, device=values.device)
    wide = max(32, triton.next_power_of_2(size))
    _norm_gradients[(units,)](found, values, gradients, values.shape[1], size, eps, max(1, WIDEST // wide), wide)
    return found


# ---------------------------------------------------------------------------------------------------------- the kernel
# Its types are those of Triton, which states none; names in capitals are constants of a kernel.
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"


@jit
def _norm_gradients(out, values, gradients, places, size, eps, HIGH: "tl.constexpr", WIDE: "tl.constexpr"):
    unit, number, line = tl.program_id(0).to(tl.int64), tl.arange(0, WIDE), tl.arange(0, HIGH)
    weight, bias = tl.zeros((HIGH, WIDE), dtype=tl.float32), tl.zeros((HIGH, WIDE), dtype=tl.float32)
    for start in range(0, places, HIGH):
        row = start + line
        inside = (row < places)[:, None] & (number < size)[None, :]
        at = (unit * places + row)[:, None] * size + number[None, :]
        value = tl.load(values + at, inside, other=0)
        gradient = tl.load(gradients + at, inside, other=0)
        away = tl.where(inside, value - (tl.sum(value, axis=1) / size)[:, None], 0.0)
        spread = tl.sum(away * away, axis=1) / size
        weight += gradient * (away * (1.0 / tl.sqrt(spread + eps))[:, None])
        bias += gradient
    first = out + unit * 2 * size + number
    tl.store(first, tl.sum(weight, axis=0), number < size)
    tl.store(first + size, tl.sum(bias, axis=0), number < size)
