"""Amplification for banded correlated noise, by Poisson sampling in turn from the groups of a fixed partition.

Step t releases Σ_k c_k·x_(t−k) + noise, and x_t adds up clipped numbers of a sample from group t mod ``groups`` alone.
With no more bands than groups, what a unit does at two of its steps lies in different releases, so that each of its
steps is one sampled Gaussian. Proof: docs/proofs/banded_sampling.md
"""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.core.events import Gaussian, PoissonSampled, PrivacyEvent, Repeated
from sfumato.core.exact import Exact, natural, positive, probability, rational
from sfumato.errors import InvalidInput

__all__ = ["banded_plan"]


def banded_plan(
    *, column: Sequence[Exact], sigma: Exact, steps: int, groups: int, sampling: Exact, clip: Exact = 1
) -> PrivacyEvent:
    """The event of ``steps`` measurements with banded noise, each over a Poisson sample of the group whose turn it is.

    ``column`` holds the coefficients c_0, c_1, …; where they differ from step to step, those of the step with the
    largest Σc². ``sampling`` is the chance with which a unit of the group counts. A unit counts by at most ``clip`` in
    l2, and the noise of a measurement is normal with standard deviation ``sigma`` in each coordinate.

    Guarantee: all measurements together lose no more than ⌈steps/groups⌉ sampled Gaussians of l2 distance
    clip·√Σc², for add/remove, and gradients at weights that were released before are included.
    Assumes: the group of a unit depends on nothing but that unit and, at most, a secret drawn beforehand; samples are
    by independent coins and stay secret. Balls in bins, shuffled batches, or a unit in two groups are not covered.
    Proof: docs/proofs/banded_sampling.md

    >>> run = banded_plan(column=[1, "1/2"], sigma=2, steps=10, groups=4, sampling="1/10")
    >>> run.times, run.event.rate, run.event.event.l2_squared
    (3, Fraction(1, 10), Fraction(5, 4))
    """
    mix = [rational(part, "column") for part in column]
    turns, rate = natural(groups, "groups"), positive(probability(sampling, "sampling"), "sampling")
    if not mix or not any(mix):
        raise InvalidInput("column holds no coefficient other than 0; nothing was accounted. Give at least one.")
    if len(mix) > turns:
        raise InvalidInput(
            f"{len(mix)} bands overlap where a unit's turn comes every {turns} steps; nothing was accounted. Take at "
            "least as many groups as bands."
        )
    squared = positive(clip, "clip") ** 2 * sum((part * part for part in mix), Fraction(0))
    step: PrivacyEvent = Gaussian(l2_squared=squared, sigma_squared=positive(sigma, "sigma") ** 2)
    if rate < 1:
        step = PoissonSampled(rate=rate, event=step)
    return Repeated(event=step, times=-(-natural(steps, "steps") // turns))
