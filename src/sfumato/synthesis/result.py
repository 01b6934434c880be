"""Synthetic rows: the rows, the one release that they were made of, and what the file keeps and does not keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.description import Listed, OneLine, Phrase, Word
from sfumato.core.exact import natural
from sfumato.core.guarantees import ZCDP, Approximate, Guarantee
from sfumato.core.release import Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.terminal import harmless_text
from sfumato.errors import InvalidInput
from sfumato.synthesis.row_file import write_parquet

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.inference.figure import Figure
    from sfumato.inference.ratio import Ratio
    from sfumato.synthesis.columns import SyntheticColumn
    from sfumato.synthesis.comparison import SyntheticComparison
    from sfumato.synthesis.declared import DeclaredRows
    from sfumato.synthesis.files import SyntheticFiles
    from sfumato.synthesis.measured import MeasuredTable
    from sfumato.synthesis.row_making import RowMaking

__all__ = ["MeasuredMarginal", "SynthesisQuality", "SyntheticTable", "measured_words"]

MOST_NAMED = 12
MOST_FILES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMarginal:
    """A table that was measured: its columns, its cells, and the standard deviation of the noise on each count."""

    columns: tuple[str, ...]
    cells: int
    noise: float
    """In rows."""
    predicted_error: float
    """The total variation between this table and its noisy counts to expect, before the fit: 0.4·noise·cells/rows."""
    distance_to_fit: float | None = None
    """The total variation between this table of the rows and what they were brought to; None of one column."""
    published: bool = False
    """Whether it was not measured for these rows but released before."""


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
    published: int = 0
    """How many releases from before the rows were fitted to as well."""
    codes: tuple[str, ...] = ()
    """Columns whose codes were drawn within groups that were fitted."""


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
    making: "RowMaking | None" = field(default=None, compare=False)
    """What the rows were made of, where further files can be made of it."""
    fitted_association: "NDArray[np.float64] | None" = field(default=None, compare=False)
    """Cramér's V of each two columns in the fit."""
    declared: "DeclaredRows | None" = None
    """The columns with their values and bins, and the rules."""
    bins: tuple[Release, ...] = ()
    """Releases of quantiles that edges of bins were made of, charged before the tables."""

    @property
    def published(self) -> tuple[Release, ...]:
        """Releases from before that the rows were fitted to as well."""
        tables = () if self.making is None else self.making.tables
        found = {table.release.statement.identifier: table.release for table in tables}
        found.pop(self.release.statement.identifier, None)
        return tuple(found.values())

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that the rows are a function of: edges of bins, counts from before, and the tables."""
        return (*self.bins, *self.published, self.release)

    @property
    def spend(self) -> Budget:
        """What all releases together cost, whenever they were charged: the rows reveal no more than this."""
        return sum((each.statement.spend for each in self.releases), start=Budget.none())

    @property
    def guarantee(self) -> Guarantee:
        """That of the rows: of the release, or of several releases together by basic composition."""
        if len(self.releases) == 1:
            return self.release.statement.guarantee
        spend = self.spend
        if spend.rho is not None:
            return ZCDP(rho=spend.rho)
        return Approximate(epsilon=spend.epsilon, delta=spend.delta)

    @property
    def columns(self) -> "tuple[SyntheticColumn, ...]":
        """The columns with their public cells; none where the rows were not made of cells."""
        return () if self.making is None else self.making.columns

    @property
    def measured(self) -> "tuple[MeasuredTable, ...]":
        """The noisy tables, in rows."""
        return () if self.making is None else tuple(self.making.measured)

    def files(self, number: int = 5, *, of: str = "population") -> "SyntheticFiles":
        """Several files of the same release, for estimates with intervals that cover; they cost nothing.

        In each file noise is drawn again and, with ``of="population"``, people as well: files differ as much as a file
        differs from the truth. ``of="data"`` is for numbers of these very data. The rows of each file are as many as
        were declared; ``made.rows`` is none of them, and is nearer to the data than they are.

        Guarantee: a function of the release alone. Assumes: rows of the data are independent of each other, for
        ``of="population"``. Proof: docs/proofs/synthesis.md
        """
        from sfumato.synthesis.files import SyntheticFiles

        natural(number, "number of files", least=2, most=MOST_FILES)
        if of not in ("population", "data"):
            raise InvalidInput(f"of={of!r} is neither 'population' nor 'data'; nothing was made.")
        making = self._making()
        sampling = of == "population"
        start = making.codes()
        rows = tuple(making.file(place, start, sampling=sampling) for place in range(1, number + 1))
        measured = tuple(each.columns for each in self.quality.marginals)
        return SyntheticFiles(rows=rows, release=self.release, of=of, measured=measured)

    def count(self, where: Mapping[str, object] | None = None) -> "Figure":
        """How many rows of the data have these values, with the interval of the noise: measured cells alone.

        ``where`` maps columns to a value, to a list of values or, for bins, to a pair of edges. The columns must have
        been measured together. The number is that of the release, and the rows may differ from it.
        """
        from sfumato.synthesis.measured_cells import measured_count

        return measured_count(self._making(), where or {})

    def share(self, of: Mapping[str, object], where: Mapping[str, object] | None = None) -> "Ratio":
        """The share with the values ``of`` among the rows of the data with the values ``where``; as :meth:`count`."""
        from sfumato.synthesis.measured_cells import measured_share

        return measured_share(self._making(), of, where or {})

    def mean(self, column: str, where: Mapping[str, object] | None = None) -> "Ratio":
        """The mean of a column whose numbers were each counted, as keys or in bins of one number; as :meth:`count`."""
        from sfumato.synthesis.measured_cells import measured_mean

        return measured_mean(self._making(), column, where or {})

    def _making(self) -> "RowMaking":
        if self.making is None:
            raise InvalidInput(
                "these rows were made in another way than of measured tables, and further files are not made of them; "
                "nothing was done."
            )
        return self.making

    def to_parquet(self, path: str | Path) -> Path:
        """Write the rows as Parquet, in place of an earlier file of that name, and return the path.

        The certificate's identifier stands in the metadata of the file.
        """
        return write_parquet(self.rows, self.release, path, before=self.releases[:-1])

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.rows, path)

    def report(
        self,
        path: str | Path,
        *,
        languages: Sequence[str] = ("en", "zh"),
        reason: str = "",
        legal_basis: str = "",
        comparison: "SyntheticComparison | None" = None,
    ) -> Path:
        """Write the quality page: ``.html``, or ``.pdf`` where a browser is. It costs nothing.

        It says what was measured and how exactly, how the rows agree with the noisy tables, what the rows keep and what
        they do not. All of it follows from the release, but for ``comparison``, figures of the data that a question of
        its own asked for: ``table.compare_synthetic(made).release(epsilon=…)``. ``reason`` and ``legal_basis`` as on
        the page of a release: without both, the page says that it is a draft.
        """
        from sfumato.synthesis.quality_page import quality_page

        page = quality_page(self, comparison)
        return presenter_of(self.release).document(page, Path(path), languages, reason, legal_basis)

    def write(
        self,
        folder: str | Path,
        *,
        format: str = "parquet",
        languages: Sequence[str] = ("en", "zh"),
        reason: str = "",
        legal_basis: str = "",
    ) -> tuple[Path, ...]:
        """Write all that whoever gets the rows needs into a new or empty folder, and return the paths.

        ``rows.parquet`` (or ``rows.csv``), ``certificate.json``, ``schema.json``, ``quality.html``, and in each
        language ``dictionary.en.md`` and ``explanation.en.txt``. All of them follow from the release and what was
        declared. ``reason`` and ``legal_basis`` as for :meth:`report`. Anything that lies in the folder already is left
        alone and the folder refused.
        """
        from sfumato.synthesis.folder import write_folder

        return write_folder(self, folder, form=format, languages=languages, grounds=(reason, legal_basis))

    def explain(self, language: str = "en") -> str:
        """Say in words what the rows are, what they keep, what they do not keep, who is protected and what it cost."""
        presenter = presenter_of(self.release)
        parts = [[presenter.words(word, language) for word in some] for some in self._words()]
        parts.append(list(presenter.protection(self.release, language)))
        parts[-1] += [presenter.words(word, language) for word in self._together()]
        parts[-1].append(presenter.words(Phrase("synthesis.free"), language))
        return "\n\n".join("\n".join(map(harmless_text, part)) for part in parts)

    def _together(self) -> list[Word]:
        """What all releases cost that the rows are a function of, where they are several."""
        if len(self.releases) == 1:
            return []
        facts: dict[str, Word] = {"number": str(len(self.releases)), "spend": str(self.spend)}
        bins = [Phrase("synthesis.chosen_bins", {"number": str(len(self.bins))})] if self.bins else []
        return [*bins, Phrase("synthesis.together", facts)]

    def _words(self) -> list[list[Word]]:
        from sfumato.synthesis.columns import BinnedColumn

        quality, said = self.quality, self.release.statement
        columns: Word = Listed(tuple(OneLine(name) for name in self.rows.column_names))
        first: dict[str, Word] = {
            "rows": f"{self.rows.num_rows:,}",
            "columns": columns,
            "data": OneLine(said.query.dataset.name),
        }
        own = [each for each in quality.marginals if not each.published]
        kept: list[Word] = [Phrase(f"synthesis.measured_{quality.reason}", measured_words(own))]
        if quality.reason == "workload":
            named = [" × ".join(each.columns) for each in own[:MOST_NAMED]]
            kept.append(Phrase("synthesis.workload", {"names": Listed(tuple(map(OneLine, named)))}))
            away = [each.distance_to_fit for each in own if each.distance_to_fit is not None]
            if away:
                kept.append(Phrase("synthesis.met", {"distance": f"{max(away):.4f}"}))
        if quality.published:
            kept.append(Phrase("synthesis.published", {"releases": f"{quality.published}"}))
        if quality.chi_squared is not None and quality.distance_to_fit is not None:
            fit: dict[str, Word] = {
                "chi": f"{quality.chi_squared:.2f}",
                "distance": f"{quality.distance_to_fit:.4f}",
            }
            kept.append(Phrase("synthesis.fit", fit))
        if quality.codes:
            kept.append(Phrase("synthesis.codes", {"columns": Listed(tuple(map(OneLine, quality.codes)))}))
        files = [] if self.making is None else [Phrase("synthesis.several_files")]
        long = [column.name for column in self.columns if isinstance(column, BinnedColumn) and column.long_bin]
        wide = [Phrase("synthesis.long_bins", {"columns": Listed(tuple(map(OneLine, long)))})] if long else []
        number = "declared" if quality.declared_rows else "noisy"
        return [
            [Phrase("synthesis.what", first), Phrase(f"synthesis.rows_{number}")],
            kept,
            [
                Phrase(f"synthesis.not_kept_{quality.reason}"),
                Phrase("synthesis.intervals"),
                *files,
                *wide,
                Phrase("synthesis.claim"),
            ],
        ]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        tables = len(self.quality.marginals)
        return f"SyntheticTable of {self.rows.num_rows:,} rows × {self.rows.num_columns} columns, from {tables} tables"


def measured_words(marginals: Sequence[MeasuredMarginal]) -> dict[str, Word]:
    """How many tables and cells were measured, and the least and the most noise on a count."""
    noises = [each.noise for each in marginals]
    return {
        "tables": f"{len(marginals):,}",
        "cells": f"{sum(each.cells for each in marginals):,}",
        "least": f"{min(noises):,.3g}",
        "most": f"{max(noises):,.3g}",
    }
