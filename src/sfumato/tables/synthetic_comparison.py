"""Synthetic rows compared with the rows of a table: one question for all tables, and for the test of a model."""

from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.core.release import Release
from sfumato.engines.expressions import col, when
from sfumato.engines.expressions.terms import Term, term
from sfumato.errors import InvalidInput
from sfumato.laws import RoundedGaussian
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, SyntheticColumn
from sfumato.synthesis.comparison import ScoredTest, SyntheticComparison
from sfumato.synthesis.plan import weighted
from sfumato.synthesis.result import SyntheticTable
from sfumato.tables.keys import Keys, KeyValue
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.studies_cells import outcome_keys
from sfumato.tables.studies_regression import kurtosis_of, single_rows
from sfumato.tables.study import Study
from sfumato.tables.synthesized import keys_of_column

if TYPE_CHECKING:
    from sfumato.synthesis.score_model import SyntheticScore
    from sfumato.tables.table import Table

__all__ = ["comparison_of"]

SHARES = {"score": 0.3, "one": 0.2, "two": 0.5}
"""How the cost is shared by the test of a model, tables of one column and tables of two."""
MOST_BINS = 100
LEAST_SIGMA = 1e-6
"""Of numbers whose noise is too small for a double to tell it from none."""


def comparison_of(
    table: "Table",
    made: SyntheticTable,
    *,
    outcome: str | None,
    event: KeyValue | None,
    ways: int,
    bins: int,
) -> Study[SyntheticComparison]:
    """The study: tables of up to ``ways`` columns, and the score of a model of ``outcome`` by the outcome."""
    import numpy as np

    from sfumato.synthesis.agreement import cells_of, coded
    from sfumato.synthesis.measured import MeasuredTable, total_of
    from sfumato.synthesis.score_model import trained

    if not isinstance(made, SyntheticTable) or not made.columns:
        raise InvalidInput(
            "compare_synthetic takes what table.synthesize(...) made, with its columns; nothing was read and nothing "
            "was spent."
        )
    if ways not in (0, 1, 2) or isinstance(ways, bool) or (ways == 0 and outcome is None):
        raise InvalidInput(
            "ways is 2 (tables of one and two columns), 1, or 0 for the test of a model alone, which needs an outcome; "
            "nothing was read and nothing was spent."
        )
    natural(bins, "bins", least=2, most=MOST_BINS)
    single_rows(table, "a comparison with synthetic rows", cells=True)
    columns, names = made.columns, [column.name for column in made.columns]
    keys = [_keys(table, column) for column in columns]
    sizes = [column.size for column in columns]
    codes = np.stack([coded(column, made.rows[column.name]) for column in columns], axis=1)
    groups: list[tuple[list[tuple[tuple[int, ...], float]], float]] = []
    if ways:
        groups.append(([((place,), 1.0) for place in range(len(sizes))], SHARES["one"]))
    if ways == 2 and len(sizes) > 1:
        groups.append(([(some, 1.0) for some in combinations(range(len(sizes)), 2)], SHARES["two"]))
    model, happened = None, 0
    if outcome is not None:
        if outcome not in names or not isinstance(columns[names.index(outcome)], ListedColumn):
            raise InvalidInput(
                f"the outcome {outcome!r} is no column of the synthetic rows with declared keys; nothing was read and "
                f"nothing was spent. Columns are {', '.join(names)}."
            )
        place = names.index(outcome)
        happened = outcome_keys(table, outcome, event)[1]
        model = trained(codes, sizes, place, happened, bins)
        keys.append(_score(table, columns, model))
        groups.append(([((place, len(sizes)), 1.0)], SHARES["score"]))
        sizes.append(len(model.edges) + 1)
    plan = weighted(sizes, groups, "comparison")
    query = WeightedMarginals(
        dataset=table.dataset,
        by=tuple(keys),
        tables=plan.tables,
        weights=plan.weights,
        missing=tuple(column.name for column in columns if column.missing),
        where=table.predicate,
        joins=table.joins,
    )

    def compared(release: Release) -> SyntheticComparison:
        sigma = max(float(release.statement.law.variance) ** 0.5, LEAST_SIGMA)
        found = [
            MeasuredTable(
                columns=some,
                counts=np.array(values, dtype=float).reshape([sizes[place] for place in some]) / weight,
                sigma=sigma / weight,
            )
            for some, weight, values in query.answers(release.statement.values)
        ]
        kept = [each for each in found if len(names) not in each.columns]
        exact = sum(1 / (each.sigma**2 * each.counts.size) for each in found)
        counted = [cells_of(codes, each.columns, sizes) for each in kept]
        test = None
        if model is not None and outcome is not None:
            counts = found[-1].counts
            own = [
                np.bincount(model.bins(codes[codes[:, names.index(outcome)] == side]), minlength=sizes[-1]).astype(
                    float
                )
                for side in (happened, 1 - happened)
            ]
            label = keys[names.index(outcome)].labels[happened]
            test = ScoredTest(
                outcome=f"{outcome} = {label}",
                events=counts[happened],
                others=counts[1 - happened],
                sigma=found[-1].sigma,
                own=(own[0], own[1]),
            )
        return SyntheticComparison(
            release=release,
            names=tuple(names),
            measured=tuple(kept),
            shares=tuple(each / max(each.sum(), 1.0) for each in counted),
            total=total_of(found),
            total_error=exact**-0.5,
            gaussian=isinstance(release.statement.law, RoundedGaussian),
            kurtosis=kurtosis_of(release),
            test=test,
        )

    return Study(question=table._question(query), made=compared)


