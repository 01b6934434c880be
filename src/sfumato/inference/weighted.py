"""Weighted means of releases, with public weights."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.core.exact import Exact, non_negative
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.cut_alike import check_cut_alike
from sfumato.inference.figure import Figure, figure

__all__ = ["weighted_mean"]


def weighted_mean(parts: Sequence[Release | Figure], weights: Sequence[Exact]) -> Figure:
    """Σ w·x / Σ w for figures about the same things.

    Guarantee: costs nothing. Assumes: the weights are public and were not chosen after a look at the data.
    """
    shares = [non_negative(weight, "weight") for weight in weights]
    total = sum(shares, Fraction(0))
    if len(shares) != len(parts) or total == 0:
        raise InvalidInput("a weighted mean needs one weight for each figure, and not all of them 0.")
    check_cut_alike([source for part in parts for source in figure(part).sources], "their mean")
    mean = figure(parts[0]) * (shares[0] / total)
    for part, share in zip(parts[1:], shares[1:], strict=True):
        mean = mean + figure(part) * (share / total)
    return mean
