"""Regressions with numeric covariates: one release of rows spread over splines, and the model fitted to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.engines.expressions import col
from sfumato.engines.spline_counts import HEIGHT
from sfumato.errors import InvalidInput
from sfumato.studies.regression.design import BoundedNumber, CodedFactor, Design
from sfumato.studies.regression.foreseen import NoiseForeseen, foreseen_in_splines
from sfumato.studies.regression.result import ModelKind, RegressionResult, excess_of
from sfumato.studies.regression.spline_fit import (
    ScoreModel,
    SplineDesign,
    fit_splines,
    furthest_shift,
    linear,
    logistic,
    poisson,
)
from sfumato.tables.clamped import Clamped
from sfumato.tables.keys import Keys
from sfumato.tables.queries.spline_counts import MOST_NUMBERS, SplineCounts
from sfumato.tables.studies_foreseen import EVEN, SPREAD, Assumed, assumed_counts, little_noise, said_of_noise
from sfumato.tables.studies_regression import Model, factor_of, kurtosis_of, number_of, single_rows
from sfumato.tables.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.tables.table import Table

__all__ = ["logistic_splines", "numbers_of", "poisson_splines", "robust_linear"]

PIECES = {0: 1, 1: 8, 2: 6, 3: 4, 4: 3}
"""Pieces of the range of each number, by how many there are: more follow the model better and hold more noise."""
LINEAR_PIECES = {0: 1, 1: 3, 2: 3, 3: 2, 4: 2}
"""The same for a linear model: splines follow its score exactly, and the squares of its residuals nearly."""
MOST_SUMS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question of spread rows, and the columns of the regression that is fitted to its answer."""

    query: SplineCounts
    made: SplineDesign
    factors: tuple[Keys, ...]
    keys: Keys | None
    """Of an outcome that has two values; the event is at ``place``."""
    place: int


def logistic_splines(
    table: "Table",
    model: Model,
    *,
    outcome: Keys,
    place: int,
    cuts: Mapping[str, Sequence[object]],
    pieces: int | None,
) -> Study[RegressionResult]:
    """The study of a logistic model in which some covariates are numbers."""
    asked = _asked(table, model, cuts=cuts, pieces=pieces, keys=outcome, place=place)
    named = f"{model.outcome} = {outcome.labels[place]}"
    return _study(table, asked, "logistic", logistic(), named, [EVEN])


def poisson_splines(
    table: "Table", model: Model, *, of: Clamped, cuts: Mapping[str, Sequence[object]], pieces: int | None
) -> Study[RegressionResult]:
    """The study of a model of log means in which some covariates are numbers."""
    asked = _asked(table, model, cuts=cuts, pieces=pieces, outcome=of)
    family = poisson(float(of.low), float(of.high))
    return _study(table, asked, "poisson", family, model.outcome, assumed_counts(of))


def robust_linear(table: "Table", model: Model, *, pieces: int | None) -> Study[RegressionResult]:
    """The study of a linear model whose residuals may vary more in some places than in others."""
    single_rows(table, "a regression", cells=True)
    asked = _asked(
        table,
        model,
        cuts={},
        pieces=pieces,
        usual=LINEAR_PIECES,
        outcome=number_of(table, model.outcome),
    )
    return _study(table, asked, "linear", linear(), model.outcome, SPREAD)


def numbers_of(table: "Table", model: Model, cuts: Mapping[str, Sequence[object]]) -> tuple[str, ...]:
    """The covariates that are numbers: with bounds, and neither cut nor named as factors."""
    return tuple(
        name
        for name in model.covariates
        if name not in cuts and name not in model.factors and (name in table.bounds or name not in table.keys)
    )


def _asked(
    table: "Table",
    model: Model,
    *,
    cuts: Mapping[str, Sequence[object]],
    pieces: int | None,
    outcome: Clamped | None = None,
    keys: Keys | None = None,
    place: int = 0,
    usual: Mapping[int, int] = PIECES,
) -> _Asked:
    chosen = numbers_of(table, model, cuts)
    if len(chosen) > MOST_NUMBERS:
        raise InvalidInput(
            f"{len(chosen)} covariates are numbers, and at most {MOST_NUMBERS} can be: every one of them multiplies "
            "how many sums there are. Nothing was done. Make groups of some, in logistic and Poisson regressions by "
            f"cuts={{{chosen[-1]!r}: [0, 40, 65, 120]}}, or declare keys and say C(name)."
        )
    if pieces is not None:
        natural(pieces, "pieces", most=64)
    numbers = tuple(number_of(table, name) for name in chosen)
    factors = tuple(
        table._computed(name, col(name).cut(list(cuts[name]))) if name in cuts else factor_of(table, name)
        for name in model.covariates
        if name not in chosen
    )
    query = SplineCounts(
        dataset=table.dataset,
        numbers=numbers,
        pieces=usual[len(numbers)] if pieces is None else pieces,
        outcome=outcome,
        where=table.predicate,
        by=(*factors, *(() if keys is None else (keys,))),
        joins=table.joins,
    )
    if query.size > MOST_SUMS:
        raise InvalidInput(
            f"these covariates make {query.size:,} sums, and noise would leave nothing of more than {MOST_SUMS:,}; "
            "nothing was done. Use fewer covariates, factors with fewer levels, or a smaller pieces=…."
        )
    of = outcome or Clamped(value=col(model.outcome).node, low=Fraction(0), high=Fraction(1))
    design = Design(
        outcome=BoundedNumber(name=model.outcome, low=of.low, high=of.high),
        numbers=tuple(
            BoundedNumber(name=name, low=each.low, high=each.high) for name, each in zip(chosen, numbers, strict=True)
        ),
        factors=tuple(CodedFactor(name=each.column, levels=tuple(map(str, each.labels))) for each in factors),
        terms=model.terms,
    )
    made = SplineDesign(design=design, bases=query.bases[: len(numbers)])
    return _Asked(query=query, made=made, factors=factors, keys=keys, place=place)


