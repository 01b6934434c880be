"""The noise multiplier σ/Δ of Gaussian noise: exact at every ε, and by the classical formula where it is a theorem.

Both speak of continuous noise N(0, σ²) on a vector that one unit moves by at most Δ in l2. Rounding the noisy numbers
afterwards keeps the guarantee. Proof: docs/proofs/gaussian.md
"""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, positive, probability
from sfumato.core.guarantees import GDP
from sfumato.core.search import least_decimal, over
from sfumato.errors import InvalidInput, Refused

__all__ = ["classical_multiplier", "exact_multiplier"]

DIGITS = 10


def exact_multiplier(*, epsilon: Exact, delta: Exact) -> Fraction:
    """The least σ/Δ for (ε, δ), a decimal of ten digits rounded up; at every ε > 0.

    Guarantee: δ(ε) of μ-GDP, with μ = Δ/σ, was evaluated at the decimal returned, rounded up, and is at most δ.

    >>> [float(exact_multiplier(epsilon=e, delta="1e-5")) for e in (1, 10)]
    [3.730631635, 0.4998886198]
    """
    asked, room = positive(epsilon, "epsilon"), _room(delta)
    if room < GDP(mu=min(asked, Fraction(1)) / 200).delta_at(asked):  # 200 standard deviations out: the δ stated there
        raise Refused("a δ that small is not supported, and no σ was given. Ask for a larger δ.")
    return least_decimal(lambda times: over(GDP(mu=1 / times).delta_at(asked), room), digits=DIGITS)


def classical_multiplier(*, epsilon: Exact, delta: Exact) -> Fraction:
    """√(2 ln(1.25/δ))/ε, rounded up: for teaching, and for ε < 1 alone.

    Guarantee: enough for (ε, δ) where 0 < ε < 1, with up to 58% more noise than needed. Beyond that it is refused:
    there is no proof, and from ε = 8.42 on (δ = 1e-5) it is false.

    >>> round(float(classical_multiplier(epsilon=0.5, delta=1e-5)), 4)
    9.6896
    """
    asked, room = positive(epsilon, "epsilon"), _room(delta)
    if asked >= 1:
        raise Refused(
            f"the classical formula is proven for ε < 1 only, and ε = {asked} was asked for; no σ was given. "
            "Use the exact calibration: it holds at every ε and needs less noise."
        )
    return enclosures.sqrt(2 * enclosures.log(Fraction(5, 4) / room).high).high / asked


def _room(delta: Exact) -> Fraction:
    room = positive(probability(delta, "delta"), "delta")
    if room == 1:
        raise InvalidInput("delta = 1 guarantees nothing; no σ was given. Give a delta below 1.")
    return room
