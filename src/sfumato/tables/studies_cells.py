"""Logistic and Poisson regressions of a table: counts and sums by cell, and the model fitted to them."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import col
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.studies.regression.cells import CellFit, CellMatrix, cell_matrix, fit_logistic, fit_poisson
from sfumato.studies.regression.design import check_terms
from sfumato.studies.regression.foreseen import NoiseForeseen, foreseen_in_cells
from sfumato.studies.regression.result import ModelKind, RegressionResult, excess_of
from sfumato.tables.keys import Keys, KeyValue, keys_of
from sfumato.tables.measures.variation import Variation
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.studies_foreseen import EVEN, Assumed, assumed_counts, little_noise, said_of_noise
from sfumato.tables.studies_regression import Model, factor_of, kurtosis_of, number_of, single_rows
from sfumato.tables.studies_splines import logistic_splines, numbers_of, poisson_splines
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["logistic_regression", "outcome_keys", "poisson_regression"]

ENOUGH = 10
"""Rows in a cell, in standard deviations of its noise, from which a fit can be expected to say something."""


def logistic_regression(
    table: "Table",
    model: Model,
    *,
    cuts: Mapping[str, Sequence[object]],
    event: KeyValue | None,
    pieces: int | None = None,
) -> Study[RegressionResult]:
    """The study of a logistic model: one count of rows by covariates and outcome, spread over splines of numbers."""
    single_rows(table, "a regression", cells=True)
    _check_cuts(model, cuts)
    if numbers_of(table, model, cuts):
        outcome, place = outcome_keys(table, model.outcome, event)
        return logistic_splines(table, model, outcome=outcome, place=place, cuts=cuts, pieces=pieces)
    _check_pieces(pieces)
    factors = _factors(table, model, cuts)
    outcome, place = outcome_keys(table, model.outcome, event)
    matrix = _matrix(factors, model)
    query = Count(dataset=table.dataset, where=table.predicate, by=(*factors, outcome), joins=table.joins)

    def made(release: Release) -> RegressionResult:
        counts = np.array(release.statement.values, dtype=float).reshape(len(matrix.rows), 2)
        variance = float(release.statement.law.variance)
        fit = fit_logistic(matrix.rows, counts[:, place], counts[:, 1 - place], variance)
        named = f"{model.outcome} = {outcome.labels[place]}"
        return _result(release, "logistic", named, matrix, fit, factors, variance)

    def noise(each: Assumed, rows: int, variance: float) -> NoiseForeseen:
        events, others = (share * rows / len(matrix.rows) for share in each.shares)
        full = np.ones(len(matrix.rows))
        return foreseen_in_cells(lambda v: fit_logistic(matrix.rows, events * full, others * full, v), variance)

    return Study(
        question=table._question(query),
        made=made,
        foreseen=_foreseen(len(matrix.rows), 1, [EVEN], noise),
        enough=_enough(1, [EVEN], noise),
    )


def poisson_regression(
    table: "Table", model: Model, *, cuts: Mapping[str, Sequence[object]], pieces: int | None = None
) -> Study[RegressionResult]:
    """The study of a model of log means: rows, sums and squares of the outcome by covariates, in one release."""
    single_rows(table, "a regression", cells=True)
    _check_cuts(model, cuts)
    of = number_of(table, model.outcome)
    if of.low < 0:
        raise InvalidInput(
            f"the outcome of a Poisson regression is never negative, and the bounds of {model.outcome!r} begin at "
            f"{of.low}; nothing was done. Declare bounds from 0 on, or use linear_regression(...)."
        )
    if numbers_of(table, model, cuts):
        return poisson_splines(table, model, of=of, cuts=cuts, pieces=pieces)
    _check_pieces(pieces)
    factors = _factors(table, model, cuts)
    matrix = _matrix(factors, model)
    query = Aggregate(
        dataset=table.dataset,
        measures=(Variation(name="variance", of=of),),
        where=table.predicate,
        by=factors,
        joins=table.joins,
    )
    height = query.row_height

    def made(release: Release) -> RegressionResult:
        parts = np.array([value / height for value in release.statement.values]).reshape(3, len(matrix.rows))
        variance = float(release.statement.law.variance) / height**2
        fit = fit_poisson(matrix.rows, parts, float(of.low), float(of.high), variance)
        return _result(release, "poisson", model.outcome, matrix, fit, factors, variance, clipped=(model.outcome,))

    def noise(each: Assumed, rows: int, variance: float) -> NoiseForeseen:
        parts = np.multiply.outer(each.shares, np.full(len(matrix.rows), rows / len(matrix.rows)))
        low, high = float(of.low), float(of.high)
        return foreseen_in_cells(lambda v: fit_poisson(matrix.rows, parts, low, high, v), variance)

    assumed = assumed_counts(of)
    return Study(
        question=table._question(query),
        made=made,
        foreseen=_foreseen(len(matrix.rows), height, assumed, noise),
        enough=_enough(height, assumed, noise),
    )


def outcome_keys(table: "Table", column: str, event: KeyValue | None) -> tuple[Keys, int]:
    """The two values of an outcome, and the place of the one that is the event."""
    found = table.keys.get(column)
    if found is None and table.bounds.get(column) == (Fraction(0), Fraction(1)):
        found = keys_of(column, [0, 1])
    if found is None:
        known = ", ".join(sorted(table.keys)) or "none"
        raise NotDeclared(
            f"the outcome {column!r} needs its two values as declared keys (declared: {known}). Nothing was done. Say "
            f"table.with_keys({column}=[False, True]), or the two texts or numbers that it holds."
            f"{did_you_mean(column, table.keys)}"
        )
    if found.size != 2:
        raise InvalidInput(
            f"the outcome {column!r} has {found.size} declared values, and an outcome has two; nothing was done."
        )
    if event is None:
        return found, 0 if found.values[0] is True else 1
    if event not in found.labels or isinstance(event, bool) is not isinstance(found.labels[0], bool):
        raise InvalidInput(
            f"{event!r} is no value of the outcome {column!r}, which has {', '.join(map(repr, found.labels))}; nothing "
            "was done."
        )
    return found, found.labels.index(event)


def _check_cuts(model: Model, cuts: Mapping[str, Sequence[object]]) -> None:
    unknown = [name for name in cuts if name not in model.covariates]
    if unknown:
        raise InvalidInput(
            f"cuts names {', '.join(map(str, unknown))}, which is no covariate; nothing was done. Covariates are "
            f"{', '.join(model.covariates) or 'none'}.{did_you_mean(unknown[0], model.covariates)}"
        )


def _check_pieces(pieces: int | None) -> None:
    if pieces is not None:
        raise InvalidInput(
            "pieces=… says over how many pieces the range of a number is spread, and no covariate here is a number; "
            "nothing was done."
        )


def _factors(table: "Table", model: Model, cuts: Mapping[str, Sequence[object]]) -> tuple[Keys, ...]:
    return tuple(
        table._computed(name, col(name).cut(list(cuts[name]))) if name in cuts else factor_of(table, name)
        for name in model.covariates
    )


def _matrix(factors: Sequence[Keys], model: Model) -> CellMatrix:
    check_terms(model.terms)
    return cell_matrix([(keys.column, tuple(map(str, keys.labels))) for keys in factors], model.terms)


def _result(
    release: Release,
    model: ModelKind,
    outcome: str,
    matrix: CellMatrix,
    fit: CellFit,
    factors: Sequence[Keys],
    variance: float,
    clipped: tuple[str, ...] = (),
) -> RegressionResult:
    definite, total = bool(fit.definite), np.diagonal(fit.covariance)
    return RegressionResult(
        release=release,
        model=model,
        outcome=outcome,
        names=matrix.names,
        references=tuple((keys.column, str(keys.labels[0])) for keys in factors),
        estimates=fit.estimates if definite else np.full(len(matrix.names), np.nan),
        covariance=fit.covariance if definite else None,
        rows=float(fit.rows),
        free=np.inf,
        noise=fit.noise,
        excess=excess_of(fit.weights, variance, total, kurtosis_of(release)),
        clipped=clipped,
        doubt=fit.doubt,
        leaning=fit.leaning,
    )


def _enough(
    height: int, assumed: Sequence[Assumed], noise: Callable[[Assumed, int, float], NoiseForeseen]
) -> Callable[[Preview, int], bool]:
    def enough(preview: Preview, rows: int) -> bool:
        variance = float(preview.mechanism.law.variance) / height**2
        return little_noise(assumed, lambda each: noise(each, rows, variance))

    return enough


def _foreseen(
    cells: int, height: int, assumed: Sequence[Assumed], noise: Callable[[Assumed, int, float], NoiseForeseen]
) -> Callable[[Preview, int | None], tuple[str, ...]]:
    """Whether cells are large enough, from public facts alone; ``rows`` are those of the whole table."""

    def told(preview: Preview, rows: int | None) -> tuple[str, ...]:
        deviation = float(preview.mechanism.law.variance) ** 0.5 / height
        first = (
            f"There are {cells} cells of covariates; each number has noise of standard deviation {deviation:.3g} rows."
        )
        if rows is None:
            return (first,)
        said = said_of_noise(rows, assumed, lambda each: noise(each, rows, deviation**2))
        if rows < ENOUGH * deviation * cells:
            return (
                first,
                *said[:1],
                f"With {rows:,} rows in all a cell has {rows / cells:.3g} on average: much of each standard error will "
                "be noise, and coefficients may have no finite interval. Use fewer or coarser groups, or more ε.",
            )
        return (first, *said)

    return told
