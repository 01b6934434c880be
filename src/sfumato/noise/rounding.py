"""The Gaussian distribution rounded to whole numbers, sampled exactly.

The size of N(0, σ²) is drawn as a half-step y = ⌊2|N|⌋ and a place f in it. A half-step is proposed in proportion to
the density at its lower edge, and (y, f) is accepted with the ratio of the densities at y + f and at y; so y + f has
exactly the density wanted, and only y is kept. Half-way points are edges of half-steps: y alone decides the rounding.
Proof: docs/proofs/gaussian.md
"""

from fractions import Fraction

import numpy as np

from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.noise.columns import ColumnLaw
from sfumato.noise.sampler import COLUMNS, LARGEST_SHIFT, REACH, WINDOW, BoolArray, IntArray, sampler
from sfumato.noise.uniform import SPARE, Uniform, fixed_exp
from sfumato.noise.words import SystemWords, WordArray, Words

__all__ = ["rounded_gaussian", "sample_rounded_gaussian"]

LARGEST_X = 4.0  # beyond it, the exact comparison decides
_TAYLOR = [1 / 40320, -1 / 5040, 1 / 720, -1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0]


def rounded_gaussian(*, sigma: Exact, size: int) -> IntArray:
    """Draw ``size`` independent samples of the nearest whole number to N(0, σ²).

    Guarantee: exact for every rational σ below 2^50. Assumes: what SystemWords assumes.

    >>> len(rounded_gaussian(sigma=10, size=5))
    5
    """
    return sample_rounded_gaussian(positive(sigma, "sigma"), natural(size, "size", least=0), SystemWords())


def sample_rounded_gaussian(sigma: Fraction, size: int, words: Words) -> IntArray:
    """Draw from a given source."""
    law = ColumnLaw(linear=Fraction(0), quadratic=1 / (8 * sigma**2), two_sided=False)
    if law.exponent(COLUMNS << LARGEST_SHIFT) < REACH or sigma >= 2**50:
        raise InvalidInput("sigma must be below 2^50 lattice steps; nothing was drawn. Use a coarser lattice.")
    out = np.empty(size, dtype=np.int64)
    open_places = np.arange(size)
    while open_places.size:
        steps = sampler(law).draw(open_places.size, words)
        inside, place = (np.empty(open_places.size, dtype=np.uint64) for _ in range(2))
        words.fill(inside)
        words.fill(place)
        accepted = _accepted(steps, inside, place, law.quadratic, words)
        signs = np.empty(open_places.size, dtype=np.uint64)
        words.fill(signs)
        sizes = (steps + 1) >> 1
        draws = np.where(signs & np.uint64(1), -sizes, sizes)
        out[open_places[accepted]] = draws[accepted]
        open_places = open_places[~accepted]
    return out


def _accepted(steps: IntArray, inside: WordArray, place: WordArray, rate: Fraction, words: Words) -> BoolArray:
    """Accept where the uniform number at ``place`` is below exp(−x), x = rate·f·(2y + f), f the one at ``inside``.

    Floats decide only where they are further apart than WINDOW, 2^8 times their error; else both get more bits.
    """
    width = words.width
    coarse = max(width - 48, 0)
    unit = 2.0 ** (coarse - width)
    f = (inside >> np.uint64(coarse)).astype(np.float64) * unit
    u = (place >> np.uint64(coarse)).astype(np.float64) * unit
    x = float(rate) * f * (2 * steps.astype(np.float64) + f)
    accept = _exp(np.minimum(x, LARGEST_X))
    # f is known to one unit below it: x, and so exp(−x), moves by less than the slope times that.
    blur = np.float64(unit) * float(rate) * 2 * (steps.astype(np.float64) + 1) + WINDOW
    yes = u + unit <= accept - blur
    no = u >= accept + blur
    for i in (~(yes | no) | (x > LARGEST_X)).nonzero()[0]:
        yes[i] = _below(int(steps[i]), int(inside[i]), int(place[i]), rate, words)
    return yes


def _below(step: int, inside: int, place: int, rate: Fraction, words: Words) -> bool:
    """The same question in whole numbers: refine both numbers until their intervals leave no doubt."""
    f = Uniform(words, prefix=inside, bits=words.width)
    u = Uniform(words, prefix=place, bits=words.width)
    while True:
        nearest, farthest = (Fraction(f.prefix + more, 1 << f.bits) for more in (0, 1))
        precision = u.bits + SPARE
        low = fixed_exp(rate * farthest * (2 * step + farthest), precision)[0]
        high = fixed_exp(rate * nearest * (2 * step + nearest), precision)[1]
        if (u.prefix + 1) << SPARE <= low:
            return True
        if u.prefix << SPARE >= high:
            return False
        f.refine()
        u.refine()


def _exp(x: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """exp(−x) for x from 0 to 4 within 2^−32: Taylor to degree 8 at x/16, then squared four times."""
    near = x / 16
    value = np.full_like(near, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        value *= near
        value += coefficient
    for _ in range(4):
        value *= value
    return value
