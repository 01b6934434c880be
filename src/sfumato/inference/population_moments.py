"""Intervals for the variance, the covariance and the correlation of a population.

Nothing about fourth moments is measured, and skewed data have variances that methods for normal values do not cover. So
the sampling variance of Σ(x − μ)² is bounded by what values within their bounds can have at the most, at the candidate
itself, as for a share; the interval is wider than it need be. Proof: docs/proofs/population.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from sfumato.inference.normal_laplace import multiplier
from sfumato.inference.population import INDEPENDENT, SampleDesign

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Truths = npt.NDArray[np.bool_]

__all__ = ["CorrelationScores", "CovarianceScores", "MomentSums", "VarianceScores"]

HALVINGS = 32
QUARTER = 0.25  # the most that a variance on [0, 1] can be, and a covariance of two such values
Limits = tuple["Floats", "Floats"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentSums:
    """Noisy sums over rows, a line for each group, and by which weights they tell the moments of values on [0, 1].

    ``noise`` is the standard deviation of the noise in each column. ``number`` adds up to the rows, ``first`` and
    ``second`` to both values, ``product`` to their products.
    """

    sums: "Floats"
    noise: "Floats"
    gaussian: bool
    number: "Floats"
    first: "Floats"
    second: "Floats"
    product: "Floats"
    design: SampleDesign = INDEPENDENT

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        return replace(self, sums=self.sums[list(places)])

    @property
    def rows(self) -> "Floats":
        """The noisy number of rows, at least 1."""
        import numpy as np

        return np.maximum(self.sums @ self.number, 1.0)

    def mean(self, weights: "Floats") -> "Floats":
        """The noisy mean of a value, held to [0, 1]."""
        import numpy as np

        return np.clip((self.sums @ weights) / self.rows, 0.0, 1.0)

    def reach(self, sampling: "Floats", noise: "Floats", level: float) -> "Floats":
        """How far sampling and noise of these variances carry a sum, with this probability."""
        import numpy as np

        total = sampling + noise
        share = np.zeros(total.shape) if self.gaussian else noise / np.where(total > 0, total, 1.0)
        found: Floats = multiplier(share, level) * np.sqrt(total)
        return found

    def mean_reach(self, weights: "Floats", variance: "Floats", level: float) -> "Floats":
        """How far the noisy mean of a value with this variance can be from that of the population."""
        own = ((weights[None, :] - self.mean(weights)[:, None] * self.number) ** 2) @ (self.noise**2)
        return self.reach(self.design.rows * self.rows * variance, own, level) / self.rows

    def centred(self) -> "tuple[Floats, Floats]":
        """The sum of products around the noisy means, and the variance of the noise in it."""
        a, b = self.mean(self.first)[:, None], self.mean(self.second)[:, None]
        weights = self.product - b * self.first - a * self.second + a * b * self.number
        return (self.sums * weights).sum(axis=1), (weights**2) @ (self.noise**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceScores:
    """The variance of a value in a population, or with ``root`` the standard deviation, in units of ``scale``.

    For a candidate v the mean of (x − μ)² is v, and its variance at most v(c − v), where no (x − μ)² is above c. The
    interval holds every v from which the noisy sum of squares is no farther than that and the noise carry it; the
    distance between the noisy mean and μ can only have made the sum smaller, and is added.

    Guarantee: none for single data; simulated coverage at 95% is at least 95% (tests/inference). Assumes: as for
    :class:`~sfumato.inference.population.Residuals`.
    """

    moments: MomentSums
    scale: float = 1.0
    root: bool = False

    @property
    def quality(self) -> str:
        """At least the stated confidence, also for several rows of a person."""
        return self.moments.design.quality if self.moments.design.rows > 1 else "population.conservative"

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        return replace(self, moments=self.moments.at(places))

    def ends(self, level: float) -> list[tuple[float, float]]:
        """Low and high in each group, each with probability ``level`` by itself."""
        import numpy as np

        low, high = (self.scale * side for side in self.limits(level))
        if self.root:
            low, high = np.sqrt(low), np.sqrt(high)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def limits(self, level: float) -> Limits:
        """The same as two arrays, of the variance on [0, 1]."""
        import numpy as np

        seen = self.moments.centred()[0] / self.moments.rows
        point = np.clip(seen, 0.0, QUARTER)
        sides = []
        for outer, upper in ((np.zeros(point.shape), False), (np.full(point.shape, QUARTER), True)):
            inside, beyond = point.copy(), outer
            open_ = self._kept(outer, level, upper=upper)
            for _ in range(HALVINGS):
                middle = (inside + beyond) / 2
                kept = self._kept(middle, level, upper=upper)
                inside, beyond = np.where(kept, middle, inside), np.where(kept, beyond, middle)
            sides.append(np.where(open_, outer, beyond))
        return sides[0], sides[1]

    def _kept(self, variance: "Floats", level: float, *, upper: bool) -> "Truths":
        import numpy as np

        held = self.moments
        mean, rows = held.mean(held.first), held.rows
        far = held.mean_reach(held.first, variance, level)
        most = np.minimum(np.maximum(mean, 1 - mean) + far, 1.0) ** 2
        squares, noise = held.centred()
        sampling = held.design.rows * rows * np.maximum(variance * (most - variance), 0.0)
        reach = held.reach(sampling, noise, level) + most / 2  # half of what one row brings, as for a share
        found: Truths = (
            variance * rows - squares - rows * far**2 <= reach if upper else squares - variance * rows <= reach
        )
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CovarianceScores:
    """The covariance of two values in a population, in units of ``scale``.

    The variance of (x − μ)(y − ν) is at most that of values between its bounds, and at most the variance of one value
    times the largest square of the other. ``first`` and ``second`` are the variances where squares were measured.
    """

    moments: MomentSums
    scale: float = 1.0
    first: VarianceScores | None = None
    second: VarianceScores | None = None

    @property
    def quality(self) -> str:
        """At least the stated confidence, also for several rows of a person."""
        return self.moments.design.quality if self.moments.design.rows > 1 else "population.conservative"

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        first, second = (None if each is None else each.at(places) for each in (self.first, self.second))
        return replace(self, moments=self.moments.at(places), first=first, second=second)

    def ends(self, level: float) -> list[tuple[float, float]]:
        """Low and high in each group, each with probability ``level`` by itself."""
        low, high = (self.scale * side for side in self.limits(level))
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def limits(self, level: float) -> Limits:
        """The same as two arrays, of values on [0, 1]."""
        import numpy as np

        held = self.moments
        means = held.mean(held.first), held.mean(held.second)
        variances = [
            means[place] * (1 - means[place]) if each is None else each.limits(level)[1]
            for place, each in enumerate((self.first, self.second))
        ]
        far = [
            held.mean_reach(weights, variance, level)
            for weights, variance in zip((held.first, held.second), variances, strict=True)
        ]
        if self.first is None or self.second is None:  # the bound at the mean that is nearest to the middle
            nearest = [np.clip(0.5, mean - width, mean + width) for mean, width in zip(means, far, strict=True)]
            variances = [np.minimum(mean * (1 - mean), QUARTER) for mean in nearest]
        u, v = (np.minimum(np.maximum(mean, 1 - mean) + width, 1.0) for mean, width in zip(means, far, strict=True))
        scatter = np.minimum(variances[0] * v**2, variances[1] * u**2)
        products, noise = held.centred()
        reach = held.reach(held.design.rows * held.rows * scatter, noise, level)
        reach = (reach + u * v / 2 + held.rows * far[0] * far[1]) / held.rows
        middle = np.clip(products / held.rows, -QUARTER, QUARTER)
        return np.maximum(middle - reach, -QUARTER), np.minimum(middle + reach, QUARTER)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrelationScores:
    """The correlation in a population, from the covariance and both variances, which share the doubt."""

    together: CovarianceScores

    @property
    def quality(self) -> str:
        """At least the stated confidence, also for several rows of a person."""
        return self.together.quality

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        return replace(self, together=self.together.at(places))

    def ends(self, level: float) -> list[tuple[float, float]]:
        """Low and high in each group, each with probability ``level`` by itself."""
        low, high = self.limits(level)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def limits(self, level: float) -> Limits:
        """The same as two arrays."""
        import numpy as np

        each = 1 - (1 - level) / 3
        low, high = self.together.limits(each)
        if self.together.first is None or self.together.second is None:
            return np.full(low.shape, -1.0), np.full(high.shape, 1.0)
        (one, more), (two, most) = self.together.first.limits(each), self.together.second.limits(each)
        with np.errstate(all="ignore"):
            least, greatest = np.sqrt(one * two), np.sqrt(more * most)
            down = np.where(low < 0, low / least, low / greatest)
            up = np.where(high > 0, high / least, high / greatest)
        down = np.where(least > 0, down, np.where(low < 0, -1.0, 0.0))
        up = np.where(least > 0, up, np.where(high > 0, 1.0, 0.0))
        return np.clip(down, -1.0, 1.0), np.clip(up, -1.0, 1.0)
