"""Whole numbers from real vectors: each person is rounded by itself, and an integer norm is enforced afterwards.

Rounding lengthens vectors: in 100,000 dimensions to the nearest number by 31%, at random by 5%. So the norm that is
charged is that of the integers, whatever rounding did. Proof: docs/proofs/skellam.md
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.core.exact import natural, positive
from sfumato.errors import InvalidInput
from sfumato.noise.words import SystemWords

__all__ = ["PersonRounding"]

Reals = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Wholes = np.ndarray[tuple[int, int], np.dtype[np.int64]]

_LARGEST = 1 << 26  # steps in a norm
_ROOM = 1 << 62  # squares of one person's coordinates add up below this, before they are shortened
_REASON = Fraction(2) ** 300  # norms and steps within this and its inverse are floats with all their digits


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRounding:
    """Vectors of norm at most ``norm`` in steps of ``unit``; integers of norm at most slack·norm/unit.

    Guarantee: each person's integers have squares that add up to at most :attr:`l2_squared`, exactly, and absolute
    values that add up to at most :attr:`l1`. What is lost by shortening is a bias, of few vectors where the slack
    leaves room for rounding.

    >>> rule = PersonRounding(dimensions=4, norm=1, unit="1/10")
    >>> rule.l2_squared, rule.l1
    (110, 20)
    """

    dimensions: int
    norm: Fraction
    unit: Fraction
    slack: Fraction = Fraction(21, 20)

    def __post_init__(self) -> None:
        natural(self.dimensions, "dimensions")
        for name in ("norm", "unit", "slack"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        if self.slack < 1:
            raise InvalidInput(f"slack = {self.slack} must be at least 1; nothing was rounded.")
        if self.l2_squared < 1 or self.l2_squared > _LARGEST**2:
            raise InvalidInput(
                f"norm/unit must lie between 1 and {_LARGEST}; nothing was rounded. Choose another unit."
            )
        if not 1 / _REASON <= self.unit <= self.norm * self.slack <= _REASON:
            raise InvalidInput(
                "a norm or unit beyond 2^300, or below its inverse, is not computed with; nothing was done."
            )
        if self.dimensions * self.l2_squared >= _ROOM:
            raise InvalidInput("so long vectors in so small units do not add up in 64 bits; nothing was rounded.")

    @property
    def l2_squared(self) -> int:
        """The most that the squares of one person's integers add up to."""
        return math.floor((self.slack * self.norm / self.unit) ** 2)

    @property
    def l1(self) -> int:
        """The most that the absolute values of one person's integers add up to."""
        return min(self.l2_squared, math.isqrt(self.dimensions * self.l2_squared))

    def whole(self, people: Reals) -> Wholes:
        """Clip, scale, round at random and shorten each row; a row holds one person.

        A row with something that is no finite number counts as zeros.
        """
        if people.ndim != 2 or people.shape[1] != self.dimensions:
            raise InvalidInput(f"rows have {self.dimensions} numbers; nothing was rounded.")
        sound = np.where(np.isfinite(people).all(axis=1, keepdims=True), people, 0.0)
        with np.errstate(over="ignore"):  # a vector too long for a float counts as zeros, a short one is not cut
            size = np.maximum(np.abs(sound).max(axis=1, keepdims=True, initial=0.0), 1e-300)
            length = size * np.sqrt(((sound / size) ** 2).sum(axis=1, keepdims=True))
            scaled = sound * np.minimum(1.0, float(self.norm) / np.maximum(length, 1e-300)) / float(self.unit)
        scaled = np.where(np.isfinite(scaled).all(axis=1, keepdims=True), scaled, 0.0)
        whole = np.floor(np.clip(scaled, -_LARGEST, _LARGEST) + _uniform(people.shape)).astype(np.int64)
        return self.shortened(whole)

    def shortened(self, whole: Wholes) -> Wholes:
        """Rows of integers whose squares add up to more than the bound, cut towards zero until they do not."""
        most = self.l2_squared
        longest = math.isqrt(most)  # no coordinate of a vector within the bound is longer
        out = np.clip(whole, -longest, longest)
        squares = (out * out).sum(axis=1)
        for _ in range(64):
            long = (squares > most).nonzero()[0]
            if not long.size:
                return out
            factor = np.sqrt(most / squares[long])[:, None] * (1 - 2.0**-40)
            out[long] = np.trunc(out[long] * factor).astype(np.int64)
            squares[long] = (out[long] * out[long]).sum(axis=1)
        out[squares > most] = 0
        return out


def _uniform(shape: tuple[int, ...]) -> Reals:
    """Uniform numbers below 1 in steps of 2^−53, from the operating system."""
    words = np.empty(math.prod(shape), dtype=np.uint64)
    SystemWords().fill(words)
    return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape[0], shape[1])
