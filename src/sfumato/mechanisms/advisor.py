"""Which noise is smaller for this answer: Laplace, Gaussian, or another that is added to each number."""

from collections.abc import Sequence

from sfumato.core.exact import Exact
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import WrongNorm
from sfumato.mechanisms.added_noise import AddedNoise
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace

__all__ = ["least_noise"]


def least_noise(
    moved: Sensitivity, *, epsilon: Exact, delta: Exact, among: Sequence[type[AddedNoise]] = (Laplace, Gaussian)
) -> AddedNoise:
    """The mechanism with the lowest variance for each number, of those that (ε, δ) allows; the first of equals.

    Guarantee: (ε, δ) for answers that one unit moves by at most ``moved``; the choice looks at public facts alone.

    >>> least_noise(Sensitivity.of(l1=8, l2_squared=8), epsilon=1, delta="1/1000000").KIND
    'mechanism.laplace'
    >>> least_noise(Sensitivity.of(l1=9, l2_squared=9), epsilon=1, delta="1/1000000").KIND
    'mechanism.gaussian'
    """
    offered = [one for kind in among if (one := kind.least(moved, epsilon=epsilon, delta=delta)) is not None]
    if not offered:
        raise WrongNorm("with this δ and these norms neither Laplace (l1) nor Gaussian (l2, δ > 0) can run.")
    return offered[0] if len(offered) == 1 else min(offered, key=lambda one: one.law.variance)
