"""What the strongest attacker can gain from a release: bounds that follow from the guarantee alone.

All bounds speak of one unit while every other record stays fixed; they say nothing of what a release teaches about
groups. They are rounded against us. Proofs: docs/proofs/guarantees.md
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, probability
from sfumato.core.guarantees import GDP, Approximate, Guarantee, Pure
from sfumato.errors import Refused

__all__ = ["Belief", "accuracy", "auc", "belief", "total_variation", "tradeoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How far a belief of ``prior`` can be moved: to ``low`` at the least, to ``high`` at the most."""

    prior: Fraction
    low: Fraction
    high: Fraction


def total_variation(guarantee: Guarantee) -> Fraction:
    """The most that the probability of any output can differ between neighbours: δ at ε = 0.

    For (ε, δ) this is (e^ε − 1 + 2δ)/(e^ε + 1), attained by a mechanism with four outputs.

    >>> round(float(total_variation(Approximate(epsilon=Fraction(1), delta=Fraction(1, 1000)))), 5)
    0.46266
    """
    return guarantee.delta_at(0)


def accuracy(guarantee: Guarantee) -> Fraction:
    """The best success rate of guessing, from even odds, whether the unit is in: (1 + total variation)/2.

    >>> round(float(accuracy(Pure(epsilon=Fraction(1)))), 4)
    0.7311
    """
    return (1 + total_variation(guarantee)) / 2


def tradeoff(guarantee: Guarantee, false_alarms: Exact) -> Fraction:
    """The least share of present units that a test with this rate of false alarms must miss.

    For (ε, δ): max(0, 1 − δ − e^ε α, e^(−ε)(1 − δ − α)); any other guarantee is read as the (ε, δ) pairs that it
    implies, and the best of these counts.

    >>> round(float(tradeoff(Pure(epsilon=Fraction(1)), 0.1)), 4)
    0.7282
    """
    alpha = probability(false_alarms, "false_alarms")
    return max(_tradeoff_of_pair(pair, alpha) for pair in _pairs(guarantee))


def auc(guarantee: Guarantee) -> Fraction:
    """The largest area under the curve that a membership attack can have.

    For (ε, δ): 1 − (1 − δ)²/(1 + e^ε); for μ-GDP: Φ(μ/√2).

    >>> [round(float(auc(Pure(epsilon=Fraction(e)))), 3) for e in ("1/10", "1/2", "1", "2")]
    [0.525, 0.622, 0.731, 0.881]
    """
    if isinstance(guarantee, GDP):
        half = enclosures.sqrt(guarantee.mu**2 / 2).high
        return enclosures.normal_cdf(half).high
    return min(1 - (1 - pair.delta) ** 2 / (1 + enclosures.exp(pair.epsilon).high) for pair in _pairs(guarantee))


def belief(guarantee: Guarantee, prior: Exact) -> Belief:
    """How far a belief that the unit is in can move, by Bayes' rule.

    Guarantee: e^(−ε) ≤ posterior odds / prior odds ≤ e^ε, over all releases that the guarantee covers together.
    Assumes: pure DP; add/remove, for "present or absent" (for an attribute of someone known to be present, ask with
    the guarantee of a group of two); all other records fixed.

    >>> moved = belief(Pure(epsilon=Fraction(1, 2)), 0.1)
    >>> round(float(moved.high), 4), round(float(moved.low), 4)
    (0.1548, 0.0631)
    """
    if not isinstance(guarantee, Pure):
        raise Refused(
            "with δ > 0 the belief bound at ε can fail with a probability well above δ; no figure was given. "
            "Show accuracy(guarantee), the success rate from even odds, instead."
        )
    chance = probability(prior, "prior")
    factor = enclosures.exp(guarantee.epsilon).high
    return Belief(
        prior=chance,
        low=chance / (chance + factor * (1 - chance)),
        high=factor * chance / (1 - chance + factor * chance),
    )


def _tradeoff_of_pair(pair: Approximate, alpha: Fraction) -> Fraction:
    factor = enclosures.exp(pair.epsilon).high
    rest = 1 - pair.delta
    return max(Fraction(0), rest - factor * alpha, (rest - alpha) / factor)


def _pairs(guarantee: Guarantee) -> list[Approximate]:
    """Write a guarantee as (ε, δ) pairs, all of which it implies."""
    if isinstance(guarantee, Pure):
        return [guarantee.approximate()]
    if isinstance(guarantee, Approximate):
        return [guarantee]
    grid = (Fraction(step, 16) for step in (*range(32), *range(32, 128, 4), *range(128, 512, 16)))
    return [Approximate(epsilon=epsilon, delta=guarantee.delta_at(epsilon)) for epsilon in grid]
