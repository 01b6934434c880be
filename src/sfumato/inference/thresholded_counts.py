"""Counts that are shown only because they reached a threshold, with intervals that know it.

A count just above the threshold may be there by its noise: given that it is shown, nothing tells whether the truth is
near the threshold or far below. Proof: docs/proofs/threshold.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from sfumato.core import enclosures
from sfumato.core.exact import Exact
from sfumato.core.release import Release
from sfumato.inference.derived import Derived, Label
from sfumato.laws.margins import level_of

__all__ = ["ThresholdedCounts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ThresholdedCounts(Derived):
    """Counts with discrete Laplace noise of a ``scale``, shown where they reached ``threshold``.

    Guarantee: *given that a key is shown*, its interval covers the true count with the stated confidence. The interval
    is the count ± scale·ln(2/doubt); where that reaches below the threshold, it begins at 1.
    """

    counts: tuple[int, ...]
    scale: Fraction
    threshold: int
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The noisy counts."""
        return self.counts

    def at(self, **labels: Label) -> "ThresholdedCounts":
        """The counts whose labels are the given ones."""
        kept, left = self._picked(labels)
        return ThresholdedCounts(
            counts=tuple(self.counts[place] for place in kept),
            scale=self.scale,
            threshold=self.threshold,
            labels=left,
            measure=self.measure,
            sources=self.sources,
        )

    @property
    def method(self) -> str:
        """How the interval was found."""
        return "the noise distribution, given that the threshold was reached"

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[int, int]]:
        """Low and high for each count; with ``joint`` all of them hold at once with this confidence."""
        doubt = (1 - level_of(confidence)) / (max(1, len(self.counts)) if joint else 1)
        margin = ceil(self.scale * enclosures.log(2 / doubt).high)
        return [(count - margin if count - margin >= self.threshold else 1, count + margin) for count in self.counts]
