"""Sums of a step become public here: rounded to a lattice, met by exact Gaussian noise, and floats again.

Proof: docs/proofs/fine_gaussian.md
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache, partial
from threading import Lock
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from sfumato.core.exact import Exact, natural, positive
from sfumato.core.extras import need
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.learning import device_kernels
from sfumato.learning.device_noise import shared_noise
from sfumato.learning.rounding_error import FARTHEST, WIDTH
from sfumato.noise.fine import fine_gaussian
from sfumato.noise.fine_loops import IntArray, many_drawn
from sfumato.noise.words import SystemWords, Words

__all__ = ["NoisyLattice"]

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
_FLOATS = (torch.float32, torch.float64)
_BLOCK = 1 << 17  # numbers whose noise is drawn at once
_MANY = 1 << 20  # numbers from which a second thread pays
_EXTREME = 2**500  # pitches beyond it, or below its inverse, have no room among floats


class NoisyLattice:
    """A lattice of ``size`` numbers with pitch g: sums are rounded to it and get the noise of N(0, (2^20·g)²).

    Guarantee: what is released is k + z in steps of g; z is independent of everything and each of its numbers is
    exactly the whole number nearest to N(0, (2^20)²), and the whole numbers k lie within ROUNDING of total/g in every
    place, where that is held to ±2^46 and a value that is not a number counts as 0. So two sums at distance m in l2
    norm are released with the guarantee of the continuous Gaussian at distance m + 2·ROUNDING·√size·g
    (:func:`rounded_l2`). Assumes: float64 arithmetic follows IEEE 754, or flushes what is below 2^−1022 to 0; what
    SystemWords assumes, and DeviceWords for tensors that are not on the CPU.
    Public: pitch and size. Sensitive: the sum. Drawn noise is used once, never stored, and cannot be pickled.

    With ``ahead`` the noise of the next release is drawn in a thread of its own as soon as one is made.

    >>> lattice = NoisyLattice(pitch=Fraction(1, 2**20), size=3)
    >>> lattice.sigma
    Fraction(1, 1)
    >>> lattice.release(torch.zeros(3, dtype=torch.float64)).shape
    torch.Size([3])
    """

    def __init__(self, *, pitch: Exact, size: int, ahead: bool = False, words: Words | None = None) -> None:
        self.pitch, self.size = positive(pitch, "pitch"), natural(size, "size")
        if not Fraction(1, _EXTREME) < self.pitch < _EXTREME:
            raise InvalidInput(
                "the pitch lies beyond what floats can hold; nothing was done. Scale the loss or the clip."
            )
        self._words = words
        self._ahead = _Ahead(partial(self._drawn, self.size)) if ahead else None
        self._noise: IntArray | None = None  # kept as memory alone: what was drawn is overwritten when it is used
        self._alone = Lock()  # two threads that release at once must not share that memory

    @property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise, before it is rounded."""
        return self.pitch * WIDTH

    def release(self, total: Tensor, *, out: Tensor | None = None, noise: Tensor | None = None) -> Tensor:
        """Round a flat sum, add noise, and return it as float64 on the device of the sum.

        ``out`` is a float tensor to write to, which may be ``total`` itself: fresh memory is slow. What is written to
        it is rounded to its precision after the noise. ``noise`` was drawn beforehand, on the device of the sum, for
        this release alone (:class:`~sfumato.learning.device_ahead.DeviceAhead`).
        """
        if total.shape != (self.size,):
            raise InvalidInput(f"this lattice has {self.size} numbers in one row; nothing was released.")
        per_step, step = float(1 / self.pitch), float(self.pitch)
        total = total.detach()
        total = total if total.dtype in _FLOATS else total.to(torch.float64)
        if out is None and total.device.type != "cpu":
            return self._on_device(total, per_step, step, noise)
        if out is None:
            out = torch.empty_like(total, dtype=torch.float64, memory_format=torch.contiguous_format)
        elif (out.shape, out.device) != (total.shape, total.device) or out.requires_grad or out.dtype not in _FLOATS:
            raise InvalidInput("out must be a tensor of floats beside the sum and as long; nothing was released.")
        if total.device.type != "cpu":
            return out.copy_(self._on_device(total, per_step, step, noise))
        exact, told = total.contiguous().numpy(), out.numpy()
        same = exact.ctypes.data == told.ctypes.data and exact.dtype == told.dtype
        add = _rounded(same=same) if many_drawn() else _round_and_add_arrays
        with self._alone:
            whole = self._ahead is not None or self.size >= _MANY
            for at in (slice(first, first + (self.size if whole else _BLOCK)) for first in self._firsts(whole=whole)):
                used, self._noise = self._noise, None  # whatever raises below, no memory is handed on twice
                drawn = self._ahead.next(used) if self._ahead else self._drawn(len(exact[at]), used)
                add(exact[at], drawn[: len(exact[at])], per_step, step, float(FARTHEST), told[at])
                self._noise = drawn
        return out

    def _firsts(self, *, whole: bool) -> range:
        """Where the blocks begin whose noise is drawn at once: few numbers at a time stay in the processor's cache."""
        return range(0, self.size, self.size if whole else _BLOCK)

    def close(self) -> None:
        """End the thread; what it has drawn is forgotten."""
        if self._ahead:
            self._ahead.close()

    def __enter__(self) -> "NoisyLattice":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("noise is not stored or copied: a lattice cannot be. Make a new one with the same pitch.")

    def _drawn(self, size: int, used: IntArray | None) -> IntArray:
        """This many numbers, in memory that was used before if there is any of that length or more."""
        out = np.empty(size, dtype=np.int64) if used is None or used.size < size else used
        alone = size < _MANY or not isinstance(self._words, SystemWords | None)
        fine_gaussian(size, self._words, threads=1 if alone else min(2, os.cpu_count() or 1), out=out[:size])
        return out

    def _on_device(self, total: Tensor, per_step: float, step: float, noise: Tensor | None = None) -> Tensor:
        noise = shared_noise(total.device).draw(self.size) if noise is None else noise
        if not device_kernels.at_hand(total.device):
            return _round_and_add_tensors(total.double(), noise, per_step, step)
        return device_kernels.add_noise(total, noise, per_step, step, float(FARTHEST))


