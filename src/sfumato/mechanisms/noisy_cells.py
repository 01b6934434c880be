"""Noisy cells above a threshold: a sparse private set, shown with noise that nobody has to draw cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import events
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.query import Answer
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["NoisyCells"]

MOST_CELLS = 2**46
MOST_SHOWN = 10**6
LARGEST = 2**62
LOWEST = 64  # scales below 0, where all cells are shown but for a part of e^−64


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCells:
    """Add Laplace noise to a count and to each of ``cells`` cells of 0 or 1, and show the cells that reach a threshold.

    The count is multiplied by ``count_step`` before the noise, each cell by ``cell_step``: these divide ε between them.
    The threshold is worked out from the noisy count alone, so that about as many cells are shown as there are. Shown
    are the noisy count, the threshold, and the numbers of the cells in rising order.

    Guarantee: ε = moved/scale, where ``moved`` is the l1 move of the count and the cells, so multiplied, for one unit:
    the Laplace mechanism on cells + 1 whole numbers, and post-processing. The cells that are 0 get noise too; where it
    reaches the threshold is sampled exactly, and no list of all cells is ever made. Public: every field. Sensitive: the
    count and the cells. Proof: docs/proofs/synthetic_graph.md

    >>> NoisyCells.calibrated(cells=10, l1=1088, epsilon=2).scale
    Fraction(544, 1)
    """

    KIND: ClassVar[str] = "mechanism.noisy_cells"
    VERSION: ClassVar[int] = 1
    cells: int
    scale: Fraction
    count_step: int = 64
    cell_step: int = 1024

    def __post_init__(self) -> None:
        natural(self.cells, "cells", most=MOST_CELLS)
        natural(self.count_step, "count_step", most=10**6)
        natural(self.cell_step, "cell_step", most=10**6)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @classmethod
    def calibrated(
        cls, *, cells: int, l1: Exact, epsilon: Exact, count_step: int = 64, cell_step: int = 1024
    ) -> "NoisyCells":
        """The least noise that gives ε where one unit moves the multiplied count and cells by at most ``l1``."""
        scale = positive(l1, "l1") / positive(epsilon, "epsilon")
        return cls(cells=cells, scale=scale, count_step=count_step, cell_step=cell_step)

    @property
    def law(self) -> Unstated:
        """Which cells are shown is no number with noise on it."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> events.DiscreteLaplace:
        """The event for a unit that moves the multiplied count and cells by at most ``moved``."""
        return events.DiscreteLaplace(l1=known(moved.l1, "l1").value, scale=self.scale)

    def threshold(self, noisy: int) -> int:
        """The least threshold at which no more cells are expected to be shown than the noisy count says there are.

        A function of released numbers alone.

        >>> noise = NoisyCells.calibrated(cells=8_154_741, l1=1088, epsilon=1)
        >>> noise.threshold(64 * 88_234), noise.threshold(-50)
        (4190, 16561)
        """
        wanted = min(max(round(Fraction(noisy, self.count_step)), 1), self.cells, MOST_SHOWN)
        low, high = -int(LOWEST * self.scale) - 1, 1
        if self._expected(low, wanted) <= wanted:
            return low
        while self._expected(high, wanted) > wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._expected(middle, wanted) > wanted else (low, middle)
        return high

    def draw(self, exact: tuple[int, Sequence[int]], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: tuple[int, Sequence[int]], words: "Words") -> tuple[int, ...]:
        """Draw from the exact count and the numbers of the cells that are 1, in rising order."""
        import numpy as np

        from sfumato.noise import sample_discrete_laplace
        from sfumato.noise.exceedances import sample_exceedances

        count, given = exact
        ones = np.asarray(given, dtype=np.int64)
        if len(ones) and (ones[0] < 0 or ones[-1] >= self.cells or (np.diff(ones) <= 0).any()):
            raise InvalidInput("cells are numbered from 0, in rising order and each once; nothing was drawn.")
        noisy = self.count_step * count + int(sample_discrete_laplace(self.scale, 1, words)[0])
        noisy = max(-LARGEST, min(LARGEST, noisy))
        threshold = self.threshold(noisy)
        noise = sample_discrete_laplace(self.scale, len(ones), words)
        stay = ones[np.asarray(self.cell_step + noise >= threshold, dtype=bool)]
        come = sample_exceedances(self.scale, threshold, self.cells, words)
        if len(ones):
            at = np.minimum(np.searchsorted(ones, come), len(ones) - 1)
            come = come[ones[at] != come]
        shown: list[int] = np.sort(np.concatenate((stay, come))).tolist()
        return (noisy, threshold, *shown)

    def chances(self, threshold: int) -> tuple[float, float]:
        """How likely a cell that is 0, and one that is 1, is shown at a threshold."""
        return _reached(self.scale, threshold), _reached(self.scale, threshold - self.cell_step)

    def _expected(self, threshold: int, wanted: int) -> float:
        zero, one = self.chances(threshold)
        return wanted * one + (self.cells - wanted) * zero


def _reached(scale: Fraction, threshold: int) -> float:
    """P[Z ≥ threshold], as a float."""
    from math import exp

    q = exp(-1 / scale)
    return exp(-threshold / scale) / (1 + q) if threshold >= 0 else 1 - exp(-(1 - threshold) / scale) / (1 + q)