def _study(
    table: "Table",
    asked: _Asked,
    model: ModelKind,
    family: ScoreModel,
    outcome: str,
    assumed: Sequence[Assumed],
) -> Study[RegressionResult]:
    def made(release: Release) -> RegressionResult:
        return _result(release, asked, model, family, outcome)

    def enough(preview: Preview, rows: int) -> bool:
        variance = float(preview.mechanism.law.variance) / HEIGHT**2
        return little_noise(assumed, lambda each: _noise(asked, family, each, rows, variance))

    return Study(
        question=table._question(asked.query), made=made, foreseen=_foreseen(asked, family, assumed), enough=enough
    )


def _counts(release: Release, asked: _Asked) -> "NDArray[np.float64]":
    """The released numbers, in rows: by part of the outcome, cell of factors, and product of splines."""
    import numpy as np

    given = np.array([value / HEIGHT for value in release.statement.values])
    levels, splines = asked.made.levels, asked.made.splines
    if asked.keys is None:
        return np.moveaxis(given.reshape(levels, splines, -1), -1, 0)
    found = np.moveaxis(given.reshape(levels, 2, splines), 1, 0)
    return found[[asked.place, 1 - asked.place]]


def _result(release: Release, asked: _Asked, model: ModelKind, family: ScoreModel, outcome: str) -> RegressionResult:
    import numpy as np

    design = asked.made.design
    counts, variance = _counts(release, asked), float(release.statement.law.variance) / HEIGHT**2
    straight = model == "linear"
    scale = (float(design.outcome.half) if straight else 1.0) * design.to_natural
    fit = fit_splines(asked.made, family, counts, variance, scale=scale)
    definite, names = bool(fit.definite), design.names
    estimates, total = scale @ fit.estimates, np.diagonal(fit.covariance)
    if straight:
        estimates[0] += float(design.outcome.middle)
    shift = np.zeros(len(names))
    if definite and design.numbers:
        shift = np.abs(fit.inverse) @ furthest_shift(asked.made, family, fit, counts)
    held = [each.name for each in design.numbers]
    return RegressionResult(
        release=release,
        model=model,
        outcome=outcome,
        names=names,
        references=tuple((keys.column, str(keys.labels[0])) for keys in asked.factors),
        estimates=estimates if definite else np.full(len(names), np.nan),
        covariance=fit.covariance if definite else None,
        rows=float(fit.rows),
        free=max(float(fit.rows) - len(names), 1.0) if straight else np.inf,
        noise=fit.noise,
        excess=excess_of(fit.weights, variance, total, kurtosis_of(release)),
        clipped=(*(() if asked.keys is not None else (design.outcome.name,)), *held),
        splines=asked.made.bases[0].size if asked.made.bases else 0,
        shift=shift,
        doubt=fit.doubt,
        leaning=fit.leaning,
        robust=straight,
    )


def _foreseen(
    asked: _Asked, family: ScoreModel, assumed: Sequence[Assumed]
) -> Callable[[Preview, int | None], tuple[str, ...]]:
    """How much of the error will be noise, from public facts alone; ``rows`` are those of the whole table."""

    def told(preview: Preview, rows: int | None) -> tuple[str, ...]:
        deviation = float(preview.mechanism.law.variance) ** 0.5 / HEIGHT
        size = asked.query.size
        first = f"There are {size:,} counts of spread rows; each has noise of standard deviation {deviation:.3g} rows."
        if rows is None:
            return (first, "Say rows=… to see how much of the standard errors will be noise.")
        return (first, *said_of_noise(rows, assumed, lambda each: _noise(asked, family, each, rows, deviation**2)))

    return told


def _noise(asked: _Asked, family: ScoreModel, assumed: Assumed, rows: int, variance: float) -> NoiseForeseen:
    return foreseen_in_splines(asked.made, family, assumed.shares, rows, variance)
