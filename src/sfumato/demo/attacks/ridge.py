"""The information in a ridge regression: a penalty makes it less, and without noise it stays infinite.

W = A·y + N(0, τ²·I) with A = (XᵀX + λI)⁻¹Xᵀ is what a ridge regression with penalty λ publishes of the outcomes y, with
noise of standard deviation τ. Without noise (τ = 0) whoever knows the other outcomes solves for the missing one, for
each λ and exactly. Claim: S3-12.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, natural, non_negative
from sfumato.demo.attacks.hospital import Register
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = [
    "RidgeInformation",
    "RidgePenalty",
    "demonstrate_ridge",
    "design_matrix",
    "ridge_information",
    "ridge_weights",
    "solve_for_outcome",
]

PEOPLE = 200
PENALTIES = (Fraction(1), Fraction(10), Fraction(100), Fraction(1000), Fraction(10**4), Fraction(10**5))
NOISES = (Fraction(1, 100), Fraction(1, 10), Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgePenalty:
    """What a penalty leaves: the information for each τ, in nats, and what an attacker solves for without noise."""

    penalty: Fraction
    information: tuple[float, ...]
    without_noise: float
    solved: float
    """The outcome of one patient, solved for from weights without noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeInformation:
    """What was found. Public: an experiment on invented people. ``true`` is the outcome that was to stay secret."""

    people: int
    noises: tuple[Fraction, ...]
    penalties: tuple[RidgePenalty, ...]
    patient: str
    true: float

    @property
    def worst(self) -> float:
        """The largest error of the attacker over all penalties."""
        return max(abs(each.solved - self.true) for each in self.penalties)


def ridge_weights(x: "Floats", y: "Floats", *, penalty: Exact) -> "Floats":
    """(XᵀX + λI)⁻¹Xᵀy, without noise.

    >>> import numpy as np
    >>> ridge_weights(np.eye(2), np.array([3.0, 5.0]), penalty=1).tolist()
    [1.5, 2.5]
    """
    import numpy as np

    return np.asarray(_linear(x, penalty) @ y)


def ridge_information(x: "Floats", *, penalty: Exact, noise: Exact, covariance: "Floats | float" = 1.0) -> float:
    """The mutual information of W and the outcomes in nats: ½·ln det(I + A·Σ·Aᵀ/τ²); infinite at τ = 0.

    ``penalty`` is λ, ``noise`` is τ, and ``covariance`` is Σ: a matrix, or one variance for all outcomes.

    Guarantee: it falls in λ and in τ. With λ₂ > λ₁ the weights are those of λ₁ multiplied by a matrix that shortens
    every vector. Assumes: X is public and fixed, and y is Gaussian with covariance Σ. It is a mean over such y and
    bounds nobody's privacy loss: that takes a sensitivity and a mechanism.

    >>> import numpy as np
    >>> round(ridge_information(np.eye(2), penalty=1, noise="1/2"), 6) == round(math.log(2), 6)
    True
    >>> ridge_information(np.eye(2), penalty=10**6, noise=0)
    inf
    """
    import numpy as np

    tau = float(non_negative(noise, "noise"))
    linear = _linear(x, penalty)
    full = np.asarray(covariance, dtype=np.float64)
    if full.ndim not in (0, 2) or (full.ndim == 2 and full.shape != (len(x), len(x))):
        raise InvalidInput("covariance is one variance or a matrix with a row for each outcome; nothing was computed.")
    spread = linear @ linear.T * full if full.ndim == 0 else linear @ full @ linear.T
    sizes = np.clip(np.linalg.eigvalsh((spread + spread.T) / 2), 0.0, None)
    if not np.isfinite(sizes).all():
        raise InvalidInput("these numbers are too large to compute with, or not finite; nothing was computed.")
    if tau == 0:
        return math.inf if sizes.max() > 0 else 0.0
    return float(0.5 * np.log1p(sizes / tau / tau).sum())


def solve_for_outcome(x: "Floats", others: "Floats", weights: "Floats", *, penalty: Exact, place: int) -> float:
    """The outcome at ``place`` that fits published weights best, given everybody else's; exact where τ = 0.

    Assumes: the attacker knows X and all other outcomes; what ``others`` holds at ``place`` is not used.

    >>> import numpy as np
    >>> x, y = np.array([[1.0], [2.0], [3.0]]), np.array([4.0, 5.0, 6.0])
    >>> round(solve_for_outcome(x, y * [1, 0, 1], ridge_weights(x, y, penalty=9), penalty=9, place=1), 9)
    5.0
    """
    import numpy as np

    linear = _linear(x, penalty)
    known = np.where(np.arange(len(others)) == place, 0.0, others)
    column = linear[:, place]
    if not (column**2).sum() > 0:
        raise InvalidInput("the weights do not depend on this outcome, so it cannot be solved for; nothing was done.")
    return float(column @ (weights - linear @ known) / (column @ column))


def design_matrix(people: Register) -> "Floats":
    """A column of ones, age in decades from 50, and sex."""
    import numpy as np

    return np.column_stack([np.ones(len(people)), (people.age - 50) / 10, people.sex]).astype(np.float64)


def demonstrate_ridge(hospital: Register, *, people: int = PEOPLE) -> RidgeInformation:
    """Regress blood pressure on age and sex with ever larger penalties; measure the information, and solve for one."""
    import numpy as np

    natural(people, "people", least=4)
    measured = (~np.isnan(hospital.pressure)).nonzero()[0]
    if len(measured) < people:
        raise InvalidInput("this hospital has fewer patients than are asked for; nothing was computed.")
    some = hospital.some(measured[:people])
    x, y = design_matrix(some), some.pressure
    variance = float(y.var())
    found = []
    for penalty in PENALTIES:
        weights = ridge_weights(x, y, penalty=penalty)
        found.append(
            RidgePenalty(
                penalty=penalty,
                information=tuple(
                    ridge_information(x, penalty=penalty, noise=noise, covariance=variance) for noise in NOISES
                ),
                without_noise=ridge_information(x, penalty=penalty, noise=0, covariance=variance),
                solved=solve_for_outcome(x, y, weights, penalty=penalty, place=0),
            )
        )
    return RidgeInformation(
        people=people, noises=NOISES, penalties=tuple(found), patient=some.names[0], true=float(y[0])
    )


def _linear(x: "Floats", penalty: Exact) -> "Floats":
    """A = (XᵀX + λI)⁻¹Xᵀ."""
    import numpy as np

    held = np.asarray(x, dtype=np.float64)
    if held.ndim != 2 or not np.isfinite(held).all():
        raise InvalidInput("X is a finite matrix with a row for each outcome; nothing was computed.")
    size = float(non_negative(penalty, "penalty"))
    gram = held.T @ held + size * np.eye(held.shape[1])
    if np.linalg.matrix_rank(gram) < len(gram):
        raise InvalidInput("without a penalty the columns of X must not depend on each other; nothing was computed.")
    return np.asarray(np.linalg.solve(gram, held.T))
