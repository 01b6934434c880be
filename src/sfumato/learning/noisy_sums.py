"""Noise on the sums of a training run: the mechanism that its certificate states."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato import laws
from sfumato.accounting.calibrate import calibrate_sigma, plan
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import natural, positive, probability
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.learning.rounding_error import SLACK, WIDTH, rounded_l2
from sfumato.learning.training import STEPS, Training
from sfumato.mechanisms.norms import known

__all__ = ["WIDTH", "NoisySums", "pitch_for"]

BITS = 30  # of a pitch, so that it and small multiples of it are floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySums:
    """Release ``steps`` sums of ``parameters`` numbers, each over a secret sample and with fresh Gaussian noise.

    The noise of each number is Gaussian with ``multiplier`` times as far as one unit moves the sum as standard
    deviation, rounded to a lattice whose pitch is 2^−20 of that; the sum is rounded to the lattice first.

    Guarantee: that of ``steps`` Gaussian mechanisms of this multiplier, each on a Poisson sample at ``rate``; rounding
    and floats are paid for by a wider pitch (:meth:`pitch`). Assumes: what is summed lies within half the slack of the
    exact sum of clipped gradients. Public: every field. Sensitive: the sums, and who was sampled.
    Proof: docs/proofs/training.md

    >>> noise = NoisySums(multiplier=Fraction(2), steps=10, rate=Fraction(1, 4), parameters=100)
    >>> noise.loss(Sensitivity.of(l2_squared=9)).event.event
    Gaussian(l2_squared=Fraction(1, 1), sigma_squared=Fraction(4, 1))
    """

    KIND: ClassVar[str] = "mechanism.noisy_sums"
    VERSION: ClassVar[int] = 1
    multiplier: Fraction
    steps: int
    rate: Fraction
    parameters: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "multiplier", positive(self.multiplier, "multiplier"))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        natural(self.steps, "steps", most=STEPS)
        natural(self.parameters, "parameters")
        pitch_for(Fraction(1), self.multiplier, self.parameters)  # refuses noise that no lattice has room for

    @classmethod
    def calibrated(cls, run: Training, spend: Budget) -> "NoisySums":
        """The least noise, to about four digits and rounded up, with which a run keeps a spend."""
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        z = calibrate_sigma(epsilon=spend.epsilon, delta=spend.delta, steps=run.steps, sampling=run.rate)
        return cls(multiplier=z, steps=run.steps, rate=run.rate, parameters=run.parameters)

    @property
    def law(self) -> laws.RoundedGaussian:
        """The error of each number of each sum, in steps of the lattice."""
        return laws.RoundedGaussian(sigma=Fraction(WIDTH))

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """The event of the whole run for a unit that moves each sum by at most l2."""
        known(moved.l2, "l2")
        return plan(sigma=self.multiplier, steps=self.steps, sampling=self.rate)

    def pitch(self, moved: Sensitivity) -> Fraction:
        """The pitch of the lattice for a unit that moves each exact sum by at most l2; a float holds it exactly."""
        return pitch_for(enclosures.sqrt(known(moved.l2, "l2").squared).high, self.multiplier, self.parameters)


def pitch_for(moved: Fraction, multiplier: Fraction, parameters: int) -> Fraction:
    """The pitch g at which 2^20·g, the noise, is z times as far as a unit moves what a machine sums and rounds.

    Rounded up to 30 bits: a wider pitch has more noise than it has rounding.

    >>> pitch_for(Fraction(1), Fraction(1), 1) * 2**20 > 1 + SLACK
    True
    """
    exact = multiplier * rounded_l2(moved * (1 + SLACK), dimension=parameters, multiplier=multiplier) / WIDTH
    unit = Fraction(2) ** (exact.numerator.bit_length() - exact.denominator.bit_length() - BITS)
    return -(-exact // unit) * unit