def _keys(table: "Table", column: SyntheticColumn) -> Keys:
    """The cells of a column in this table; the values of its keys must be those of the synthetic rows."""
    if isinstance(column, ListedColumn):
        declared = table.keys.get(column.name)
        if declared is None or tuple(map(str, declared.labels)) != tuple(map(str, column.values)):
            raise InvalidInput(
                f"the table does not declare the keys of {column.name!r} that the synthetic rows have; nothing was "
                f"read and nothing was spent. Say table.with_keys({column.name}=[...]) with the same values in the "
                "same order."
            )
    return keys_of_column(table, column)


def _score(table: "Table", columns: tuple[SyntheticColumn, ...], model: "SyntheticScore") -> Keys:
    """The bins of the score as keys: a sum of the points of the cells of a row, cut at the edges of the model."""
    parts = [
        _points(table, columns[place], points) for place, points in zip(model.covariates, model.points, strict=True)
    ]
    while len(parts) > 1:  # in pairs, so that the sum is not nested deeper than it must be
        pairs = [one + two for one, two in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    name = "score"
    while name in [column.name for column in columns]:
        name += "_"
    labels = [f"bin {place + 1}" for place in range(len(model.edges) + 1)]
    return table._computed(name, parts[0].cut(list(model.edges), labels=labels, below=True, above=True))


def _points(table: "Table", column: SyntheticColumn, points: tuple[int, ...]) -> Term:
    """The points of a row for one column."""
    value = col(column.name)
    if isinstance(column, BinnedColumn):
        from datetime import date

        chosen = when(value.isnull()).then(points[-1] if column.missing else 0)
        for edge, each in zip(column.edges[1:-1], points, strict=False):
            end = date.fromordinal(int(edge)) if column.days else ceil(edge) if column.whole else edge
            chosen = chosen.when(value < end).then(each)
        return chosen.otherwise(points[column.bins - 1])
    first, *rest = zip(table.keys[column.name].values, points, strict=False)
    chosen = when(value == first[0]).then(first[1])
    for known, each in rest:
        chosen = chosen.when(value == known).then(each)
    return term(chosen.otherwise(points[-1] if column.missing else 0))
