"""Where accounting leaves the rationals: what it assumes about floats, by name and with the reason, and how it rounds.

Every other float step of the accountants is IEEE arithmetic, whose rounding is bounded by ``UNIT``. Each assumption is
measured by tests/accounting/test_float_assumptions.py; what follows from them is in docs/proofs/pld.md.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from sfumato.accounting.elementary import ELEMENTARY, UNIT
from sfumato.errors import InvalidInput

__all__ = [
    "DEEPEST",
    "ELEMENTARY",
    "NORMAL",
    "NUDGE",
    "PASSES",
    "TINY",
    "TWIDDLE",
    "UNIT",
    "Array",
    "float_down",
    "float_up",
    "normal_down",
    "normal_up",
    "transform_error",
]

Array = npt.NDArray[np.float64]

TINY = 2.0**-40
"""Relative: 1024 times what exp, expm1 or log may be off."""
NUDGE = 2.0**-46
"""In ε, relative to 1 + |ε|: 16 times that, for sums and products of a few floats."""

DEEPEST = 30.0
NORMAL = 2.0**-40
"""Assumed: the relative error of SciPy's ``ndtr`` from −DEEPEST on. It takes e^(−x²/2) of a rounded x², which costs
about 1.6·x² units, so that a constant can hold only down to some depth; Φ(−30) < 5e-198 is deep enough."""

TWIDDLE = 9 * UNIT
"""Assumed: how far the roots of unity that ``scipy.fft`` stores may lie from the true ones. It multiplies two table
entries, each a rounded angle within an octant (π/2 units), a sine and a cosine (√2 units, if each is within one unit in
the last place); the product adds √5: π + 2√2 + √5 < 9."""

PASSES = 8.0
"""Proven from ``TWIDDLE`` for powers of two from 2^5 on: one transform errs by at most this many units for each of its
log2(size) levels, in the 2-norm and relative to its result. docs/proofs/pld.md, "One transform"."""


def transform_error(size: int) -> float:
    """A bound on ‖computed − true‖₂/‖true‖₂ for one ``rfft`` or ``irfft`` of real length ``size``.

    >>> transform_error(1 << 15) == 8 * 15 * 2**-53
    True
    """
    levels = size.bit_length() - 1
    if levels < 5 or size != 1 << levels:
        raise InvalidInput(f"the error of a transform is proven for powers of two from 32 on, and {size} is not one.")
    return PASSES * UNIT * levels


def normal_up(x: Array) -> Array:
    """An upper bound of Φ(x); below the depth to which ``ndtr`` is trusted it is the value there.

    >>> normal_up(np.array([0.0, -1000.0])).round(4), bool(normal_up(np.array([-1000.0]))[0] > 0)
    (array([0.5, 0. ]), True)
    """
    found: Array = ndtr(np.maximum(x, -DEEPEST)) * (1 + 2 * NORMAL)
    return found


def normal_down(x: Array) -> Array:
    """A lower bound of Φ(x); 0 below the depth to which ``ndtr`` is trusted.

    >>> normal_down(np.array([0.0, -1000.0])).round(4)
    array([0.5, 0. ])
    """
    return np.where(x < -DEEPEST, 0.0, ndtr(x) * (1 - 2 * NORMAL))


def float_up(value: Fraction) -> float:
    """The least float that is not below.

    >>> float_up(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above.

    >>> float_down(Fraction(1, 10**400))
    0.0
    """
    return -float_up(-value)
