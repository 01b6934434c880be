"""The study of batches: the question for all sums of one charge, and what a preview says of its test."""

import math
from typing import TYPE_CHECKING

from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Term
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.studies.batches import ENOUGH, BatchComparison
from sfumato.tables.clamped import clamped
from sfumato.tables.independent_rows import check_independent
from sfumato.tables.measure import Asked
from sfumato.tables.measures.batch_mean import BatchMean
from sfumato.tables.provenance import FIELDS, is_still_declared, provenance_of
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["batches_of"]

WIDE = 8


def batches_of(table: "Table", value: str | Term, by: str) -> Study[BatchComparison]:
    """The study that compares batches of a table; refuses what has no declared field or several rows a person."""
    if by not in FIELDS:
        raise InvalidInput(
            f"by is one of {', '.join(FIELDS)} and was {by!r}; nothing was read and nothing was spent."
            f"{did_you_mean(str(by), FIELDS)}"
        )
    declared = provenance_of(table.provenance)
    column = table.provenance.get(by)
    if column is None:
        said = ", ".join(f"{field} = {name}" for field, name in declared) or "none"
        raise NotDeclared(
            f"the {by} of rows is not declared for {table.dataset.name!r} (declared: {said}); nothing was read and "
            f"nothing was spent. Say provenance={{{by!r}: 'column'}} with the table."
        )
    if not is_still_declared(column, table.joins):
        raise NotDeclared(
            f"of one row a person {column!r} is no longer the declared {by}; nothing was read and nothing was spent. "
            f"Pick it: per_person({column}=sf.first({column!r}, by=…), …)."
        )
    if table.by:
        raise InvalidInput("batches are compared in a table that is not grouped; nothing was done.")
    check_independent(table, "a comparison of batches")
    asked = Asked(lambda name, bounds: BatchMean(name=name, of=clamped(value, bounds), field=by, declared=declared))
    question = table.group_by(column).agg(mean=asked)

    def made(release: Release) -> BatchComparison:
        query = release.statement.query
        found = query.batch_comparison(release) if isinstance(query, Aggregate) else None
        if found is None:
            raise InvalidInput("this release is no comparison of batches; nothing was computed.")
        return found

    query = question.query
    height = query.row_height if isinstance(query, Aggregate) else 1
    return Study(
        question=question,
        made=made,
        foreseen=lambda preview, rows: _foreseen(preview, rows, height=height, batches=table.keys[column].size),
    )


def _foreseen(preview: Preview, rows: int | None, *, height: int, batches: int) -> tuple[str, ...]:
    """What shift a batch of this many rows would show, and how many rows a batch must have to be compared."""
    deviation = math.sqrt(float(preview.mechanism.law.variance)) / height
    least = math.ceil(max(2.0, ENOUGH * math.sqrt(3) * deviation))
    notes = [f"A batch needs about {least:,} rows to be compared at this ε."]
    if rows and batches > 1:
        wide = WIDE * deviation * math.sqrt(0.5) / rows
        found = math.sqrt(detectable(batches - 1) * batches / (batches - 1) * (1 / rows + wide**2))
        notes.append(
            f"With {rows:,} rows in each of {batches} batches, one that is off by {found:.2g} standard deviations is "
            f"found in 8 of 10 comparisons, where the bounds are {WIDE} standard deviations apart."
        )
    return tuple(notes)


def detectable(freedom: int) -> float:
    """The noncentrality that a χ² test at 5% finds in 80 of 100 runs.

    >>> round(detectable(1), 2)
    7.85
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    critical = chi2.ppf(0.95, freedom)
    return float(brentq(lambda size: ncx2.sf(critical, freedom, size) - 0.8, 0.1, 1000.0 + 10 * freedom))
