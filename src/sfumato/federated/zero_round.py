"""Rounds of zeros: every site sends noise alone, and the sum says whether there is as much of it as was agreed.

It does not say who added too little. Half a share of one site of ten takes 5% off the variance: about 16,500 numbers
see that with 99% confidence, 99 times of 100.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtr

from sfumato.core.exact import Exact, confidence_level, decimal_up
from sfumato.errors import Refused
from sfumato.federated.server import SumResult

__all__ = ["NoiseVerdict", "noise_verdict"]

LEAST = 1_000  # numbers that a verdict needs: a sum of as many squares is nearly normal


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseVerdict:
    """``found`` is the mean square of a sum of noise alone, ``agreed`` what its variance should be.

    ``surprise`` is the probability of so little or less where every site adds its share; ``refuted`` says that it is
    below 1 − confidence.
    """

    agreed: Fraction
    found: float
    numbers: int
    surprise: float
    confidence: Fraction

    @property
    def refuted(self) -> bool:
        """Whether somebody added too little, at the confidence that was asked for."""
        return self.surprise < 1 - self.confidence

    def explain(self) -> str:
        """Say it in a sentence."""
        share = decimal_up(Fraction(self.found / float(self.agreed)).limit_denominator(10_000), 3)
        if self.refuted:
            return f"The noise has {share} of the variance that was agreed: some site adds less than its share."
        return (
            f"The noise has {share} of the variance that was agreed, which chance explains. That proves nothing more."
        )


def noise_verdict(result: SumResult, *, confidence: Exact = Fraction(99, 100)) -> NoiseVerdict:
    """Judge the sum of a round of zeros.

    Squares of Skellam noise of variance v have mean v and variance 2v² + v. Their mean is compared with the normal law;
    since squares are skewed to the right, low means are rarer than it says.
    """
    terms = result.terms
    if not terms.zero or terms.noise is None:
        raise Refused("noise is judged in a round of zeros alone: terms with noise and zero=True. Nothing was judged.")
    if terms.length < LEAST:
        raise Refused(f"a round of zeros is judged from {LEAST} numbers on; this one has {terms.length}.")
    agreed = terms.noise.left(terms.parties, result.missing)
    variance = float(agreed)
    found = float(np.square(result.total.astype(np.float64)).mean())
    error = math.sqrt((2 * variance**2 + variance) / terms.length)
    return NoiseVerdict(
        agreed=agreed,
        found=found,
        numbers=terms.length,
        surprise=float(ndtr((found - variance) / error)),
        confidence=confidence_level(confidence),
    )
