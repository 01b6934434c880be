"""The error to expect of a measure before anything is read: from the noise distribution and public facts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.query import Law
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.tables.clamped import Clamped
from sfumato.tables.needs import Need, SumOf
from sfumato.tables.statistic_plan import Block, block_for, sum_weights

__all__ = ["ErrorPreview"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPreview:
    """What is known beforehand: the sums that will be noisy, their noise distribution and the level of a margin.

    ``rows`` is how many rows a group is expected to have, or None where nobody said it; ``public`` tells that this
    is the public number of units, each of which counts once.
    """

    blocks: tuple[Block, ...]
    law: Law
    level: Fraction
    rows: int | None
    public: bool = False
    squared: bool = False
    """Whether mean squared errors are asked for, in place of margins."""

    def block(self, need: Need) -> Block:
        """The block that meets a need."""
        return block_for(need, self.blocks)

    def sum_weights(self, of: Clamped) -> list[Fraction]:
        """What each noisy number counts for in the sum of a value."""
        block = self.block(SumOf(of))
        return [weight / block.height for weight in sum_weights(of, block)]

    def margin(self, weights: Sequence[Fraction]) -> Fraction:
        """The margin of a sum of independent noises with these weights; their mean squared error, where that is asked.

        The noise has mean 0, so its mean squared error is its variance, which is never rounded down.
        """
        if self.squared:
            return sum((weight**2 for weight in weights), start=Fraction(0)) * self.law.variance
        noises = {Noise("expected", place, self.law): weight for place, weight in enumerate(weights) if weight}
        return LinearCombination(Fraction(0), noises).margin(self.level)
