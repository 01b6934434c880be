"""One estimate with its whole error: sampling, and the privacy noise with its own distribution."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.columns import ResultColumn
from sfumato.core.release import Release
from sfumato.core.units import Family, User
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.linear_combination import LinearCombination
from sfumato.inference.ratio import Ratio
from sfumato.studies.result import StudyResult

if TYPE_CHECKING:
    from sfumato.studies.error_sum import ErrorSum, NoiseShape

__all__ = ["Estimate", "estimate_of", "linear_form"]

NORMAL = 1.959963985


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, the sampling variance of it, and the coefficient of each noise in it.

    >>> Estimate(value=0.3, sampling=0.01, noises=()).standard_error
    0.1
    """

    value: float
    sampling: float
    noises: tuple[tuple[float, "NoiseShape"], ...]
    sources: tuple[Release, ...] = ()

    @property
    def error(self) -> "ErrorSum":
        """The distribution of its error."""
        from sfumato.studies.error_sum import ErrorSum

        return ErrorSum.made(self.sampling, self.noises)

    @property
    def standard_error(self) -> float:
        """The root of sampling and noise variance together."""
        return math.sqrt(self.error.total)

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference of two estimates of independent samples with noise of their own."""
        less = tuple((-c, noise) for c, noise in other.noises)
        return Estimate(
            value=self.value - other.value,
            sampling=self.sampling + other.sampling,
            noises=(*self.noises, *less),
            sources=(*self.sources, *(each for each in other.sources if each not in self.sources)),
        )

    def interval(self, confidence: float) -> tuple[float, float]:
        """Low and high for the population."""
        margin = self.error.quantile((1 + confidence) / 2)
        return self.value - margin, self.value + margin

    def p_value(self, null: float) -> float:
        """How often an error as large as the distance from ``null`` occurs where ``null`` is true."""
        return min(1.0, 2 * float(self.error.below(-abs(self.value - null))))


def estimate_of(given: object) -> Estimate:
    """The estimate of a result of a study, or of a release of one share or one mean, by itself or of two groups.

    A result says ``estimate`` and ``standard_error``, as attributes or as columns of its main table. Of two groups the
    estimate is the first minus the second. A mean needs the variance released with it:
    ``table.agg(sbp=sf.mean("sbp"), spread=sf.variance("sbp"))``.
    """
    if isinstance(given, Estimate):
        return given
    if isinstance(given, Release):
        return _of_release(given)
    if isinstance(given, StudyResult):
        value, error = (_stated(given, name) for name in ("estimate", "standard error"))
        if math.isnan(error):
            error = _from_interval(given)
        if math.isfinite(value) and error > 0 and math.isfinite(error):
            return Estimate(value=value, sampling=error**2, noises=(), sources=given.sources)
        raise InvalidInput("this result has no estimate with a standard error; nothing was computed.")
    raise InvalidInput(
        f"an estimate is read off a result of a study or off a release, and this is a {type(given).__name__}; nothing "
        "was computed."
    )


def _stated(result: StudyResult, name: str) -> float:
    found = getattr(result, name.replace(" ", "_"), None)
    if isinstance(found, int | float):
        return float(found)
    column = result.table().columns.get(name, ())
    cell = column[0] if len(column) == 1 else None
    return float(cell) if isinstance(cell, int | float) else math.nan


def _from_interval(result: StudyResult) -> float:
    """The standard error that a 95% interval of one estimate is as wide as; nan where there is no such interval."""
    columns = result.table(confidence=Fraction(19, 20)).columns
    ends = [columns.get(name, ()) for name in ("low", "high")]
    if any(len(end) != 1 or not isinstance(end[0], int | float) for end in ends):
        return math.nan
    low, high = (float(end[0]) for end in ends if isinstance(end[0], int | float))
    return (high - low) / (2 * NORMAL)


def _of_release(release: Release) -> Estimate:
    said, columns = release.statement, release.columns
    limit = said.limit
    if isinstance(said.unit, User | Family) and limit is not None and limit.rows > 1:
        raise Refused(
            "a person can have several rows here, and rows of one person are no independent sample; nothing was "
            "computed. Ask a table with one row a person: table.per_person(...)."
        )
    ratios = {name: column for name, column in columns.items() if isinstance(column, Ratio)}
    spreads = [column for name, column in columns.items() if name not in ratios]
    rows = {len(column.values) for column in columns.values()}
    if len(ratios) != 1 or len(spreads) > 1 or not rows <= {1, 2}:
        raise InvalidInput(
            "a replication is of one share, or of one mean with its variance, in all or in two groups; nothing was "
            "computed. Ask proportion(...), or agg(m=sf.mean(...), v=sf.variance(...))."
        )
    (ratio,) = ratios.values()
    if not spreads and ratio.within != (0.0, 1.0):
        raise InvalidInput("a mean needs its variance in the same release: agg(m=sf.mean(…), v=sf.variance(…)).")
    found = [_one(ratio, spreads[0] if spreads else None, place, release) for place in range(len(ratio.values))]
    return found[0] if len(found) == 1 else found[0].minus(found[1])


def _one(ratio: Ratio, spread: ResultColumn | None, place: int, release: Release) -> Estimate:
    from sfumato.studies.error_sum import NoiseShape

    rows, value = float(ratio.under[place].value), float(ratio.values[place])
    if not rows > 0:
        raise InvalidInput("a group has no rows left above the noise, so there is no estimate; nothing was computed.")
    variance = value * (1 - value) if spread is None else float(spread.values[place])
    if spread is None and not 0 < value < 1:
        half = (float(ratio.over[place].value) + 0.5) / (rows + 1)  # none or all: as if half a row were there
        variance = min(max(half, 0.5 / (rows + 1)), 1 - 0.5 / (rows + 1))
        variance *= 1 - variance
    if not variance > 0:
        raise InvalidInput("the noisy variance is not above 0, so there is no estimate; nothing was computed.")
    form = linear_form(ratio, place)
    noises = tuple((float(c), NoiseShape.of(noise.law)) for noise, c in form.noises.items())
    return Estimate(value=value, sampling=variance / rows, noises=noises, sources=(release,))


def linear_form(column: ResultColumn, place: int) -> LinearCombination:
    """A number of a column with the noise in it, to first order for a ratio; without noise where none is known."""
    if isinstance(column, Ratio):
        over, under = column.over[place], column.under[place]
        if under.value == 0:
            raise InvalidInput("a group has no rows left above the noise; nothing was computed.")
        share = over.value / under.value
        left = over.plus(under, -share).scaled(1 / under.value)
        return LinearCombination(share, left.noises)
    forms: Mapping[int, LinearCombination] | tuple[LinearCombination, ...] | None = getattr(column, "forms", None)
    if forms is not None:
        return forms[place]
    return LinearCombination(Fraction(column.values[place]), {})
