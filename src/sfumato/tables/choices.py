"""What was chosen and is no number: found values and largest groups, with the public figures that bound the choice.

Both depend on the query and its mechanism alone, never on what was chosen.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import natural
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms import NoisyThreshold, OptimalSelection, TopChoice

__all__ = ["Found", "Top"]

CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Values that enough persons share: one that ``enough`` of them have is found with 95% confidence.

    Where they are counted, the noise of a count is within ±``margin`` with 95% confidence, and only counts from
    ``least`` on, noise included, are shown.

    >>> Found.by(NoisyThreshold(keys=1, most=1, scale=1, threshold=15))
    Found(enough=17, least=15, margin=3)
    >>> Found.by(OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-6))
    Found(enough=16, least=None, margin=None)
    """

    enough: int
    least: int | None = None
    margin: int | None = None

    @property
    def counted(self) -> bool:
        """Whether the persons of each value are counted."""
        return self.margin is not None

    @classmethod
    def by(cls, mechanism: NoisyThreshold | OptimalSelection) -> "Found":
        """The figures of a mechanism; ``enough`` is rounded up."""
        if isinstance(mechanism, OptimalSelection):
            return cls(enough=_least_shown(mechanism))
        law = DiscreteLaplace(scale=mechanism.scale)
        below = law.margin(1 - 2 * (1 - CONFIDENCE))  # the law is even: half of what lies beyond is below
        return cls(
            enough=mechanism.threshold + below, least=mechanism.threshold, margin=math.ceil(law.margin(CONFIDENCE))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """Groups with the most rows out of ``candidates``.

    With 95% confidence each of them is at most ``gap`` rows behind the largest that was left when it was chosen.
    """

    candidates: int
    gap: int

    @classmethod
    def by(cls, mechanism: TopChoice, candidates: int) -> "Top":
        """The figures of a mechanism, for a number of groups to choose from.

        Guarantee: a group that is t rows behind is chosen, where the largest left is, with odds of at most
        exp(−t/scale); the union over all groups and choices leaves 5%.

        >>> Top.by(TopChoice(choices=2, scale=10, monotone=True), 5)
        Top(candidates=5, gap=49)
        """
        natural(candidates, "candidates", least=mechanism.choices)
        rivals = sum(candidates - 1 - made for made in range(mechanism.choices))
        if rivals == 0:
            return cls(candidates=candidates, gap=0)
        behind = mechanism.scale * enclosures.log(rivals / (1 - CONFIDENCE)).high
        return cls(candidates=candidates, gap=math.floor(behind))  # rows are whole: beyond this is beyond the bound


def _least_shown(rule: OptimalSelection) -> int:
    """The least number of persons that shows a value with 95% confidence; the chance never falls."""
    low, high = 0, rule.sure
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rule.chance(middle) >= CONFIDENCE else (middle, high)
    return high