class _Ahead:
    """The next noise, drawn in a thread of its own; a process that was forked off draws its own."""

    _coming: "Future[IntArray]"

    def __init__(self, draw: Callable[[IntArray | None], IntArray]) -> None:
        self._draw = draw
        self._start()

    def next(self, used: IntArray | None) -> IntArray:
        """What was drawn; the following noise is drawn into memory that is no longer used."""
        if self._process != os.getpid():  # the parent uses what was drawn before the fork, and has the thread
            self._start()
        drawn, self._coming = self._coming.result(), self._thread.submit(self._draw, used)
        return drawn

    def close(self) -> None:
        if self._process == os.getpid():
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _start(self) -> None:
        self._process = os.getpid()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="noise")
        self._coming = self._thread.submit(self._draw, None)


@lru_cache(maxsize=2)
def _rounded(*, same: bool = False) -> Callable[..., None]:
    """What rounds and adds; a loop over two arrays that may be one memory is slow, so one over one array is apart."""
    try:
        compiled = need("numba", "pip install 'sfumato[learning]'").njit(cache=True, nogil=True)
    except MissingExtra:
        return _round_and_add_arrays
    loop = compiled(_round_in_place if same else _round_and_add)
    return (lambda total, noise, *rest: loop(total, noise, *rest[:-1])) if same else loop


def _round_and_add(
    total: FloatArray, noise: IntArray, per_step: float, step: float, farthest: float, out: FloatArray
) -> None:
    """Adding and taking off 3·2^51 rounds to the nearest whole number, to the even one of two, below 2^51."""
    big = 6755399441055744.0
    for i in range(out.size):
        q = total[i] * per_step
        q = q if q == q else 0.0
        q = min(max(q, -farthest), farthest)
        out[i] = (((q + big) - big) + np.float64(noise[i])) * step
        noise[i] = 0


def _round_and_add_tensors(total: Tensor, noise: Tensor, per_step: float, step: float) -> Tensor:
    steps = (total * per_step).nan_to_num(nan=0.0).clamp(-FARTHEST, FARTHEST).round()
    return (steps + noise) * step


def _round_in_place(total: FloatArray, noise: IntArray, per_step: float, step: float, farthest: float) -> None:
    """The same, for a sum that is written over; without a look at each number where all of them are near enough."""
    big = 6755399441055744.0
    near = True
    for i in range(total.size):
        near &= abs(total[i] * per_step) <= farthest
    if near:
        for i in range(total.size):
            total[i] = (((total[i] * per_step + big) - big) + np.float64(noise[i])) * step
        noise[:] = 0
        return
    for i in range(total.size):
        q = total[i] * per_step
        q = q if q == q else 0.0
        q = min(max(q, -farthest), farthest)
        total[i] = (((q + big) - big) + np.float64(noise[i])) * step
        noise[i] = 0


def _round_and_add_arrays(
    total: FloatArray, noise: IntArray, per_step: float, step: float, farthest: float, out: FloatArray
) -> None:
    with np.errstate(all="ignore"):
        steps = np.multiply(total, per_step, dtype=np.float64)
    np.nan_to_num(steps, copy=False, nan=0.0, posinf=farthest, neginf=-farthest)
    np.clip(steps, -farthest, farthest, out=steps)
    np.rint(steps, out=steps)
    steps += noise
    steps *= step
    out[:] = steps
    noise.fill(0)
