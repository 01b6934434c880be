"""Kernels for CUDA devices, written by hand: nothing is left to a compiler that takes half a minute at the first step.

Triton builds each of these in about a second and keeps them for the next process. Where Triton is not installed, and on
processors, the callers compute the same by tensor operations. Sums are in double precision and in one order.
"""

import importlib.util
from functools import lru_cache
from typing import Any  # a kernel of Triton, which states no types

import torch
from torch import Tensor

__all__ = ["add_noise", "at_hand", "cut_patches", "judge", "keystream", "look_up", "row_squares", "weighted_rows"]

if importlib.util.find_spec("triton") is not None:
    import triton
    from triton import language as tl

    jit = triton.jit
else:

    def jit(function: Any) -> Any:
        """Leave the text of a kernel as it is, where there is nothing to build it with."""
        return function


BUSY = 1024  # this many programs keep a device busy; sums over fewer are cut into pieces


def at_hand(device: torch.device) -> bool:
    """Whether these kernels run on a device.

    >>> at_hand(torch.device("cpu"))
    False
    """
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def keystream(key: Tensor, counter: Tensor, blocks: int) -> Tensor:
    """What :func:`~sfumato.learning.device_words.chacha20` gives."""
    found = torch.empty(16 * blocks, dtype=torch.int32, device=key.device)
    if blocks:
        _keystream[(_parts(blocks, 128),)](found, key, counter, blocks, 128)
    return found


def look_up(lanes: Tensor, starts: Tensor, *, index: int, place: int) -> tuple[Tensor, Tensor]:
    """What one word gives for each number, and 1 where it leaves the number open (else 0)."""
    lanes = lanes.contiguous()
    values = torch.empty(lanes.shape, dtype=torch.int64, device=lanes.device)
    missing = torch.empty(lanes.shape, dtype=torch.int32, device=lanes.device)
    if lanes.numel():
        _look_up[(_parts(lanes.numel(), 1024),)](values, missing, lanes, starts, lanes.numel(), index, place, 1024)
    return values, missing


