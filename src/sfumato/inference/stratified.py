"""Strata put together: a weighted mean of several groups of a population, for sampling and privacy noise together.

Weights are public: how many people of the population each stratum has, or those of a standard population. For a
candidate of the weighted mean the strata are moved from their estimates to where they are likeliest then, and the
variance is that of strata which are there: a score interval, as for one group. Proof: docs/proofs/population.md
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.inference.normal_laplace import multiplier
from sfumato.inference.population import RAISED, Residuals

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Truths = npt.NDArray[np.bool_]

__all__ = ["LEAST", "MOST_LOST", "Strata", "StrataLimits"]

LEAST = 2.0  # standard deviations of its noise that the rows of a stratum must be more than, for an estimate
MOST_LOST = 0.25  # weight of strata without an estimate, beyond which the whole has none either
HALVINGS = 40
REACH = 4.0  # ranges of the value: farther than any limit of a weighted mean can be
MANY = 1.02  # by how much the multiplier of one noise with the same fourth moment can be too small for several
OUTWARD = 1e-8  # of the distance of an end from the estimate: more than halving and double precision leave


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrataLimits:
    """Weighted means with their standard errors, low and high, one for each group; ``nan`` where there is none."""

    estimate: "Floats"
    error: "Floats"
    low: "Floats"
    high: "Floats"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placed:
    """Strata as they are put together: estimates, the weight of each residual, and where they move with the whole."""

    theta: "Floats"
    times: "Floats"
    """Weight of a stratum over Σx in it; 0 for one that is lost."""
    rows: "Floats"
    move: "Floats"
    student: "Floats"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """Σ W·θ over strata, in each of several groups: ``residuals`` has a line for each group and stratum in it.

    A stratum whose rows are not more than twice the noise in their number has no estimate: it may have any value
    within its bounds. Where such strata have more than a quarter of the weight there is no estimate of the whole.

    Guarantee: none for single data; simulated coverage is at least 94.5% at 95%, for 3 to 10 strata of 30 rows and more
    (tests/inference/test_stratified_coverage.py). Assumes: strata are independent of each other, and what ``residuals``
    assumes in each of them. Where one person can be in several strata, the ``rows`` of the design count all of them.
    """

    residuals: Residuals
    weights: "Floats"
    """Of each stratum; they add up to 1."""
    unsampled: "Floats | None" = None
    """The share of each stratum's people who are not in the sample, by line, where the estimand is these people."""

    @property
    def lost(self) -> "Truths":
        """Which strata have no estimate, by group."""
        of = self.residuals
        doubt = math.sqrt(float((of.noise**2) @ (of.under**2)))
        found: Truths = (~(of.sums @ of.under > LEAST * doubt)).reshape(-1, len(self.weights))
        return found

    @property
    def told(self) -> "Truths":
        """Which groups have an estimate: enough of their weight is in strata that have one."""
        found: Truths = self.lost @ self.weights <= MOST_LOST
        return found

    def limits(self, level: float) -> StrataLimits:
        """The weighted means with limits that hold each with probability ``level``, each group by itself."""
        import numpy as np

        of = self.residuals
        least, most = of.within
        with np.errstate(all="ignore"):
            placed, aside = self._placed(level), self.lost @ self.weights
            centre = self._summed(np.where(placed.times > 0, self._lines * placed.theta, 0.0))
            low, high = (centre + side * self._distance(placed, side, level) for side in (-1.0, 1.0))
            sampling, noise, _ = self._variances(placed.theta, placed)
        open_ = aside > 0
        low, high = low - of.rounding, high + of.rounding
        if math.isfinite(least) and math.isfinite(most):
            centre = centre + aside * (least + most) / 2
            low, high = low + aside * least, high + aside * most
        else:
            low, high = np.where(open_, -math.inf, low), np.where(open_, math.inf, high)
            centre = np.where(open_, math.nan, centre)
        told = self.told
        estimate = of.origin + of.scale * np.where(told, np.clip(centre, least, most), math.nan)
        error = of.scale * np.where(told & ~open_, np.sqrt(sampling + noise), math.nan)
        low, high = np.where(told, np.clip(low, least, most), least), np.where(told, np.clip(high, least, most), most)
        return StrataLimits(
            estimate=estimate, error=error, low=of.origin + of.scale * low, high=of.origin + of.scale * high
        )

    @property
    def _lines(self) -> "Floats":
        """The weight of each line."""
        import numpy as np

        return np.tile(self.weights, len(self.residuals.sums) // len(self.weights))

    def _summed(self, each: "Floats") -> "Floats":
        found: Floats = each.reshape(-1, len(self.weights)).sum(axis=1)
        return found

    def _placed(self, level: float) -> _Placed:
        """Estimates, and where strata are likeliest if the whole is moved: by W·v, v the variance of each.

        A/B is off by −Σσ²b(a − θb)/B² to first order, and in all strata to the same side; (AB + Σσ²ab)/(B² + Σσ²b²) is
        not. Estimates are not held to bounds here, for what is held no longer averages out.
        """
        import numpy as np
        from scipy.special import ndtri, stdtrit

        of = self.residuals
        least, most = of.within
        lost = self.lost.ravel()
        over, under = of.sums @ of.over, np.where(lost, 1.0, of.sums @ of.under)
        mixed, own = (float((of.noise**2) @ (each * of.under)) for each in (of.over, of.under))
        theta = np.where(lost, 0.0, (over * under + mixed) / (under**2 + own))
        rows = np.maximum(of.sums @ of.number, 1.0)
        times = np.where(lost, 0.0, self._lines / under)
        placed = _Placed(theta=theta, times=times, rows=rows, move=theta, student=np.ones(len(lost)))
        # One row in the middle of the range: the variance of a stratum in which nobody was seen is not 0.
        middle = (least + most) / 2 if math.isfinite(least) and math.isfinite(most) else theta
        inner = (np.clip(theta, least, most) * rows + middle) / (rows + 1)
        found = of.scatter(inner)
        sampling = np.minimum(np.maximum(found.squares + RAISED * found.doubt, 0.0), found.bound)
        moved = np.where(times > 0, times * (of.design.rows * self._left * sampling + found.noise) / under, 0.0)
        whole = np.repeat(self._summed(self._lines * moved), len(self.weights))
        student = np.ones(len(whole) // len(self.weights))
        if of.squares is not None and not of.exact_variance:
            _, _, each = self._variances(inner, placed)
            freedom = self._summed(each) ** 2 / self._summed(each**2 / np.maximum(rows / of.design.rows - 1, 1.0))
            upper = (1 + level) / 2
            student = stdtrit(np.fmax(freedom, 1.0), upper) / ndtri(upper)
            student = np.where((of.two_valued | lost).reshape(-1, len(self.weights)).all(axis=1), 1.0, student)
        return _Placed(
            theta=theta, times=times, rows=rows, move=moved / np.where(whole > 0, whole, 1.0), student=student
        )

    @property
    def _left(self) -> "Floats | float":
        return 1.0 if self.unsampled is None else self.unsampled

    def _variances(self, theta: "Floats", placed: _Placed) -> "tuple[Floats, Floats, Floats]":
        """The variance of the whole where strata are at θ: of sampling, of noise, and what each stratum samples.

        Squares are raised once, for the noise of all of them together, and to no more than bounds allow.
        """
        import numpy as np

        of, squared = self.residuals, placed.times**2
        found = of.scatter(np.clip(theta, *of.within))
        scale = squared * of.design.rows * self._left
        each = np.where(squared > 0, scale * np.minimum(np.maximum(found.squares, 0.0), found.bound), 0.0)
        raised = self._summed(each) + RAISED * np.sqrt(self._summed((scale * found.doubt) ** 2))
        bound = self._summed(np.where(squared > 0, scale * found.bound, 0.0))
        return np.minimum(raised, bound), self._summed(squared * found.noise), each

    def _reach(self, theta: "Floats", placed: _Placed, level: float) -> "Floats":
        """How far the estimate may be from the whole where strata are at θ."""
        import numpy as np

        of = self.residuals
        sampling, noise, _ = self._variances(theta, placed)
        total = sampling + noise
        share = np.zeros(total.shape)
        if not of.gaussian:
            ratio = np.clip(theta, *of.within)
            parts = (placed.times[:, None] * (of.over - ratio[:, None] * of.under) * of.noise) ** 2
            share = np.sqrt(self._summed((parts**2).sum(axis=1))) / np.where(total > 0, total, 1.0)
        wide = multiplier(np.minimum(share, 1.0), level) * (1.0 if of.gaussian else MANY)
        found: Floats = placed.student * wide * np.sqrt(total)
        return found

    def _distance(self, placed: _Placed, side: float, level: float) -> "Floats":
        """How far from the estimate the farthest whole is that is kept on one side, a little beyond."""
        import numpy as np

        of, strata = self.residuals, len(self.weights)
        half = of.half * self._summed(self._lines * placed.times)  # half a row, of strata as they weigh

        def kept(distance: "Floats") -> "Truths":
            theta = placed.theta + side * np.repeat(distance, strata) * placed.move
            found: Truths = np.maximum(distance - half, 0.0) <= self._reach(theta, placed, level)
            return found

        inside = np.zeros(len(half))
        outer = np.full(len(half), REACH * (of.within[1] - of.within[0]))
        if not math.isfinite(outer[0]):
            outer = np.maximum(2 * self._reach(placed.theta, placed, level), 1e-12)
            for _ in range(64):
                going = kept(outer)
                if not going.any():
                    break
                outer = np.where(going, 2 * outer, outer)
        for _ in range(HALVINGS):
            middle = (inside + outer) / 2
            within = kept(middle)
            inside, outer = np.where(within, middle, inside), np.where(within, outer, middle)
        found: Floats = outer * (1 + OUTWARD)
        return found
