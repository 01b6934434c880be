"""Adaptive clipping: the clip follows a quantile of the norms, which every step asks for with noise of its own.

A step then releases two things: the noisy sum of clipped gradients, and a noisy count of the units below the clip. The
two are one Gaussian mechanism, and what the count costs is paid by more noise on the sum.
Proof: docs/proofs/training_noise.md
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, ClassVar

from sfumato import laws
from sfumato.accounting.calibrate import calibrate_sigma
from sfumato.core import enclosures, events
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import decimal_up, natural, positive, probability
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.given import RunState
from sfumato.learning.noisy_sums import WIDTH, pitch_for
from sfumato.learning.rounding_error import SLACK
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from sfumato.core.budget import Budget
    from sfumato.learning.training import Training
    from sfumato.noise import Words

__all__ = ["AdaptiveClip", "AdaptiveCourse", "AdaptiveSums", "below", "together", "units_moved"]

STEPS = 2**20  # of one unit: sums of bits are whole numbers of such steps
STEEP = 4  # a bit falls from 1/2 to −1/2 between 7/8 and 9/8 of the clip
DIGITS = 7
SIGNIFICANT = 20  # binary digits of a clip: exact in every float
LEAST, MOST = Fraction(1, 2**40), Fraction(2**40)  # the clips that the engine takes: SMALLEST and LARGEST there


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveClip:
    """Let the clip follow the ``quantile`` of the norms: C ← C·exp(−rate·(share of units below C − quantile)).

    ``noise`` is the standard deviation σ_b of the noise on the count of units below the clip. A unit counts with +1/2
    below the clip and −1/2 above it (centred bits), and in between near the clip: a norm that a float rounds otherwise
    moves its bit by a hair, and cannot flip it. The clip stays within ``widest`` times its first value, either way,
    and within 2^−40 and 2^40, the clips that the engine takes.

    Guarantee: the sum with multiplier z_Δ and the count together are one Gaussian mechanism of multiplier
    z = (z_Δ^−2 + (m·(1 + 1/128)/(2·σ_b))^2)^(−1/2), m the units that neighbours differ in. Assumes: in floats, one unit
    moves the bits of all others together by at most 1/256 of a unit. Public: every field, and every clip, which is a
    function of released counts. Sensitive: norms and bits.

    >>> follow = AdaptiveClip(noise=Fraction(10))
    >>> float(follow.for_sums(Fraction(1), moved=1))
    1.001273
    """

    KIND: ClassVar[str] = "learning.adaptive_clip"
    VERSION: ClassVar[int] = 1
    noise: Fraction
    quantile: Fraction = Fraction(1, 2)
    rate: Fraction = Fraction(1, 5)
    widest: int = 1024

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", positive(self.noise, "the noise of the count"))
        object.__setattr__(self, "quantile", positive(probability(self.quantile, "quantile"), "quantile"))
        object.__setattr__(self, "rate", positive(self.rate, "rate"))
        natural(self.widest, "widest", most=2**30)
        if self.quantile == 1 or self.rate > 1:
            raise InvalidInput("a quantile is below 1 and a rate at most 1; nothing was done.")

    def multiplier(self, moved: int) -> Fraction:
        """The noise of the count in units of how far neighbours move it, which is ``moved`` halves and the slack.

        >>> AdaptiveClip(noise=Fraction(129, 256)).multiplier(1)
        Fraction(1, 1)
        """
        return 2 * self.noise / (natural(moved, "moved") * (1 + SLACK))

    def for_sums(self, multiplier: Fraction, *, moved: int) -> Fraction:
        """The multiplier z_Δ of the sums that leaves ``multiplier`` for both together; seven digits, rounded up."""
        left = 1 / positive(multiplier, "multiplier") ** 2 - 1 / self.multiplier(moved) ** 2
        if left <= 0:
            least = multiplier * moved * (1 + SLACK) / 2
            raise Refused(
                f"the count has noise {decimal_up(self.noise)} and uses up the whole of this guarantee: nothing is "
                f"left for the gradients, and nothing was done. Its noise must be above {decimal_up(least)}; ten times "
                "that costs next to nothing."
            )
        return Fraction(decimal_up(enclosures.sqrt(1 / left).high, DIGITS))

    def squared(self, for_sums: Fraction, *, moved: int) -> Fraction:
        """z² of the sums and the count together, exactly."""
        return together(for_sums, self.multiplier(moved))

    def mechanism(self, run: "Training", spend: "Budget", moved: Sensitivity) -> "AdaptiveSums":
        """The mechanism of a run with this clip: what ``fit(noise=…)`` asks for."""
        return AdaptiveSums.calibrated(run, spend, self, moved=moved)

    def told(self, bits: int, words: "Words") -> int:
        """Release a sum of bits (from :func:`below`) with fresh noise. Sensitive: ``bits``."""
        from sfumato.noise import sample_rounded_gaussian

        return bits + int(sample_rounded_gaussian(self.noise * STEPS, 1, words)[0])

    def share(self, told: int, expected: Fraction) -> Fraction:
        """The share of units below the clip by a released number, where ``expected`` units are (publicly) expected.

        >>> AdaptiveClip(noise=Fraction(1)).share(2**20, Fraction(4))  # two more below than above, of about four
        Fraction(3, 4)
        """
        found = Fraction(told, STEPS) / positive(expected, "expected") + Fraction(1, 2)
        return min(max(found, Fraction(0)), Fraction(1))

    def follow(self, clip: Fraction, told: int, *, first: Fraction, expected: Fraction) -> Fraction:
        """The clip of the next step: post-processing of a released number, the same on every machine.

        >>> float(AdaptiveClip(noise=Fraction(1)).follow(Fraction(1), 0, first=Fraction(1), expected=Fraction(100)))
        1.0
        """
        away = (self.quantile - self.share(told, expected)) * self.rate
        wanted = clip * enclosures.exp(away).low
        low, high = max(first / self.widest, LEAST), min(first * self.widest, MOST)
        return min(max(_short(wanted), low), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSums:
    """Noisy sums whose clip follows a quantile: each step releases the sum of clipped gradients and the count below.

    ``multiplier`` is z_Δ, that of the sums; ``clip`` the first clip; the other fields are those of
    :class:`~sfumato.learning.noisy_sums.NoisySums`.

    Guarantee: that of ``steps`` Gaussian mechanisms, each of the multiplier that sum and count have together and on a
    Poisson sample at ``rate``. Assumes, public, sensitive: as for its parts.

    >>> noise = AdaptiveSums(multiplier=Fraction(1), steps=10, rate=Fraction(1, 4), parameters=100, clip=Fraction(3),
    ...                      follow=AdaptiveClip(noise=Fraction(129, 256)))
    >>> noise.loss(Sensitivity.of(l2_squared=9)).event.event.sigma_squared
    Fraction(1, 2)
    """

    KIND: ClassVar[str] = "mechanism.adaptive_sums"
    VERSION: ClassVar[int] = 1
    multiplier: Fraction
    steps: int
    rate: Fraction
    parameters: int
    clip: Fraction
    follow: AdaptiveClip

    def __post_init__(self) -> None:
        for name in ("multiplier", "clip"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        natural(self.steps, "steps")
        natural(self.parameters, "parameters")
        if not LEAST <= self.clip <= MOST:
            raise InvalidInput("a clip that follows begins between 2^−40 and 2^40; nothing was done.")
        self.pitch_of(self.clip, 1)  # refuses noise that no lattice has room for

    @classmethod
    def calibrated(
        cls, run: "Training", spend: "Budget", follow: AdaptiveClip, *, moved: Sensitivity
    ) -> "AdaptiveSums":
        """The least noise on the sums with which a run keeps a spend, the count paid for."""
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        z = calibrate_sigma(epsilon=spend.epsilon, delta=spend.delta, steps=run.steps, sampling=run.rate)
        return cls(
            multiplier=follow.for_sums(z, moved=units_moved(moved, run.clip)),
            steps=run.steps,
            rate=run.rate,
            parameters=run.parameters,
            clip=run.clip,
            follow=follow,
        )

    @property
    def law(self) -> laws.RoundedGaussian:
        """The error of each number of each sum, in steps of the lattice."""
        return laws.RoundedGaussian(sigma=Fraction(WIDTH))

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """The event of the whole run for a unit that moves each sum by at most l2, in units of that; z² is exact."""
        squared = self.follow.squared(self.multiplier, moved=units_moved(moved, self.clip))
        step: PrivacyEvent = events.Gaussian(l2_squared=Fraction(1), sigma_squared=squared)
        if self.rate < 1:
            step = events.PoissonSampled(rate=self.rate, event=step)
        return events.Repeated(event=step, times=self.steps)

    def pitch_of(self, clip: Fraction, moved: int) -> Fraction:
        """The pitch of the lattice of a step with this clip, where neighbours differ in ``moved`` units."""
        return pitch_for(moved * clip, self.multiplier, self.parameters)

    def course(self, run: "Training", moved: Sensitivity, words: "Words") -> "AdaptiveCourse":
        """Start a run."""
        return AdaptiveCourse(run=run, mechanism=self, moved=units_moved(moved, self.clip), words=words)


class AdaptiveCourse:
    """Noisy sums over Poisson samples, and a clip that follows the noisy counts. Sensitive: the bits so far.

    The clip is public at every step: a function of counts that were released.
    """

    def __init__(self, *, run: "Training", mechanism: AdaptiveSums, moved: int, words: "Words") -> None:
        self._run, self._mechanism, self._moved, self._words = run, mechanism, moved, words
        self._clip, self._bits = mechanism.clip, 0

    @property
    def clip(self) -> Fraction:
        """The clip of the next step. Public."""
        return self._clip

    def places(self, number: int, step: int) -> "npt.NDArray[np.int64]":
        """A fresh Poisson sample in random order. Sensitive."""
        from sfumato.learning.sampling import shuffled_sample

        return shuffled_sample(number, self._run.rate, self._words)

    def observe(self, norms: "Tensor", present: "Tensor") -> None:
        """Take in the norms of a part of the step's units. Sensitive."""
        self._bits += below(norms, float(self._clip), present)

    def release(self, total: "Tensor") -> "Tensor":
        """The noisy sum of a step; the clip moves by the noisy count that is released with it."""
        from sfumato.learning.noising import noised

        noisy = noised(total, self._mechanism.pitch_of(self._clip, self._moved), self._words)
        told, self._bits = self._mechanism.follow.told(self._bits, self._words), 0
        expected = self._run.rate * self._run.number
        self._clip = self._mechanism.follow.follow(self._clip, told, first=self._mechanism.clip, expected=expected)
        return noisy

    def state(self) -> RunState:
        """The clip: between steps nothing else is kept."""
        return {"numerator": self._clip.numerator, "denominator": self._clip.denominator}

    def load(self, state: RunState) -> None:
        """Go on with this clip."""
        self._clip, self._bits = Fraction(int(state["numerator"]), int(state["denominator"])), 0


