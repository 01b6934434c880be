"""How much Gaussian noise: the exact calibration at every ε, and the classical formula where it is a theorem.

Both speak of continuous noise. The discrete Gaussian that runs needs a little more: its own loss is in
:mod:`sfumato.accounting.pld`.
"""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, positive, probability
from sfumato.core.guarantees import GDP
from sfumato.errors import InvalidInput, Refused

__all__ = ["classical_sigma", "gaussian_delta", "gaussian_sigma"]


def gaussian_delta(*, l2: Exact, sigma: Exact, epsilon: Exact) -> Fraction:
    """Φ(Δ/(2σ) − εσ/Δ) − e^ε Φ(−Δ/(2σ) − εσ/Δ), rounded up.

    Guarantee: the least δ that goes with ε for N(0, σ²) noise on a vector that one unit moves by at most Δ in l2.

    >>> float(round(gaussian_delta(l2=1, sigma="3.7306", epsilon=1), 7))
    1e-05
    """
    return GDP(mu=positive(l2, "l2") / positive(sigma, "sigma")).delta_at(epsilon)


def gaussian_sigma(*, l2: Exact, epsilon: Exact, delta: Exact) -> Fraction:
    """The least σ for (ε, δ), to nine digits and rounded up; at every ε > 0.

    Guarantee: N(0, σ²) noise on a vector that one unit moves by at most Δ in l2 is (ε, δ)-DP.

    >>> [float(round(gaussian_sigma(l2=1, epsilon=e, delta=d), 4)) for e, d in ((1, 1e-5), (3, 1e-6), (10, 1e-5))]
    [3.7306, 1.5439, 0.4999]
    """
    moved, asked, room = positive(l2, "l2"), positive(epsilon, "epsilon"), _room(delta)
    low, high = Fraction(0), Fraction(1)
    while GDP(mu=high).delta_at(asked) <= room:
        low, high = high, 2 * high
    while low == 0 or high - low > high / 2**31:
        middle = (low + high) / 2
        low, high = (middle, high) if GDP(mu=middle).delta_at(asked) <= room else (low, middle)
    return moved / low


def classical_sigma(*, l2: Exact, epsilon: Exact, delta: Exact) -> Fraction:
    """Δ√(2 ln(1.25/δ))/ε, rounded up: for teaching, and for ε < 1 alone.

    Guarantee: sufficient for (ε, δ) where 0 < ε < 1, with up to 58% more noise than needed. Beyond that it is refused:
    there is no proof, and from ε = 8.42 on (δ = 1e-5) it is false.

    >>> float(round(classical_sigma(l2=1, epsilon=0.5, delta=1e-5), 4))
    9.6896
    """
    moved, asked, room = positive(l2, "l2"), positive(epsilon, "epsilon"), _room(delta)
    if asked >= 1:
        raise Refused(
            f"the classical formula is proven for ε < 1 only, and ε = {asked} was asked for; no σ was given. "
            "Use gaussian_sigma: it is exact at every ε and needs less noise."
        )
    return moved * enclosures.sqrt(2 * enclosures.log(Fraction(5, 4) / room).high).high / asked


def _room(delta: Exact) -> Fraction:
    room = positive(probability(delta, "delta"), "delta")
    if room == 1:
        raise InvalidInput("delta = 1 promises nothing; no σ was given. Give a delta below 1.")
    return room
