"""Synthetic rows: the rows, the one release that they were made of, and what the file keeps and does not keep."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.description import Listed, OneLine, Phrase, Word
from sfumato.core.release import Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.terminal import harmless_text
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MeasuredMarginal", "SynthesisQuality", "SyntheticTable", "write_parquet"]

MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMarginal:
    """A table that was measured: its columns, its cells, and the standard deviation of the noise on each count."""

    columns: tuple[str, ...]
    cells: int
    noise: float
    """In rows."""
    predicted_error: float
    """The total variation between this table and its noisy counts to expect, before the fit: 0.4·noise·cells/rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisQuality:
    """What is known of the rows from the release alone. Public; nothing here was compared with the data."""

    reason: str
    """Why these tables were measured: ``pairs``, ``triples``, ``singles`` or ``workload``."""
    marginals: tuple[MeasuredMarginal, ...]
    chi_squared: float | None
    """Of the fit, over the number of cells; None where columns are independent of each other."""
    distance_to_fit: float | None
    """Mean total variation between the pairs of the rows and those of the fit."""
    estimated_rows: float
    """The noisy number of rows in the data."""
    declared_rows: bool
    """Whether the number of rows in the file was declared; else it is the noisy one, rounded."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyntheticTable:
    """Rows that were made of one release of noisy tables.

    Guarantee: the release has its (ε, δ) and is charged once; rows, quality and every question asked of the rows are
    functions of it and cost nothing. Assumes: what was declared is public. Nothing else is claimed: a synthetic row may
    be equal to a row of the data.
    """

    release: Release
    rows: "pa.Table"
    quality: SynthesisQuality
    row: str = "row"
    """What one row of the file stands for."""

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows as Parquet, in place of an earlier file of that name, and return the path.

        The certificate's identifier stands in the metadata of the file.
        """
        return write_parquet(self.rows, self.release, path)

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.rows, path)

    def explain(self, language: str = "en") -> str:
        """Say in words what the rows are, what they keep, what they do not keep, who is protected and what it cost."""
        presenter = presenter_of(self.release)
        parts = [[presenter.words(word, language) for word in some] for some in self._words()]
        parts.append(list(presenter.protection(self.release, language)))
        parts[-1].append(presenter.words(Phrase("synthesis.free"), language))
        return "\n\n".join("\n".join(map(harmless_text, part)) for part in parts)

    def _words(self) -> list[list[Word]]:
        quality, said = self.quality, self.release.statement
        columns: Word = Listed(tuple(OneLine(name) for name in self.rows.column_names))
        first: dict[str, Word] = {
            "rows": f"{self.rows.num_rows:,}",
            "columns": columns,
            "data": OneLine(said.query.dataset.name),
        }
        noises = [each.noise for each in quality.marginals]
        measured: dict[str, Word] = {
            "tables": f"{len(quality.marginals):,}",
            "cells": f"{sum(each.cells for each in quality.marginals):,}",
            "least": f"{min(noises):,.3g}",
            "most": f"{max(noises):,.3g}",
        }
        kept: list[Word] = [Phrase(f"synthesis.measured_{quality.reason}", measured)]
        if quality.reason == "workload":
            named = [" × ".join(each.columns) for each in quality.marginals[:MOST_NAMED]]
            kept.append(Phrase("synthesis.workload", {"names": Listed(tuple(map(OneLine, named)))}))
        if quality.chi_squared is not None and quality.distance_to_fit is not None:
            fit: dict[str, Word] = {
                "chi": f"{quality.chi_squared:.2f}",
                "distance": f"{quality.distance_to_fit:.4f}",
            }
            kept.append(Phrase("synthesis.fit", fit))
        number = "declared" if quality.declared_rows else "noisy"
        return [
            [Phrase("synthesis.what", first), Phrase(f"synthesis.rows_{number}")],
            kept,
            [Phrase(f"synthesis.not_kept_{quality.reason}"), Phrase("synthesis.intervals"), Phrase("synthesis.claim")],
        ]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        tables = len(self.quality.marginals)
        return f"SyntheticTable of {self.rows.num_rows:,} rows × {self.rows.num_columns} columns, from {tables} tables"


def write_parquet(rows: "pa.Table", release: Release, path: str | Path) -> Path:
    """Write rows as Parquet, with the identifier of the release that they are of in the metadata of the file."""
    from pyarrow import parquet

    target = Path(path)
    named = {**(rows.schema.metadata or {}), b"sfumato.release": release.statement.identifier.encode()}
    try:
        parquet.write_table(rows.replace_schema_metadata(named), target)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. The rows were not written. "
            "Choose another path."
        ) from None
    return target