def units_moved(moved: Sensitivity, clip: Fraction) -> int:
    """In how many units neighbours differ: the l2 bound of a sum in clips; refused where that is no whole number.

    >>> units_moved(Sensitivity.of(l2_squared=36), Fraction(3))
    2
    """
    squared = known(moved.l2, "l2").squared / clip**2
    root = isqrt(squared.numerator)
    if squared.denominator != 1 or root**2 != squared or not root:
        raise Refused("the sensitivity is not a whole number of clips; nothing was read and nothing was spent.")
    return root


def together(*multipliers: Fraction) -> Fraction:
    """z² of several releases from Gaussians of these multipliers that are read as one: 1/Σ z_i^−2, exactly.

    >>> together(Fraction(1), Fraction(1))
    Fraction(1, 2)
    """
    return 1 / sum((1 / positive(each, "multiplier") ** 2 for each in multipliers), Fraction(0))


def below(norms: "Tensor", clip: float, present: "Tensor | None" = None) -> int:
    """The sum of the centred bits of a batch in steps of 2^−20, a whole number. Sensitive: it must meet noise.

    ``norms`` is a tensor of one norm a unit; places that are not ``present`` count nothing. A norm that is no number
    would count as above the clip; a run has none, since the engine gives a unit whose gradient is not a number the
    norm 0, which adds nothing to the sum and counts as below. The sum is rounded once, and not unit by unit: many bits
    at the edge of a step could else jump together.
    """
    bits = ((1 - norms.double() / clip) * STEEP).nan_to_num(nan=-1.0).clamp(-0.5, 0.5)
    return round(float((bits if present is None else bits * present).sum()) * STEPS)


def _short(clip: Fraction) -> Fraction:
    """A clip to a fixed number of binary digits: one rational that floats hold exactly."""
    digits = clip.numerator.bit_length() - clip.denominator.bit_length()
    unit = Fraction(2) ** (digits - SIGNIFICANT)
    return round(clip / unit) * unit
