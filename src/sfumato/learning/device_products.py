"""Gradients of matrices unit by unit, on CUDA devices: made for their lengths, made again for the sum, never written out.

The gradient of a unit is a product of two narrow matrices. Written out, those of a batch are gigabytes that are written
once and read twice; made twice, they stay in registers. Both kernels make a part of a product by the same function of
the same blocks, so that what is summed is what was measured. Where Triton is not installed, on processors and in full
single precision, gradients are written out.
"""

import torch
from torch import Tensor

from sfumato.learning.device_kernels import at_hand, jit

try:
    import triton
    from triton import language as tl
except ImportError:
    pass

__all__ = ["MOST_PLACES", "fits", "unit_squares", "weighted_products"]

MOST_PLACES = 128
"""With more places a unit, making a gradient again takes longer than reading it again."""
HIGH, WIDE, DEEP, WARPS, STAGES = 128, 64, 64, 8, 2
BUSY = 264


def fits(left: Tensor, right: Tensor) -> bool:
    """Whether these kernels make the products of two tensors (units, places, numbers), as the device would by itself.

    >>> fits(torch.ones(1, 2, 3), torch.ones(1, 2, 3))
    False
    """
    return (
        at_hand(left.device)
        and left.dtype == right.dtype == torch.float32
        and torch.get_float32_matmul_precision() != "highest"
        and 1 < left.shape[1] <= MOST_PLACES
    )


def unit_squares(left: Tensor, right: Tensor) -> Tensor:
    """The squared length of Σ_t left[u, t] right[u, t]ᵀ for each unit.

    Squares are summed in single precision within lines of a block, which are shorter than 1024, and in double across.
    """
    units, _, high = left.shape
    across, tiles = _tiles(high, right.shape[2])
    pieces = min(units, _parts(BUSY, tiles))
    found = torch.empty((units, tiles), dtype=torch.float64, device=left.device)
    _unit_squares[(tiles, pieces)](
        found, left, right, units, _parts(units, pieces), *_sizes(left, right), across, tiles, HIGH, WIDE, *_deep(left),
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return found.sum(1)


def weighted_products(factors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Σ_u factors[u] Σ_t left[u, t] right[u, t]ᵀ in double precision; a unit with the factor 0 counts nothing."""
    units, _, high = left.shape
    wide = right.shape[2]
    across, tiles = _tiles(high, wide)
    pieces = min(units, _parts(BUSY, tiles))
    found = torch.empty((pieces, high, wide), dtype=torch.float64, device=left.device)
    _weighted_products[(tiles, pieces)](
        found, factors.double().contiguous(), left, right, units, _parts(units, pieces), *_sizes(left, right), across,
        HIGH, WIDE, *_deep(left), num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return found.sum(0)


def _tiles(high: int, wide: int) -> tuple[int, int]:
    across = _parts(wide, WIDE)
    return across, across * _parts(high, HIGH)


def _sizes(left: Tensor, right: Tensor) -> tuple[int, ...]:
    return left.shape[1], left.shape[2], right.shape[2], *left.stride(), *right.stride()


def _deep(left: Tensor) -> tuple[int, bool]:
    """How many places are multiplied at a time, and whether these are all."""
    deep = min(DEEP, max(16, triton.next_power_of_2(left.shape[1])))
    return deep, left.shape[1] <= deep


def _parts(size: int, width: int) -> int:
    return -(-size // width)


# --------------------------------------------------------------------------------------------------------- the kernels
# Their types are those of Triton, which states none; names in capitals are constants of a kernel.
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"


@jit
def _product(
    left, right, y, x, places, high, wide, of_place, of_line, of_other_place, of_column, HIGH: "tl.constexpr",
    WIDE: "tl.constexpr", DEEP: "tl.constexpr", ONCE: "tl.constexpr",
):  # fmt: skip
    place = tl.arange(0, DEEP)
    found = tl.zeros((HIGH, WIDE), dtype=tl.float32)
    if ONCE:
        one = tl.load(
            left + y[:, None] * of_line + place[None, :] * of_place,
            (y < high)[:, None] & (place < places)[None, :],
            other=0,
        )
        other = tl.load(
            right + place[:, None] * of_other_place + x[None, :] * of_column,
            (place < places)[:, None] & (x < wide)[None, :],
            other=0,
        )
        found = tl.dot(one, other, found, input_precision="tf32")
    else:
        for start in range(0, places, DEEP):
            at = start + place
            one = tl.load(
                left + y[:, None] * of_line + at[None, :] * of_place,
                (y < high)[:, None] & (at < places)[None, :],
                other=0,
            )
            other = tl.load(
                right + at[:, None] * of_other_place + x[None, :] * of_column,
                (at < places)[:, None] & (x < wide)[None, :],
                other=0,
            )
            found = tl.dot(one, other, found, input_precision="tf32")
    return found


@jit
def _unit_squares(
    out, left, right, units, length, places, high, wide, of_unit, of_place, of_line, of_other_unit, of_other_place,
    of_column, across, tiles, HIGH: "tl.constexpr", WIDE: "tl.constexpr", DEEP: "tl.constexpr", ONCE: "tl.constexpr",
):  # fmt: skip
    tile, begin = tl.program_id(0), tl.program_id(1) * length
    y, x = (tile // across) * HIGH + tl.arange(0, HIGH), (tile % across) * WIDE + tl.arange(0, WIDE)
    for unit in range(begin, tl.minimum(begin + length, units)):
        one, other = left + unit.to(tl.int64) * of_unit, right + unit.to(tl.int64) * of_other_unit
        found = _product(
            one, other, y, x, places, high, wide, of_place, of_line, of_other_place, of_column, HIGH, WIDE, DEEP, ONCE
        )
        lines = tl.sum(found * found, axis=1)
        tl.store(out + unit.to(tl.int64) * tiles + tile, tl.sum(lines.to(tl.float64)))


@jit
def _weighted_products(
    out, factors, left, right, units, length, places, high, wide, of_unit, of_place, of_line, of_other_unit,
    of_other_place, of_column, across, HIGH: "tl.constexpr", WIDE: "tl.constexpr", DEEP: "tl.constexpr",
    ONCE: "tl.constexpr",
):  # fmt: skip
    tile, begin = tl.program_id(0), tl.program_id(1) * length
    y, x = (tile // across) * HIGH + tl.arange(0, HIGH), (tile % across) * WIDE + tl.arange(0, WIDE)
    total = tl.zeros((HIGH, WIDE), dtype=tl.float64)
    for unit in range(begin, tl.minimum(begin + length, units)):
        one, other = left + unit.to(tl.int64) * of_unit, right + unit.to(tl.int64) * of_other_unit
        found = _product(
            one, other, y, x, places, high, wide, of_place, of_line, of_other_place, of_column, HIGH, WIDE, DEEP, ONCE
        )
        factor = tl.load(factors + unit)
        total += tl.where(factor == 0.0, 0.0, factor * found.to(tl.float64))
    first = out + tl.program_id(1).to(tl.int64) * high * wide
    inside = (y < high)[:, None] & (x < wide)[None, :]
    tl.store(first + y[:, None].to(tl.int64) * wide + x[None, :], total, inside)
