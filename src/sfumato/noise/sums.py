"""Adding noise to whole numbers without wrapping around at 64 bits."""

from collections.abc import Sequence
from operator import index

import numpy as np

from sfumato.noise.sampler import AnyIntArray

__all__ = ["LARGEST", "all_whole", "saturating_sum", "wide"]

LARGEST = 2**63 - 1
_PLAIN = {int}


def all_whole(exact: Sequence[object]) -> bool:
    """Whether all are whole numbers of Python; truth values are none. Only types are looked at.

    >>> all_whole([1, 2]), all_whole([1, True]), all_whole([0.5])
    (True, False, False)
    """
    return set(map(type, exact)) <= _PLAIN or all(
        isinstance(value, int) and not isinstance(value, bool) for value in exact
    )


def saturating_sum(exact: Sequence[int], noise: AnyIntArray) -> tuple[int, ...]:
    """Add noise to each number; a sum beyond ±(2^63 − 1) is held there.

    Sensitive: ``exact`` and ``noise``, which stay in arrays where both fit 64 bits: the time that Python takes to
    compare small whole numbers tells them from large ones. The sums are the release.

    >>> saturating_sum([1, LARGEST], np.array([2, 2]))
    (3, 9223372036854775807)
    """
    exact = list(map(index, exact))  # a fraction would be cut off, and charged as if it were not
    numbers = _of_64_bits(exact) if noise.dtype == np.int64 else None
    if numbers is not None:
        sums = numbers + noise
        over = ((numbers ^ sums) & (noise ^ sums)) < 0  # both have the other sign than their sum
        sums = np.where(over, np.where(noise < 0, -LARGEST, LARGEST), sums)
        return tuple(np.maximum(sums, -LARGEST).tolist())
    whole = (value + draw for value, draw in zip(exact, noise.tolist(), strict=True))
    return tuple(max(-LARGEST, min(LARGEST, value)) for value in whole)


def _of_64_bits(exact: list[int]) -> AnyIntArray | None:
    """The same numbers in an array; None where one is beyond ±(2^63 − 1)."""
    try:
        numbers = np.array(exact, dtype=np.int64)
    except OverflowError:
        return None
    return None if (numbers == -LARGEST - 1).any() else numbers


def wide(draws: AnyIntArray, room: int) -> AnyIntArray:
    """The same numbers as Python's own where the sum of ``room`` of them might not fit 64 bits.

    >>> wide(np.array([2**62]), 4).sum() * 4, wide(np.array([5]), 4).dtype
    (18446744073709551616, dtype('int64'))
    """
    if draws.dtype == np.int64 and draws.size and max(int(draws.max()), -int(draws.min())) > 2**62 // room:
        return draws.astype(object)
    return draws