def judge(
    pairs: Tensor, tables: tuple[Tensor, ...], *, shift: int, place: int, sigma: int, columns: int, largest: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The number of each proposal of four words, whether it is surely accepted, and whether surely refused."""
    pairs = pairs.contiguous()
    size = pairs.numel() // 4
    number = torch.empty(size, dtype=torch.int64, device=pairs.device)
    yes, no = (torch.empty(size, dtype=torch.bool, device=pairs.device) for _ in range(2))
    _judge[(_parts(size, 256),)](
        number, yes, no, pairs, *tables, size, shift, place, sigma, columns, largest, 2.0 ** (place - 31),
        2.0 ** (place - 63), 2.0 ** -(2 * sigma + 1), 256,
    )  # fmt: skip
    return number, yes, no


def add_noise(total: Tensor, noise: Tensor, per_step: float, step: float, farthest: float) -> Tensor:
    """A sum rounded to its lattice, with noise; what is not a number counts as 0."""
    found = torch.empty(total.shape, dtype=torch.float64, device=total.device)
    scales = _numbers((per_step, step, farthest), total.device)
    _add_noise[(_parts(total.numel(), 1024),)](found, total.contiguous(), noise, scales, total.numel(), 1024)
    return found


def row_squares(values: Tensor) -> Tensor:
    """The sum of squares of each row, in double precision."""
    rows, size = values.shape
    pieces = max(1, min(_parts(size, 4096), _parts(BUSY, max(1, rows))))
    found = torch.empty((rows, pieces), dtype=torch.float64, device=values.device)
    if rows:
        width = min(2048, triton.next_power_of_2(max(1, size)))
        length = _parts(_parts(size, pieces), width) * width
        _row_squares[(rows, pieces)](found, values, size, length, pieces, *values.stride(), width)
    return found.sum(1)


def weighted_rows(factors: Tensor, values: Tensor) -> Tensor:
    """The sum of rows times their factors in double precision; a row with the factor 0 counts nothing."""
    units, size = values.shape
    wide = min(128, max(16, triton.next_power_of_2(size)))
    high = max(1, 2048 // wide)
    across = _parts(size, wide)
    pieces = max(1, min(_parts(units, high), _parts(BUSY, max(1, across))))
    found = torch.empty((pieces, size), dtype=torch.float64, device=values.device)
    if size:
        length = _parts(_parts(units, pieces), high) * high
        _weighted_rows[(across, pieces)](
            found, factors.double().contiguous(), values, units, size, length, *values.stride(), high, wide
        )
    return found.sum(0)


def cut_patches(
    values: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], around: tuple[int, ...]
) -> Tensor:
    """What each place of a convolution sees: (rows, kernel height · kernel width · channels, places)."""
    rows, channels, *sides = values.shape
    padded = (sides[0] + around[2] + around[3], sides[1] + around[0] + around[1])
    high, wide = (
        (size - pace * (length - 1) - 1) // step + 1
        for size, length, step, pace in zip(padded, kernel, stride, dilation, strict=True)
    )
    shape = (rows, kernel[0] * kernel[1] * channels, high * wide)
    found = torch.empty(shape, dtype=values.dtype, device=values.device)
    if found.numel():
        width = min(1024, triton.next_power_of_2(high * wide))
        _cut_patches[(rows * channels, _parts(high * wide, width))](
            found, values, channels, *sides, high, wide, *values.stride(), *kernel, *stride, *dilation, around[2],
            around[0], width,
        )  # fmt: skip
    return found


def _parts(size: int, width: int) -> int:
    return -(-size // width)


@lru_cache
def _numbers(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers in double precision: as arguments of a kernel they would be handed over in single."""
    return torch.tensor(values, dtype=torch.float64, device=device)


# --------------------------------------------------------------------------------------------------------- the kernels
# Their types are those of Triton, which states none; names in capitals are constants of a kernel.
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"


@jit
def _turned(x, bits):
    return (x << bits) | (x >> (32 - bits))


@jit
def _quarter(a, b, c, d):
    a = a + b
    d = _turned(d ^ a, 16)
    c = c + d
    b = _turned(b ^ c, 12)
    a = a + b
    d = _turned(d ^ a, 8)
    c = c + d
    b = _turned(b ^ c, 7)
    return a, b, c, d


@jit
def _keystream(out, key, counter, blocks, WIDE: "tl.constexpr"):
    place = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    count = (tl.load(counter) + place).to(tl.uint64)
    low, high = (count & 0xFFFFFFFF).to(tl.uint32), (count >> 32).to(tl.uint32)
    none = tl.zeros((WIDE,), dtype=tl.uint32)
    c0, c1, c2, c3 = none + 0x61707865, none + 0x3320646E, none + 0x79622D32, none + 0x6B206574
    k0, k1 = none + tl.load(key).to(tl.uint32, bitcast=True), none + tl.load(key + 1).to(tl.uint32, bitcast=True)
    k2, k3 = none + tl.load(key + 2).to(tl.uint32, bitcast=True), none + tl.load(key + 3).to(tl.uint32, bitcast=True)
    k4, k5 = none + tl.load(key + 4).to(tl.uint32, bitcast=True), none + tl.load(key + 5).to(tl.uint32, bitcast=True)
    k6, k7 = none + tl.load(key + 6).to(tl.uint32, bitcast=True), none + tl.load(key + 7).to(tl.uint32, bitcast=True)
    s0, s1, s2, s3, s4, s5, s6, s7 = c0, c1, c2, c3, k0, k1, k2, k3
    s8, s9, s10, s11, s12, s13, s14, s15 = k4, k5, k6, k7, low, high, none, none
    for _ in range(10):
        s0, s4, s8, s12 = _quarter(s0, s4, s8, s12)
        s1, s5, s9, s13 = _quarter(s1, s5, s9, s13)
        s2, s6, s10, s14 = _quarter(s2, s6, s10, s14)
        s3, s7, s11, s15 = _quarter(s3, s7, s11, s15)
        s0, s5, s10, s15 = _quarter(s0, s5, s10, s15)
        s1, s6, s11, s12 = _quarter(s1, s6, s11, s12)
        s2, s7, s8, s13 = _quarter(s2, s7, s8, s13)
        s3, s4, s9, s14 = _quarter(s3, s4, s9, s14)
    first, here = out + place * 16, place < blocks
    tl.store(first, (s0 + c0).to(tl.int32, bitcast=True), here)
    tl.store(first + 1, (s1 + c1).to(tl.int32, bitcast=True), here)
    tl.store(first + 2, (s2 + c2).to(tl.int32, bitcast=True), here)
    tl.store(first + 3, (s3 + c3).to(tl.int32, bitcast=True), here)
    tl.store(first + 4, (s4 + k0).to(tl.int32, bitcast=True), here)
    tl.store(first + 5, (s5 + k1).to(tl.int32, bitcast=True), here)
    tl.store(first + 6, (s6 + k2).to(tl.int32, bitcast=True), here)
    tl.store(first + 7, (s7 + k3).to(tl.int32, bitcast=True), here)
    tl.store(first + 8, (s8 + k4).to(tl.int32, bitcast=True), here)
    tl.store(first + 9, (s9 + k5).to(tl.int32, bitcast=True), here)
    tl.store(first + 10, (s10 + k6).to(tl.int32, bitcast=True), here)
    tl.store(first + 11, (s11 + k7).to(tl.int32, bitcast=True), here)
    tl.store(first + 12, (s12 + low).to(tl.int32, bitcast=True), here)
    tl.store(first + 13, (s13 + high).to(tl.int32, bitcast=True), here)
    tl.store(first + 14, s14.to(tl.int32, bitcast=True), here)
    tl.store(first + 15, s15.to(tl.int32, bitcast=True), here)


@jit
def _look_up(values, missing, lanes, starts, size, INDEX: "tl.constexpr", PLACE: "tl.constexpr", WIDE: "tl.constexpr"):
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    here = at < size
    word = tl.load(lanes + at, here, other=0)
    start = tl.load(starts + ((word >> (32 - INDEX)) & ((1 << INDEX) - 1)), here, other=0)
    low: tl.constexpr = 31 - PLACE
    tl.store(values + at, (start ^ ((word << low) >> low)).to(tl.int64), here)
    tl.store(missing + at, (start < 0).to(tl.int32), here)


@jit
def _judge(
    number, yes, no, pairs, steps, outcomes, nearest, share, given, height, slack, size, SHIFT: "tl.constexpr",
    PLACE: "tl.constexpr", SIGMA: "tl.constexpr", COLUMNS: "tl.constexpr", LARGEST: "tl.constexpr",
    UPPER: "tl.constexpr", LOWER: "tl.constexpr", HALVED: "tl.constexpr", WIDE: "tl.constexpr",
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    here = at < size
    top = tl.load(pairs + 4 * at, here, other=0).to(tl.int64) & 0xFFFFFFFF
    u_bits = tl.load(pairs + 4 * at + 1, here, other=0).to(tl.int64) & 0xFFFFFFFF
    high = tl.load(pairs + 4 * at + 2, here, other=0).to(tl.int64) & 0xFFFFFFFF
    rest = tl.load(pairs + 4 * at + 3, here, other=0).to(tl.int64) & 0xFFFFFFFF
    slot = (top + tl.load(steps + (top >> SHIFT), here, other=0)) >> SHIFT
    column = tl.load(outcomes + slot, here, other=0).to(tl.int64)
    within = (high >> (31 - PLACE)) & ((1 << PLACE) - 1)
    found = ((column << PLACE) | within) ^ -(high >> 31)
    inside = (high & ((1 << (31 - PLACE)) - 1)).to(tl.float64) * UPPER
    inside = inside + rest.to(tl.float64) * LOWER
    far = tl.abs(found.to(tl.float64) + inside - 0.5)
    near = tl.load(nearest + column, here, other=0)
    q = (far - near) * (far + near) * HALVED
    small = q <= LARGEST
    q = tl.where(small, q, 0.0)
    e = q * 0.0 - 1.0 / 362880.0
    e = e * q + 1.0 / 40320.0
    e = e * q - 1.0 / 5040.0
    e = e * q + 1.0 / 720.0
    e = e * q - 1.0 / 120.0
    e = e * q + 1.0 / 24.0
    e = e * q - 1.0 / 6.0
    e = e * q + 0.5
    e = e * q - 1.0
    e = e * q + 1.0
    level = tl.load(share + column, here, other=0) * e - tl.load(given + column, here, other=0)
    u, tall = u_bits.to(tl.float64) * 2.3283064365386963e-10, tl.load(height + column, here, other=0)
    err = tl.load(slack + column, here, other=0)
    accepted = ((u + 2.3283064365386963e-10) * tall <= level - err) & small
    refused = ((u * tall >= level + err) & small) | (column > COLUMNS)
    tl.store(number + at, found, here)
    tl.store(yes + at, accepted, here)
    tl.store(no + at, refused, here)


@jit
def _add_noise(out, total, noise, scales, size, WIDE: "tl.constexpr"):
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    here = at < size
    per_step, step, most = tl.load(scales), tl.load(scales + 1), tl.load(scales + 2)
    q = tl.load(total + at, here, other=0).to(tl.float64) * per_step
    q = tl.where(q == q, q, 0.0)
    q = tl.where(q > most, most, tl.where(q < -most, -most, q))
    whole = (q + 6755399441055744.0) - 6755399441055744.0  # to the nearest whole number, as on processors
    tl.store(out + at, (whole + tl.load(noise + at, here, other=0).to(tl.float64)) * step, here)


@jit
def _row_squares(out, values, size, length, pieces, row, column, WIDE: "tl.constexpr"):
    first = values + tl.program_id(0).to(tl.int64) * row
    begin = tl.program_id(1) * length
    total = tl.zeros((WIDE,), dtype=tl.float64)
    for start in range(begin, tl.minimum(begin + length, size), WIDE):
        at = start + tl.arange(0, WIDE).to(tl.int64)
        value = tl.load(first + at * column, at < size, other=0).to(tl.float64)
        total += value * value
    tl.store(out + tl.program_id(0) * pieces + tl.program_id(1), tl.sum(total))


@jit
def _weighted_rows(out, factors, values, units, size, length, row, column, HIGH: "tl.constexpr", WIDE: "tl.constexpr"):
    at = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    begin = tl.program_id(1) * length
    total = tl.zeros((HIGH, WIDE), dtype=tl.float64)
    for start in range(begin, tl.minimum(begin + length, units), HIGH):
        unit = start + tl.arange(0, HIGH).to(tl.int64)
        factor = tl.load(factors + unit, unit < units, other=0.0)[:, None]
        inside = (unit < units)[:, None] & (at < size)[None, :]
        value = tl.load(values + unit[:, None] * row + at[None, :] * column, inside, other=0).to(tl.float64)
        total += tl.where(factor == 0.0, 0.0, factor * value)
    tl.store(out + tl.program_id(1).to(tl.int64) * size + at, tl.sum(total, axis=0), at < size)


@jit
def _cut_patches(
    out, values, channels, height, width, high, wide, of_row, of_channel, of_line, of_place, KY: "tl.constexpr",
    KX: "tl.constexpr", SY: "tl.constexpr", SX: "tl.constexpr", DY: "tl.constexpr", DX: "tl.constexpr",
    TOP: "tl.constexpr", LEFT: "tl.constexpr", WIDE: "tl.constexpr",
):  # fmt: skip
    row, channel = (tl.program_id(0) // channels).to(tl.int64), tl.program_id(0) % channels
    place = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    here = place < high * wide
    first = values + row * of_row + channel.to(tl.int64) * of_channel
    into = out + (row * (KY * KX) * channels + channel) * (high * wide) + place
    for y in tl.static_range(KY):
        line = (place // wide) * SY + y * DY - TOP
        for x in tl.static_range(KX):
            at = (place % wide) * SX + x * DX - LEFT
            inside = here & (line >= 0) & (line < height) & (at >= 0) & (at < width)
            value = tl.load(first + line * of_line + at * of_place, inside, other=0)
            tl.store(into + (y * KX + x) * channels * (high * wide), value, here)
