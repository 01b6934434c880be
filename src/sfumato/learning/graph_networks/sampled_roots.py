"""Noise on sums over sampled roots: how often a node occurs in a sample is random, and the noise pays for all of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.accounting.calibrate import calibrate_noise
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.events import MOST_OCCURRENCES, PrivacyEvent, Repeated, SampledOccurrences
from sfumato.core.exact import natural
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.learning.noisy_sums import NoisySums, pitch_for
from sfumato.learning.training import Training
from sfumato.mechanisms.norms import known

__all__ = ["NoisyRootSums"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyRootSums(NoisySums):
    """Release sums over Poisson samples of roots, where one node is in the gradients of up to ``roots`` of them.

    The noise is ``multiplier`` times as far as one node moves the sum of all roots: 1 + 2(``roots`` − 1) clips, since
    its own root comes or goes and each other one changes.

    Guarantee: that of ``steps`` sums in which one vector that comes or goes and ``roots`` − 1 others that change are
    kept with probability ``rate`` each. Rounding is paid for as of one clip, so for each number of roots that are kept.
    Public: every field. Sensitive: the sums, and which roots were sampled. Proof: docs/proofs/occurrences.md

    >>> noise = NoisyRootSums(multiplier=Fraction(2), steps=10, rate=Fraction(1, 4), parameters=100, roots=3)
    >>> step = noise.loss(Sensitivity.of(l2_squared=25)).event
    >>> step.gone, step.changed, step.sigma_squared
    (1, 2, Fraction(100, 1))
    """

    KIND: ClassVar[str] = "mechanism.noisy_root_sums"
    VERSION: ClassVar[int] = 1
    roots: int

    def __post_init__(self) -> None:
        NoisySums.__post_init__(self)
        natural(self.roots, "roots", most=MOST_OCCURRENCES)
        pitch_for(Fraction(1), self.clips, self.parameters)

    @property
    def clips(self) -> Fraction:
        """The noise, in clips."""
        return self.multiplier * (2 * self.roots - 1)

    @classmethod
    def for_roots(cls, run: Training, spend: Budget, roots: int) -> "NoisyRootSums":
        """The least noise, to about four digits and rounded up, with which a run on sampled roots keeps a spend."""
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        most = natural(roots, "roots", most=MOST_OCCURRENCES)
        z = calibrate_noise(
            lambda sigma: _steps(sigma, run.steps, run.rate, most),
            epsilon=spend.epsilon,
            delta=spend.delta,
            start=(2 * most - 1) * float(run.rate) * float(enclosures.sqrt(Fraction(run.steps)).high),
        )
        return cls(multiplier=z / (2 * most - 1), steps=run.steps, rate=run.rate, parameters=run.parameters, roots=most)

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """The event of the whole run for a node that moves the sum of all roots by at most l2."""
        known(moved.l2, "l2")
        return _steps(self.clips, self.steps, self.rate, self.roots)

    def pitch(self, moved: Sensitivity) -> Fraction:
        """The pitch of the lattice, for a node that moves the exact sum of all roots by at most l2."""
        each = enclosures.sqrt(known(moved.l2, "l2").squared).high / (2 * self.roots - 1)
        return pitch_for(each, self.clips, self.parameters)


def _steps(sigma: Fraction, steps: int, rate: Fraction, roots: int) -> PrivacyEvent:
    step = SampledOccurrences(rate=rate, gone=1, changed=roots - 1, l2_squared=Fraction(1), sigma_squared=sigma**2)
    return Repeated(event=step, times=steps)
