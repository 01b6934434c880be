"""What synthetic rows would be made of, before anything is spent: the tables, their noise, the error to expect."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt

from sfumato.core.budget import Budget
from sfumato.core.question import Preview
from sfumato.core.terminal import harmless_text
from sfumato.core.units import Unit
from sfumato.synthesis.columns import SyntheticColumn
from sfumato.synthesis.plan import MeasurementPlan

__all__ = ["PlannedMarginal", "SynthesisPreview", "foreseen"]

MOST_SHOWN = 12
MEASURED = {
    "pairs": "all tables of two columns",
    "triples": "all tables of two and of three columns",
    "singles": "tables of one column each, because there are few rows for the noise: columns will be independent",
    "workload": "the tables that were asked for, and each other column by itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMarginal:
    """A table that would be measured."""

    columns: tuple[str, ...]
    cells: int
    noise: float
    """The standard deviation of the noise on each count, in rows."""
    predicted_error: float | None
    """The total variation between the table and its noisy counts to expect, before the fit; None for unknown rows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SynthesisPreview:
    """Which tables would be measured at a spend, and how exactly; worked out from public facts alone."""

    spend: Budget
    unit: Unit
    reason: str
    """Why these tables: ``pairs``, ``triples``, ``singles`` or ``workload``."""
    marginals: tuple[PlannedMarginal, ...]
    rows: int | None
    """The public number of rows that errors are worked out for: the expected ones, else the units of the vault."""
    limited: str = ""
    """What of one person counts; empty where all of it does."""

    @property
    def cells(self) -> int:
        """The numbers that would be released."""
        return sum(each.cells for each in self.marginals)

    def __str__(self) -> str:
        lines = [
            f"At {self.spend} would be measured: {MEASURED[self.reason]}.",
            f"Tables: {len(self.marginals):,}, with {self.cells:,} cells. Noise on each count, as standard deviation:",
        ]
        shown = sorted(self.marginals, key=lambda each: -each.noise * each.cells)[:MOST_SHOWN]
        for each in shown:
            error = "" if each.predicted_error is None else f", error {_percent(each.predicted_error)}"
            named = harmless_text(" × ".join(each.columns))
            lines.append(f"  {named}: {each.cells:,} cells, {each.noise:,.3g} rows{error}")
        if len(self.marginals) > MOST_SHOWN:
            lines.append(f"  … and {len(self.marginals) - MOST_SHOWN:,} more, with less")
        if self.rows is None:
            lines.append("What share of the rows that is depends on how many there are, which was not said.")
        else:
            lines.append(
                f"Error: the share of {self.rows:,} rows that noise puts into another cell (total variation), before "
                "rows are fitted to all tables together, which usually lowers it."
            )
        return "\n".join([*lines, f"{f'Counted: {self.limited}. ' if self.limited else ''}Nothing was read or spent."])

    __repr__ = __str__


def _percent(share: float) -> str:
    return "above 100%" if share > 1 else f"{100 * share:.2g}%"


def foreseen(
    preview: Preview, plan: MeasurementPlan, columns: Sequence[SyntheticColumn], *, rows: int | None
) -> SynthesisPreview:
    """The preview of a plan, from that of its question."""
    sigma = sqrt(preview.mechanism.law.variance)
    found = []
    for some, weight in zip(plan.tables, plan.weights, strict=True):
        cells, noise = prod(columns[place].size for place in some), sigma / weight
        error = None if rows is None else 0.4 * noise * cells / max(rows, 1)
        names = tuple(columns[place].name for place in some)
        found.append(PlannedMarginal(columns=names, cells=cells, noise=noise, predicted_error=error))
    return SynthesisPreview(
        spend=preview.spend,
        unit=preview.unit,
        reason=plan.reason,
        marginals=tuple(found),
        rows=rows,
        limited=preview.limited,
    )
