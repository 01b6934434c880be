"""Intervals for a population: sampling and privacy noise together, for means, shares, ratios and quantiles.

The people in the data are taken for a sample. For a candidate θ the sum of residuals Σ(y − θx) is sampling error plus
noise, and both variances are known at θ: the first from private sums of squares, rounded up, or from what bounded
values can have at the most. The interval holds every θ for which that sum is not too far from 0. All groups are worked
out at once, in arrays. Proof: docs/proofs/population.md
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, Self

from sfumato import laws
from sfumato.core.exact import Exact, confidence_level
from sfumato.core.limits import Limit
from sfumato.core.units import Family, Unit
from sfumato.errors import InvalidInput
from sfumato.inference.normal_laplace import multiplier
from sfumato.inference.proportion import proportion_limits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.core.query import Law

    Floats = npt.NDArray[np.float64]
    Truths = npt.NDArray[np.bool_]

__all__ = [
    "INDEPENDENT",
    "RAISED",
    "Population",
    "Residuals",
    "SampleDesign",
    "Scatter",
    "design_of",
    "level_for",
    "nearly_normal",
    "picked_from",
]

RAISED = 1.2815515655446004  # standard deviations of its noise by which a private sum of squares is raised (90%)
HALVINGS = 32
SEEN = 2.0  # standard deviations of its noise above which values between the bounds are seen
NOBODY, HALF_ROW = 1e-6, 0.5
FEW, LITTLE = 200, 0.1  # skewed values: below this many, with a smaller share of noise, coverage is not stated
OUTWARD = 1e-8  # of the distance of an end from the point: more than halving and double precision leave


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleDesign:
    """How rows were sampled: ``rows`` is how many of one person can be in a group, at most.

    Rows of one person are alike. Whatever they are, Var(Σe) ≤ rows·Σe² (Cauchy–Schwarz), so the sampling variance is
    multiplied by ``rows``. With ``single`` each row is a unit of its own, and rows are taken for independent.
    """

    rows: int = 1
    single: bool = False
    families: bool = False
    """Whether ``rows`` are those of a family and not of one person."""

    @property
    def quality(self) -> str:
        """The key of the message that says what several rows of one person, or family, do to an interval."""
        return "population.families" if self.families else "population.clusters"


INDEPENDENT = SampleDesign()


def design_of(unit: Unit, limit: Limit | None, *, across: bool = False) -> SampleDesign:
    """How many rows of one unit can be in a group; ``across`` all groups, where these are put together again.

    >>> from sfumato.core.units import user
    >>> design_of(user("id", relation="replace"), Limit(groups=2, rows_per_group=3), across=True).rows
    6
    """
    if limit is None:
        return SampleDesign(single=True)
    families = isinstance(unit, Family)
    members = unit.size if isinstance(unit, Family) else 1
    return SampleDesign(rows=members * (limit.rows if across else limit.rows_per_group), families=families)


class Population(Protocol):
    """What estimates a value of a population: intervals for each number, all of them at one level."""

    @property
    def quality(self) -> str:
        """The key of the message that says how far the confidence can be relied on."""
        ...

    def ends(self, level: float) -> "Sequence[tuple[int | float | Fraction, int | float | Fraction]]":
        """Low and high of each number, which hold the population's with probability ``level``, each by itself."""
        ...

    def at(self, places: Sequence[int]) -> "Population":
        """Some of the numbers."""
        ...


def nearly_normal(law: "Law") -> bool:
    """Whether noise has no heavier tails than a normal variable; all other noise is taken for Laplace."""
    return isinstance(law, laws.RoundedGaussian | laws.DiscreteGaussian | laws.Gaussian)


def picked_from(sampled: "Callable[[], Population] | None", places: Sequence[int]) -> "Callable[[], Population] | None":
    """Some of the numbers of what is worked out later; None where there is nothing."""
    return None if sampled is None else lambda: sampled().at(places)


