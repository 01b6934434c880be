"""Bounds that a mechanism cannot do without."""

from fractions import Fraction
from typing import TypeVar

from sfumato.core.exact import natural
from sfumato.core.sensitivity import L0, L1, L2, LInf, Sensitivity
from sfumato.errors import WrongNorm

__all__ = ["known", "largest_move"]

Bound = TypeVar("Bound", L0, L1, L2, LInf)


def known(bound: Bound | None, norm: str) -> Bound:
    """A bound that must be there; another norm is never read in its place.

    >>> known(L1(Fraction(2)), "l1")
    L1(value=Fraction(2, 1))
    """
    if bound is None:
        raise WrongNorm(f"the {norm} bound is needed here and this sensitivity has none; nothing was done.")
    return bound


def largest_move(moved: Sensitivity | int) -> Fraction:
    """How far each number of an answer moves at most: a whole number given as such, or the linf bound.

    >>> largest_move(2), largest_move(Sensitivity.of(linf=2))
    (Fraction(2, 1), Fraction(2, 1))
    """
    if isinstance(moved, Sensitivity):
        return known(moved.linf, "linf").value
    return Fraction(natural(moved, "sensitivity", least=0))
