"""How far rounding can drive two neighbours' sums apart: that of a machine's sums, and that to a lattice.

No torch is needed to know it. Proof: docs/proofs/fine_gaussian.md
"""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.errors import Refused

__all__ = ["FARTHEST", "ROUNDING", "SLACK", "WIDTH", "rounded_l2"]

SLACK = Fraction(1, 128)
"""Two sums of clipped gradients on a machine differ by at most this part of the clip more than the exact ones do: half
of it for each."""

WIDTH = 2**20
"""The standard deviation of the noise, in steps of the lattice."""

FARTHEST = 2**46
"""Sums are held to this many steps on either side of 0 before they are rounded."""

ROUNDING = Fraction(17, 32)
"""What is rounded lies within this many steps of the exact quotient: half a step, and the floats' 2^46 · 2^−52 and a
little."""


def rounded_l2(moved: Exact, *, dimension: int, multiplier: Exact) -> Fraction:
    """The Δ by which rounded sums of ``dimension`` numbers differ at most, where the noise is σ = multiplier · Δ.

    Sums that differ by ``moved`` in l2 norm differ by at most moved + 2·ROUNDING·√d·g once each is rounded to a lattice
    of pitch g, and g = σ/2^20 depends on Δ itself: Δ = moved / (1 − 2·ROUNDING·√d·multiplier/2^20), rounded up.
    Refused where √d · multiplier reaches 2^18: there, rounding would cost more than a third of the noise.

    >>> float(rounded_l2(1, dimension=203_530, multiplier="1/2"))
    1.000228...
    """
    moved, multiplier = non_negative(moved, "moved"), positive(multiplier, "multiplier")
    root = enclosures.sqrt(Fraction(natural(dimension, "dimension"))).high
    if root * multiplier >= 2**18:
        raise Refused(
            f"noise of {float(multiplier):.3g} times the sensitivity on {dimension:,} numbers leaves no room for "
            "rounding; nothing was read and nothing was spent. Ask for more ε, sample less, or train fewer parameters."
        )
    return moved / (1 - 2 * ROUNDING * root * multiplier / WIDTH)
