"""Which noise is smaller for this answer: Laplace or Gaussian."""

from sfumato.core.exact import Exact, non_negative
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import WrongNorm
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace

__all__ = ["least_noise"]


def least_noise(moved: Sensitivity, *, epsilon: Exact, delta: Exact) -> Laplace | Gaussian:
    """The mechanism with the lower variance for each number, of those that (ε, δ) allows; with δ = 0 always Laplace.

    Guarantee: (ε, δ) for answers that one unit moves by at most ``moved``; the choice looks at public facts alone.

    >>> least_noise(Sensitivity.of(l1=8, l2_squared=8), epsilon=1, delta="1/1000000").KIND
    'mechanism.laplace'
    >>> least_noise(Sensitivity.of(l1=9, l2_squared=9), epsilon=1, delta="1/1000000").KIND
    'mechanism.gaussian'
    """
    pure = None if moved.l1 is None else Laplace.calibrated(l1=moved.l1, epsilon=epsilon)
    if non_negative(delta, "delta") == 0 or moved.l2 is None:
        if pure is None:
            raise WrongNorm("with this δ and these norms neither Laplace (l1) nor Gaussian (l2, δ > 0) can run.")
        return pure
    spread = Gaussian.calibrated(l2=moved.l2, epsilon=epsilon, delta=delta)
    return spread if pure is None or spread.law.variance < pure.law.variance else pure
