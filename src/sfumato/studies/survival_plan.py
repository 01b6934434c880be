"""The log-rank test at the planning stage: expected events and persons at risk, and what noisy cells add."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import Word, phrase
from sfumato.studies.error_sum import ErrorSum, NoiseShape

__all__ = ["Survival"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """A hazard ratio over equal time bins, with constant hazards and the same end of follow-up for all.

    The statistic is U = Σ(d₁ − rD), read off noisy counts by arm, bin and event: its variance is that of the log-rank
    test plus N₁ = σ²Σw² of the linear weights of the cells and N₂ of the products of noises. docs/proofs/design.md
    """

    hazard_ratio: float
    events: float
    bins: int

    @property
    def difference(self) -> float:
        """The estimate is scaled so that what is to be found is 1 standardised unit of U, see :meth:`error`."""
        return 1.0

    def cells(self, hazards: tuple[float, float]) -> tuple[Array, Array]:
        """Expected events and persons at risk of one row in each arm, by arm and bin."""
        chances = np.array(hazards)[:, None]
        risk: Array = np.asarray((1 - chances) ** np.arange(self.bins), dtype=np.float64)
        return np.asarray(risk * chances), risk

    def hazards(self) -> tuple[float, float]:
        """The chance of an event in one bin, in each arm."""
        first = 1 - (1 - self.events) ** (1 / self.bins)
        return first, 1 - (1 - first) ** self.hazard_ratio

    def error(self, n: int, noise: NoiseShape, *, null: bool) -> ErrorSum:
        """The error of U over its expectation; under the null it is the one that the test estimates from the cells."""
        expected = self._expected(n)
        events, risk = self.cells(self.hazards())
        died, at_risk = n * events.sum(axis=0), n * risk.sum(axis=0)
        share = risk[0] / risk.sum(axis=0)
        sampling = float(np.sum(died * share * (1 - share) * (1 - died / at_risk)))  # ties within a bin
        if not null:
            # With a difference, U varies by its own binomials; the null variance would be a little off.
            each = n * risk * self._spread(events, risk)
            sampling = float(np.sum((1 - share) ** 2 * each[0] + share**2 * each[1]))
        linear, squared = self.noise(died, at_risk, share, noise.variance)
        return ErrorSum(variance=(sampling + linear + squared) / expected**2, scales=())

    @staticmethod
    def _spread(events: Array, risk: Array) -> Array:
        chance = events / risk
        return chance * (1 - chance)

    def _expected(self, n: int) -> float:
        """E U = Σ(d₁ − rD) with a difference."""
        events, risk = self.cells(self.hazards())
        share = risk[0] / risk.sum(axis=0)
        return float(n * np.sum(events[0] - share * events.sum(axis=0)))

    def noise(self, died: Array, at_risk: Array, share: Array, variance: float) -> tuple[float, float]:
        """N₁ and N₂: the variance that noisy cells add to U, of their linear weights and of products."""
        total = 0.0
        for own in (1 - share, share):
            slope = np.cumsum(died * own / at_risk)
            total += float(np.sum((own - slope) ** 2 + slope**2))
        left = 2 * (self.bins - np.arange(self.bins)) * variance
        products = 2 * variance * left * (share**2 + (1 - share) ** 2) / at_risk**2
        return variance * total, float(np.sum(products))

    @property
    def words(self) -> Word:
        """What is compared."""
        return phrase(
            "design.survival", ratio=f"{self.hazard_ratio:.4g}", events=f"{self.events:.4g}", bins=f"{self.bins:,}"
        )

    def needs(self, n: int, noise: NoiseShape) -> tuple[Word, ...]:
        """The test of noisy cells holds its level from 6√m/ε rows in each arm, with σ = √2/ε."""
        least = 6 * np.sqrt(self.bins * noise.variance / 2)
        if n >= least:
            return ()
        return (phrase("design.log_rank_needs", n=f"{n:,}", least=f"{int(np.ceil(least)):,}"),)
