"""Gradients of matrices unit by unit on CUDA devices: made for their lengths and again for the sum, never written out.

The gradient of a unit is a product of two narrow matrices. Written out, those of a batch are gigabytes that are written
once and read twice; made twice, they stay in registers. Both kernels make a block of a product by one function of the
same sizes, so that what is summed is what was measured. Where Triton is not installed, on processors and in full single
precision, gradients are written out; the functions here then compute the same by tensor operations, for tests.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from sfumato.learning.device_kernels import at_hand, jit

try:
    import triton
    from triton import language as tl
except ImportError:
    pass

__all__ = ["MOST_PLACES", "Turned", "fits", "turned", "unit_squares", "weighted_products"]

MOST_PLACES = 64
"""With many more places a unit, making a gradient again takes longer than reading it again."""
SHORTEST = 16
"""Sums of fewer units in single precision are not worth their pieces; they are made in double precision."""
ROOM = 200 * 1024  # bytes of memory that a program shares, with which it has large blocks


class Turned(NamedTuple):
    """Values as (units, numbers, places), rounded to TF32, and the sums over the places before that."""

    values: Tensor
    sums: Tensor


class _Blocks(NamedTuple):
    """The sizes of a block of a product, how it is made, and how many programs a device runs at a time."""

    high: int
    wide: int
    warps: int
    stages: int
    programs: int

    def tiles(self, high: int, wide: int) -> tuple[int, int]:
        """How many blocks a product has across, and in all."""
        across = _parts(wide, self.wide)
        return across, across * _parts(high, self.high)


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
        and left.shape[2] * (right.shape[2] + 1) < 2**31
        and torch.cuda.get_device_capability(left.device) >= (8, 0)
    )


def turned(values: Tensor) -> Turned:
    """Turn values (units, places, numbers) so that the places of a number lie side by side, as products need them.

    The places are filled up by zeros to 16, 32 or 64 of them. What is not finite stays so.
    """
    units, places, numbers = values.shape
    if not at_hand(values.device):
        return Turned(_rounded(values).transpose(1, 2), values.sum(1))
    deep = max(16, triton.next_power_of_2(places))
    found = torch.empty((units, numbers, deep), dtype=torch.float32, device=values.device)
    sums = torch.empty((units, numbers), dtype=torch.float32, device=values.device)
    wide = 4096 // deep
    _turned[(units, _parts(numbers, wide))](found, sums, values, places, numbers, *values.stride(), deep, wide)
    return Turned(found, sums)


def unit_squares(left: Turned, right: Turned, *, edge: bool) -> Tensor:
    """The squared length of Σ_t left[u, :, t] right[u, :, t]ᵀ for each unit, with that of the sums of left if asked.

    Squares are summed in single precision within lines of a block, of at most 129 numbers, and in double across.
    """
    if not at_hand(left.values.device):
        squared = _written_out(left, right).double().square().sum((1, 2))
        return squared + left.sums.double().square().sum(1) if edge else squared
    (units, high, places), wide, blocks = left.values.shape, right.values.shape[1], _blocks(left.values.device)
    across, tiles = blocks.tiles(high, wide)
    pieces = min(units, max(1, blocks.programs // tiles))
    found = torch.empty((units, tiles, blocks.high), dtype=torch.float32, device=left.values.device)
    _unit_squares[(tiles, pieces)](
        found, left.sums, left.values, right.values, units, _parts(units, pieces), high, wide, across, tiles, edge,
        blocks.high, blocks.wide, places, num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    squared = torch.empty(units, dtype=torch.float64, device=found.device)
    _row_sums[(units,)](squared, found, tiles * blocks.high, 1024)
    return squared


def weighted_products(
    factors: Tensor, left: Turned, right: Turned, *, terms: int, into: Tensor, beside: Tensor | None
) -> None:
    """Put Σ_u factors[u] Σ_t left[u, :, t] right[u, :, t]ᵀ into a matrix; a unit with the factor 0 counts nothing.

    At most ``terms`` units are summed in single precision, if that is not too few, and all else is in double, which is
    what ``into`` and ``beside`` are in. The sum of factors[u] · left.sums[u] is added to ``beside`` in the same way.
    """
    if not at_hand(left.values.device):
        into.copy_(_weighted(factors, _written_out(left, right)))
        if beside is not None:
            beside.add_(_weighted(factors, left.sums))
        return
    (units, high, places), wide, blocks = left.values.shape, right.values.shape[1], _blocks(left.values.device)
    across, tiles = blocks.tiles(high, wide)
    single, pieces = terms >= SHORTEST, min(units, max(1, blocks.programs // tiles))
    length = min(_parts(units, pieces), terms) if single else _parts(units, pieces)
    kind = torch.float32 if single else torch.float64
    found = torch.empty((_parts(units, length), (wide + 1) * high), dtype=kind, device=left.values.device)
    _weighted_products[(tiles, len(found))](
        found, factors.to(kind).contiguous(), left.sums, left.values, right.values, units, length, high, wide, across,
        single, blocks.high, blocks.wide, places, num_warps=blocks.warps,
        num_stages=blocks.stages,
    )  # fmt: skip
    _together[(_parts(found.shape[1], 512),)](
        into.view(-1), into if beside is None else beside, found, len(found), high * wide, found.shape[1],
        beside is not None, 512,
    )  # fmt: skip


def _rounded(values: Tensor) -> Tensor:
    """Values as TF32 has them: with ten binary digits after the first."""
    bits = values.contiguous().view(torch.int32)
    near = ((bits + 0x1000) & -8192).view(torch.float32)
    return torch.where(values.isfinite(), near, values)


def _written_out(left: Turned, right: Turned) -> Tensor:
    return torch.bmm(left.values, right.values.transpose(1, 2))


def _weighted(factors: Tensor, values: Tensor) -> Tensor:
    """A sum in double precision, to which what has the factor 0 adds nothing, whatever it is."""
    factors = factors.double().view(-1, *[1] * (values.dim() - 1))
    return torch.where(factors == 0, 0.0, factors * values.double()).sum(0)


@lru_cache
def _blocks(device: torch.device) -> _Blocks:
    facts = torch.cuda.get_device_properties(device)
    if getattr(facts, "shared_memory_per_block_optin", 0) >= ROOM:
        return _Blocks(128, 128, 8, 3, facts.multi_processor_count)
    return _Blocks(64, 64, 4, 2, 2 * facts.multi_processor_count)


def _parts(size: int, width: int) -> int:
    return -(-size // width)


# --------------------------------------------------------------------------------------------------------- the kernels
# Their types are those of Triton, which states none; names in capitals are constants of a kernel.
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call, attr-defined"


@jit
def _turned(
    out, sums, values, places, numbers, of_unit, of_place, of_number, DEEP: "tl.constexpr", WIDE: "tl.constexpr"
):
    unit, number = tl.program_id(0).to(tl.int64), tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    place = tl.arange(0, DEEP)
    inside = (place < places)[:, None] & (number < numbers)[None, :]
    first = values + unit * of_unit
    value = tl.load(first + place[:, None].to(tl.int64) * of_place + number[None, :] * of_number, inside, other=0)
    tl.store(sums + unit * numbers + number, tl.sum(value, axis=0), number < numbers)
    bits = value.to(tl.int32, bitcast=True)
    near = ((bits + 0x1000) & -8192).to(tl.float32, bitcast=True)
    value = tl.where((bits & 0x7F800000) != 0x7F800000, near, value)
    at = (unit * numbers + number[:, None]) * DEEP + place[None, :]
    tl.store(out + at, tl.trans(value), (number < numbers)[:, None])


@jit
def _product(left, right, y, x, high, wide, PLACES: "tl.constexpr"):
    place = tl.arange(0, PLACES)
    one = tl.load(left + y[:, None] * PLACES + place[None, :], (y < high)[:, None], other=0)
    other = tl.load(right + place[:, None] + x[None, :] * PLACES, (x < wide)[None, :], other=0)
    return tl.dot(one, other, input_precision="tf32")


@jit
def _unit_squares(
    out, edges, left, right, units, length, high, wide, across, tiles, EDGE: "tl.constexpr", HIGH: "tl.constexpr",
    WIDE: "tl.constexpr", PLACES: "tl.constexpr",
):  # fmt: skip
    tile, begin = tl.program_id(0), tl.program_id(1) * length
    line = tl.arange(0, HIGH)
    y, x = (tile // across) * HIGH + line, (tile % across) * WIDE + tl.arange(0, WIDE)
    first = (y < high) & (tile % across == 0)
    for unit in range(begin, tl.minimum(begin + length, units)):
        at = unit.to(tl.int64) * PLACES
        found = _product(left + at * high, right + at * wide, y, x, high, wide, PLACES)
        lines = tl.sum(found * found, axis=1)
        if EDGE:
            edge = tl.load(edges + unit.to(tl.int64) * high + y, first, other=0)
            lines += edge * edge
        tl.store(out + (unit.to(tl.int64) * tiles + tile) * HIGH + line, lines)


@jit
def _weighted_products(
    out, factors, edges, left, right, units, length, high, wide, across, SINGLE: "tl.constexpr", HIGH: "tl.constexpr",
    WIDE: "tl.constexpr", PLACES: "tl.constexpr",
):  # fmt: skip
    tile, begin = tl.program_id(0), tl.program_id(1) * length
    y, x = (tile // across) * HIGH + tl.arange(0, HIGH), (tile % across) * WIDE + tl.arange(0, WIDE)
    first = (y < high) & (tile % across == 0)
    kind: tl.constexpr = tl.float32 if SINGLE else tl.float64
    total, border = tl.zeros((HIGH, WIDE), dtype=kind), tl.zeros((HIGH,), dtype=kind)
    for unit in range(begin, tl.minimum(begin + length, units)):
        at = unit.to(tl.int64) * PLACES
        found = _product(left + at * high, right + at * wide, y, x, high, wide, PLACES)
        factor, edge = tl.load(factors + unit), tl.load(edges + unit.to(tl.int64) * high + y, first, other=0)
        total += tl.where(factor == 0.0, 0.0, factor * found.to(kind))
        border += tl.where(factor == 0.0, 0.0, factor * edge.to(kind))
    begin_out = out + tl.program_id(1).to(tl.int64) * (wide + 1) * high
    inside = (y < high)[:, None] & (x < wide)[None, :]
    tl.store(begin_out + y[:, None].to(tl.int64) * wide + x[None, :], total, inside)
    tl.store(begin_out + high * wide + y, border, first)


@jit
def _row_sums(out, values, size, WIDE: "tl.constexpr"):
    row, number = tl.program_id(0).to(tl.int64), tl.arange(0, WIDE)
    total = tl.zeros((WIDE,), dtype=tl.float64)
    for start in range(0, size, WIDE):
        at = start + number
        total += tl.load(values + row * size + at, at < size, other=0).to(tl.float64)
    tl.store(out + row, tl.sum(total))


@jit
def _together(into, beside, values, pieces, size, whole, EDGE: "tl.constexpr", WIDE: "tl.constexpr"):
    at = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    total = tl.zeros((WIDE,), dtype=tl.float64)
    for piece in range(pieces):
        total += tl.load(values + piece.to(tl.int64) * whole + at, at < whole, other=0).to(tl.float64)
    tl.store(into + at, total, at < size)
    if EDGE:
        edge = (at >= size) & (at < whole)
        tl.store(beside + at - size, tl.load(beside + at - size, edge, other=0) + total, edge)
