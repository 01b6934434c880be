"""How far what a machine sums may lie from the sum of the clipped gradients; torch is not needed to know it."""

from fractions import Fraction

__all__ = ["SLACK"]

SLACK = Fraction(1, 128)
"""Two sums of a machine differ by at most this part of the clip more than the exact ones do: half of it for each."""
