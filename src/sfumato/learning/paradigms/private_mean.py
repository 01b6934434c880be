"""A private mean gradient from one clipped sum, with the noise of training; for updates that are made by hand."""

from fractions import Fraction

import torch
from torch import Tensor

from sfumato.core.events import Gaussian
from sfumato.core.exact import Exact, natural, positive
from sfumato.learning.engine import SLACK, ClippedSum
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.rounding_slack import WIDTH, rounded_l2
from sfumato.noise import Words

__all__ = ["private_mean", "private_mean_event"]


def private_mean(
    made: ClippedSum, *, moved: Exact, multiplier: Exact, over: int, words: Words | None = None
) -> dict[str, Tensor]:
    """The sum with Gaussian noise of ``multiplier`` times as far as one unit moves it, over a fixed public number.

    Guarantee: the event :func:`private_mean_event`; rounding and the slack of the engine are covered. Assumes: one unit
    moves the exact sum by at most ``moved``; ``over`` is no count of the data. Nothing is charged here: charge the
    event before the data is read. Sensitive: ``made``; public: the result. Proof: docs/proofs/paradigms.md
    """
    size, times = made.flat.numel(), positive(multiplier, "multiplier")
    reach = rounded_l2(positive(moved, "moved") * (1 + SLACK), dimension=size, multiplier=times)
    with NoisyLattice(pitch=times * reach / WIDTH, size=size, words=words) as lattice:
        noisy = lattice.release(made.flat) / natural(over, "over")
    parts = torch.split(noisy, [one.numel() for one in made.sums.values()])
    return {name: part.view(one.shape) for (name, one), part in zip(made.sums.items(), parts, strict=True)}


def private_mean_event(multiplier: Exact) -> Gaussian:
    """What one private mean costs, for an accountant.

    >>> private_mean_event(2).sigma_squared
    Fraction(4, 1)
    """
    return Gaussian(l2_squared=Fraction(1), sigma_squared=positive(multiplier, "multiplier") ** 2)
