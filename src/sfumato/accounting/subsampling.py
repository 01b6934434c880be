"""Amplification by subsampling: what a secret sample makes of an (ε, δ) guarantee.

Each rule holds for one neighbouring relation and one way of sampling. Shuffled batches of a fixed order are neither of
the two. Proof: docs/proofs/subsampling.md
"""

from fractions import Fraction
from typing import overload

from sfumato.core import enclosures
from sfumato.core.exact import Exact, natural, probability
from sfumato.core.guarantees import Approximate, Pure

__all__ = ["fixed_size", "poisson"]


@overload
def poisson(guarantee: Pure, rate: Exact) -> Pure: ...
@overload
def poisson(guarantee: Approximate, rate: Exact) -> Approximate: ...
@overload
def poisson(guarantee: Pure | Approximate, rate: Exact) -> Pure | Approximate: ...
def poisson(guarantee: Pure | Approximate, rate: Exact) -> Pure | Approximate:
    """Keep each unit with probability q, independently: ε′ = ln(1 + q(e^ε − 1)) and δ′ = qδ, rounded up.

    Guarantee: for add/remove, from a guarantee for add/remove.
    Assumes: the protected unit is what is sampled, by independent coins, and who was kept stays secret.

    >>> one = Pure(epsilon=Fraction(1))
    >>> [float(round(poisson(one, rate).epsilon, 5)) for rate in (0.1, 0.01)]
    [0.15857, 0.01704]
    """
    return _amplified(guarantee, probability(rate, "rate"))


def fixed_size(guarantee: Pure | Approximate, *, size: int, population: int) -> Pure | Approximate:
    """Keep a uniformly random set of ``size`` out of ``population`` units: the same formula with q = size/population.

    Guarantee: for *replace*, from a guarantee for replace; the population is public.
    Assumes: a fresh set is drawn each time, without regard to order, and stays secret.

    >>> float(round(fixed_size(Pure(epsilon=Fraction(1)), size=10, population=100).epsilon, 5))
    0.15857
    """
    return _amplified(guarantee, Fraction(natural(size, "size"), natural(population, "population", least=size)))


def _amplified(guarantee: Pure | Approximate, share: Fraction) -> Pure | Approximate:
    epsilon = enclosures.log(1 + share * (enclosures.exp(guarantee.epsilon).high - 1)).high
    epsilon = min(guarantee.epsilon, epsilon)
    if isinstance(guarantee, Pure):
        return Pure(epsilon=epsilon)
    return Approximate(epsilon=epsilon, delta=share * guarantee.delta)
