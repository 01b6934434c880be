"""How much Gaussian noise: the exact calibration at every ε, and the classical formula where it is a theorem.

Both speak of continuous noise. The discrete Gaussian that runs needs a little more: its own loss is in
:mod:`sfumato.accounting.pld`.
"""

from fractions import Fraction

from sfumato.core.exact import Exact, positive
from sfumato.core.guarantees import GDP
from sfumato.core.noise_multiplier import classical_multiplier, exact_multiplier

__all__ = ["classical_sigma", "gaussian_delta", "gaussian_sigma"]


def gaussian_delta(*, l2: Exact, sigma: Exact, epsilon: Exact) -> Fraction:
    """Φ(Δ/(2σ) − εσ/Δ) − e^ε Φ(−Δ/(2σ) − εσ/Δ), rounded up.

    Guarantee: the least δ that goes with ε for N(0, σ²) noise on a vector that one unit moves by at most Δ in l2.

    >>> float(round(gaussian_delta(l2=1, sigma="3.7306", epsilon=1), 7))
    1e-05
    """
    return GDP(mu=positive(l2, "l2") / positive(sigma, "sigma")).delta_at(epsilon)


def gaussian_sigma(*, l2: Exact, epsilon: Exact, delta: Exact) -> Fraction:
    """The least σ for (ε, δ), to ten digits and rounded up; at every ε > 0.

    Guarantee: N(0, σ²) noise on a vector that one unit moves by at most Δ in l2 is (ε, δ)-DP.

    >>> [float(round(gaussian_sigma(l2=1, epsilon=e, delta=d), 4)) for e, d in ((1, 1e-5), (3, 1e-6), (10, 1e-5))]
    [3.7306, 1.5439, 0.4999]
    """
    return positive(l2, "l2") * exact_multiplier(epsilon=epsilon, delta=delta)


def classical_sigma(*, l2: Exact, epsilon: Exact, delta: Exact) -> Fraction:
    """Δ√(2 ln(1.25/δ))/ε, rounded up: for teaching, and for ε < 1 alone.

    Guarantee: enough for (ε, δ) where 0 < ε < 1, with up to 58% more noise than needed. Refused beyond.

    >>> float(round(classical_sigma(l2=1, epsilon=0.5, delta=1e-5), 4))
    9.6896
    """
    return positive(l2, "l2") * classical_multiplier(epsilon=epsilon, delta=delta)