def level_for(confidence: Exact, numbers: int, *, joint: bool) -> float:
    """The confidence of each of several numbers; with ``joint`` they share the doubt, as persons may be in several.

    >>> level_for(0.95, 10, joint=True)
    0.995
    """
    level = confidence_level(confidence)
    return float(1 - (1 - level) / max(1, numbers if joint else 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """The variance of a sum of residuals in each group: by ``squares``, with the deviation of the noise in these.

    ``bound`` is the largest that values within bounds can have, ``noise`` the variance of the noise in the sum itself.
    """

    squares: "Floats"
    doubt: "Floats"
    bound: "Floats"
    noise: "Floats"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residuals:
    """Σy/Σx of a population in each group, by the sums of residuals y − θx: a mean where x is 1, or a share.

    ``sums`` are noisy sums over rows, one line for each group, and ``noise`` the standard deviation of the noise in
    each column. Everything else says by which weights they are added up: ``over`` to Σy, ``under`` to Σx, ``number`` to
    the rows, and ``squares`` to the terms of Σ(y − θx)² with θ⁰, θ¹ and θ². Where values lie ``within`` two bounds and
    x is 1, their variance is at most (θ − low)(high − θ), and that alone decides where there are no squares.

    Guarantee: none for single data; simulated coverage is at least 94.5% at 95%, from 30 rows up, where noise is at
    least a tenth of the variance (tests/inference/test_population_coverage.py). Assumes: persons (or rows, where these
    are protected) are independent and drawn alike; the estimand is that of values as they were held to their bounds.
    """

    sums: "Floats"
    noise: "Floats"
    gaussian: bool
    over: "Floats"
    under: "Floats"
    number: "Floats"
    squares: "Floats | None" = None
    within: tuple[float, float] = (-math.inf, math.inf)
    design: SampleDesign = INDEPENDENT
    between: "Floats | None" = None
    """By which weights sums add up to Σt(1 − t) or a multiple of it: 0 where all values are bounds."""
    half: float = 0.0
    """What is taken off the distance: half a row where rows are counted."""
    exact_variance: bool = False
    """Whether values are the bounds and nothing between, as of a share: then the bound is the variance."""
    rounding: float = 0.0
    """How far rounding of single values can have moved the ratio."""
    origin: float = 0.0
    scale: float = 1.0
    """Ends are shown as origin + scale·θ, for values that were brought to [0, 1]."""
    wider: "dict[float, Floats]" = field(default_factory=dict, init=False, repr=False, compare=False)
    """By level, what Student's quantile was found to be: a search for an end asks for it dozens of times."""

    @property
    def quality(self) -> str:
        """About the stated confidence, or at least that; for few values with little noise it says so."""
        import numpy as np

        if self.design.rows > 1:
            return self.design.quality
        if self.squares is None:
            return "population.about" if self.exact_variance else "population.conservative"
        rows = self.sums @ self.number
        with np.errstate(all="ignore"):
            sampling, noise = self._variances(self._centre())
            few = (rows < FEW) & (noise < LITTLE * (sampling + noise))
        return "population.skewed" if few.any() else "population.about"

    def variance(self, ratio: "Floats") -> "Floats":
        """The variance of the noisy ratio at a true θ: of sampling and of noise, over the square of Σx."""
        import numpy as np

        sampling, noise = self._variances(np.asarray(ratio, dtype=float))
        found: Floats = (sampling + noise) / (self.sums @ self.under) ** 2
        return found

    def at(self, places: Sequence[int]) -> Self:
        """Some of the groups."""
        return replace(self, sums=self.sums[list(places)])

    def ends(self, level: float) -> list[tuple[float, float]]:
        """Low and high in each group, each with probability ``level`` by itself."""
        low, high = self.limits(level)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def limits(self, level: float) -> "tuple[Floats, Floats]":
        """The same as two arrays."""
        import numpy as np

        with np.errstate(all="ignore"):
            centre = self._centre()
            if self.exact_variance and self.within == (0.0, 1.0):
                low, high = self._share_ends(centre, level)
            else:
                low, high = (self._end(centre, side, level) for side in (-1.0, 1.0))
        least, most = self.within
        low, high = np.maximum(low - self.rounding, least), np.minimum(high + self.rounding, most)
        return self.origin + self.scale * low, self.origin + self.scale * high

    def _centre(self) -> "Floats":
        """The noisy ratio, held to its bounds; where Σx is not above 0, the middle of them, or 0."""
        import numpy as np

        over, under = self.sums @ self.over, self.sums @ self.under
        least, most = self.within
        middle = (least + most) / 2 if math.isfinite(least) and math.isfinite(most) else 0.0
        return np.clip(np.where(under == 0, middle, over / np.where(under == 0, 1.0, under)), least, most)

    def scatter(self, ratio: "Floats") -> "Scatter":
        """What the sums say of the variance of the sum of residuals at a ratio."""
        import numpy as np

        weights = self.over[None, :] - ratio[:, None] * self.under[None, :]
        noise = (weights**2) @ (self.noise**2)
        least, most = self.within
        bound = np.full(noise.shape, math.inf)
        if math.isfinite(least) and math.isfinite(most):
            rows = np.maximum(self.sums @ self.number, 1.0)
            bound = rows * np.maximum((ratio - least) * (most - ratio), 0.0)
            if self.squares is None or self.exact_variance:
                return Scatter(squares=bound, doubt=np.zeros(noise.shape), bound=bound, noise=noise)
        if self.squares is None:
            raise InvalidInput("neither squares nor bounds say how far residuals scatter; nothing was computed.")
        terms = self.squares[0] + ratio[:, None] * self.squares[1] + ratio[:, None] ** 2 * self.squares[2]
        doubt = np.sqrt((terms**2) @ (self.noise**2))
        squares = (self.sums * terms).sum(axis=1)
        if self.between is not None:
            two = self.two_valued
            squares, doubt = np.where(two, bound, squares), np.where(two, 0.0, doubt)
        return Scatter(squares=squares, doubt=doubt, bound=bound, noise=noise)

    @property
    def two_valued(self) -> "Truths":
        """Groups whose values are the two bounds, as far as the noise lets anybody see: 0 and 1 asked as a mean.

        Their variance is the bound itself, as of a share. Estimated from few values that are 1 it is too small.
        """
        import numpy as np

        if self.exact_variance or self.between is None:
            return np.full(len(self.sums), self.exact_variance)
        doubt = math.sqrt(float((self.between**2) @ (self.noise**2)))
        found: Truths = self.sums @ self.between <= max(SEEN * doubt, NOBODY)
        return found

    def _variances(self, ratio: "Floats") -> "tuple[Floats, Floats]":
        """The variance of the sum of residuals at a ratio: what sampling brings at the most, and the noise."""
        import numpy as np

        found = self.scatter(ratio)
        raised = np.maximum(found.squares + RAISED * found.doubt, 0.0)
        return self.design.rows * np.minimum(raised, found.bound), found.noise

    def _kept(self, ratio: "Floats", level: float) -> "Truths":
        """Whether the sum of residuals at a ratio is as near to 0 as sampling and noise leave it."""

        sampling, noise = self._variances(ratio)
        return self._near(self.sums @ self.over - ratio * (self.sums @ self.under), sampling, noise, level)

    def _near(self, distance: "Floats", sampling: "Floats", noise: "Floats", level: float) -> "Truths":
        import numpy as np

        reach = self._multiplier(sampling, noise, level) * np.sqrt(sampling + noise) * self._known_student(level)
        half = self.half if self.between is None else np.where(self.two_valued, HALF_ROW, self.half)
        found: Truths = np.maximum(np.abs(distance) - half, 0.0) <= reach
        return found

    def _multiplier(self, sampling: "Floats", noise: "Floats", level: float) -> "Floats":
        """How many standard deviations hold the sum of residuals, for the share of its variance that is noise."""
        import numpy as np

        total = sampling + noise
        share = np.zeros(total.shape) if self.gaussian else noise / np.where(total > 0, total, 1.0)
        return multiplier(share, level)

    def _share_ends(self, centre: "Floats", level: float) -> "tuple[Floats, Floats]":
        """Both ends of a share, a little beyond."""
        import numpy as np

        square = self.noise**2
        low, high = proportion_limits(
            self.sums @ self.over,
            self.sums @ self.under,
            (self.over**2 @ square, (self.over * self.under) @ square, self.under**2 @ square),
            lambda p: self._multiplier(*self._variances(p), level),
            half=self.half,
            rows=self.design.rows,
        )
        return low - OUTWARD * np.abs(low - centre), high + OUTWARD * np.abs(high - centre)

    def _known_student(self, level: float) -> "Floats":
        if level not in self.wider:
            self.wider[level] = self._student(level)
        return self.wider[level]

    def _student(self, level: float) -> "Floats":
        """How much wider Student's quantile is than the normal one, for a variance that was estimated."""
        import numpy as np
        from scipy.special import ndtri, stdtrit

        if self.squares is None or self.exact_variance:
            return np.ones(len(self.sums))
        freedom = np.maximum(self.sums @ self.number / self.design.rows - 1, 1.0)
        upper = (1 + level) / 2
        found: Floats = stdtrit(freedom, upper) / ndtri(upper)
        return found if self.between is None else np.where(self.two_valued, 1.0, found)

    def _end(self, centre: "Floats", side: float, level: float) -> "Floats":
        """The farthest ratio on one side that is kept, a little beyond; the bound where that is kept."""
        import numpy as np

        bound = self.within[0] if side < 0 else self.within[1]
        if math.isfinite(bound):
            outer = np.full(centre.shape, bound)
            open_ = self._kept(outer, level)
        else:
            outer, open_ = self._beyond(centre, side, level)
        inside = centre.copy()
        for _ in range(HALVINGS):
            middle = (inside + outer) / 2
            kept = self._kept(middle, level)
            inside, outer_ = np.where(kept, middle, inside), np.where(kept, outer, middle)
            outer = outer_
        found = outer + side * OUTWARD * np.abs(outer - centre)
        return np.where(open_, bound, found)

    def _beyond(self, centre: "Floats", side: float, level: float) -> "tuple[Floats, Truths]":
        """A ratio that is not kept, and where there is none however far."""
        import numpy as np

        under = self.sums @ self.under
        noise = (self.under**2) @ (self.noise**2)
        squares = np.zeros(under.shape)
        if self.squares is not None:
            raised = self.sums @ self.squares[2] + RAISED * math.sqrt(float((self.squares[2] ** 2) @ (self.noise**2)))
            squares = self.design.rows * np.maximum(raised, 0.0)
        open_ = self._near(np.abs(under) - self.half, squares, np.full(under.shape, noise), level)
        sampling, own = self._variances(centre)
        step = np.maximum(np.sqrt(sampling + own) / np.where(under == 0, 1.0, np.abs(under)), 1e-12)
        going = ~open_
        for _ in range(64):
            going = going & self._kept(centre + side * step, level)
            if not going.any():
                break
            step = np.where(going, 2 * step, step)
        return centre + side * step, open_ | going
