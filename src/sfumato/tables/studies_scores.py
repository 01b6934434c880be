"""The area under the curve and the calibration of a score column: one count by bins of the score and the outcome."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.description import plain
from sfumato.core.exact import Exact, natural, rational
from sfumato.core.release import Release
from sfumato.engines.expressions import col
from sfumato.errors import InvalidInput
from sfumato.studies.regression.scores import AucResult, CalibrationResult
from sfumato.tables.keys import KeyValue
from sfumato.tables.queries.count import Count
from sfumato.tables.studies_cells import outcome_keys
from sfumato.tables.studies_regression import kurtosis_of, number_of, single_rows
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["auc", "calibration"]

MOST_BINS = 1000
Made = TypeVar("Made", AucResult, CalibrationResult)


def auc(
    table: "Table", score: str, outcome: str, bins: int | Sequence[Exact], event: KeyValue | None
) -> Study[AucResult]:
    """The study of how well a score tells events from others."""
    return _scored(table, score, outcome, bins, event, AucResult)


def calibration(
    table: "Table", score: str, outcome: str, bins: int | Sequence[Exact], event: KeyValue | None
) -> Study[CalibrationResult]:
    """The study of whether a score is the probability of the event."""
    return _scored(table, score, outcome, bins, event, CalibrationResult)


def _scored(
    table: "Table",
    score: str,
    outcome: str,
    bins: int | Sequence[Exact],
    event: KeyValue | None,
    kind: Callable[..., Made],
) -> Study[Made]:
    single_rows(table, "a study of a score", cells=True)
    of = number_of(table, score)
    edges = _edges(of.low, of.high, bins)
    names = [f"[{plain(low)}, {plain(high)})" for low, high in pairwise(edges)]
    names[-1] = names[-1][:-1] + "]"
    cut = col(score).cut(list(edges[1:-1]), labels=names, below=True, above=True)  # beyond a bound is at the bound
    keys, place = outcome_keys(table, outcome, event)
    query = Count(
        dataset=table.dataset,
        where=table.predicate,
        by=(table._computed(score, cut), keys),
        joins=table.joins,
    )

    def made(release: Release) -> Made:
        import numpy as np

        counts = np.array(release.statement.values, dtype=float).reshape(len(names), 2)
        return kind(
            release=release,
            outcome=f"{outcome} = {keys.labels[place]}",
            score=score,
            edges=edges,
            events=counts[:, place],
            others=counts[:, 1 - place],
            variance=float(release.statement.law.variance),
            kurtosis=kurtosis_of(release),
        )

    return Study(question=table._question(query), made=made)


def _edges(low: Fraction, high: Fraction, bins: int | Sequence[Exact]) -> tuple[Fraction, ...]:
    """Edges of bins from the low to the high bound: this many of one width, or as they were given."""
    if isinstance(bins, int):
        natural(bins, "bins", least=2, most=MOST_BINS)
        return tuple(low + (high - low) * Fraction(place, bins) for place in range(bins + 1))
    edges = tuple(rational(edge, "edge of a bin") for edge in bins)
    if len(edges) < 3 or any(one >= two for one, two in pairwise(edges)):
        raise InvalidInput("bins are a number, or rising edges of two bins or more; nothing was done.")
    return edges
