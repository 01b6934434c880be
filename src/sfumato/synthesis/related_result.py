"""Synthetic persons with their rows: several tables, the one release that they were made of, and what they keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.description import Listed, OneLine, Phrase, Word
from sfumato.core.release import Release, presenter_of
from sfumato.core.spreadsheet import write_csv
from sfumato.core.terminal import harmless_text
from sfumato.errors import InvalidInput
from sfumato.synthesis.result import MeasuredMarginal, measured_words
from sfumato.synthesis.row_file import write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.synthesis.related_parts import RelatedParts

__all__ = ["PERSONS", "RelatedQuality", "SyntheticRelations"]

PERSONS = "persons"
"""What the table of persons is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedQuality:
    """What is known of persons and rows from the release alone. Public; nothing here was compared with the data."""

    reason: str
    """Why these tables were measured: ``pairs`` or ``singles``."""
    marginals: tuple[MeasuredMarginal, ...]
    chi_squared: float | None
    """Of the fit of persons, over the number of cells; None where columns are independent of each other."""
    child_chi_squared: Mapping[str, tuple[float, ...]]
    """Of the fits of each child table: of first rows, and of later ones."""
    estimated_persons: float
    """The noisy number of persons in the data."""
    declared_persons: bool
    """Whether the number of persons in the file was declared; else it is the noisy one, rounded."""
    most: Mapping[str, int]
    """How many rows of a person were measured in each child table, and are made at most."""
    codes: tuple[str, ...] = ()
    """Columns whose codes were drawn within groups that were fitted."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SyntheticRelations:
    """Tables of persons and of their rows that were made of one release; a number that was made up links them.

    Guarantee: the release has its (ε, δ) for all of a person's rows in all tables, and is charged once; the tables are
    functions of it and cost nothing. Assumes: what was declared is public.
    """

    release: Release
    tables: "Mapping[str, pa.Table]"
    """``persons`` first, then each child table by its name."""
    person: str
    """The column that links the tables: numbers from 1 on, in no order."""
    quality: RelatedQuality
    parts: "RelatedParts | None" = field(default=None, compare=False)
    """What they were made of, for the page and the folder."""

    def report(
        self,
        path: str | Path,
        *,
        languages: Sequence[str] = ("en", "zh"),
        reason: str = "",
        legal_basis: str = "",
    ) -> Path:
        """Write the quality page: ``.html``, or ``.pdf`` where a browser is. It costs nothing.

        As of rows of one table: what was measured and how exactly, how persons and rows agree with the noisy tables,
        what they keep and what they do not. Everything on it follows from the release.
        """
        from sfumato.synthesis.related_folder import related_page

        page = related_page(self, self._parts())
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
        """Write all that whoever gets the tables needs into a new or empty folder, and return the paths.

        One file for each table, ``persons.parquet`` (or ``.csv``) first, ``certificate.json``, ``schema.json``, which
        says how they are linked, ``quality.html``, and in each language ``dictionary.en.md`` and
        ``explanation.en.txt``. All of them follow from the release and what was declared. Anything that lies in the
        folder already is left alone and the folder refused.
        """
        from sfumato.synthesis.related_folder import write_relations

        return write_relations(
            self, self._parts(), folder, form=format, languages=languages, grounds=(reason, legal_basis)
        )

    def _parts(self) -> "RelatedParts":
        if self.parts is None:
            raise InvalidInput("these tables come without what they were made of; nothing was written.")
        return self.parts

    def to_parquet(self, folder: str | Path) -> tuple[Path, ...]:
        """Write each table as a Parquet file into a folder, which is made, in place of earlier files of these names.

        The certificate's identifier stands in the metadata of each file.
        """
        files = self._files(folder, "parquet")
        return tuple(write_parquet(self.tables[name], self.release, target) for name, target in files)

    def to_csv(self, folder: str | Path) -> tuple[Path, ...]:
        """Write each table as CSV into a folder; texts that a spreadsheet takes for a formula are made harmless."""
        return tuple(write_csv(self.tables[name], target) for name, target in self._files(folder, "csv"))

    def explain(self, language: str = "en") -> str:
        """Say in words what the tables are, what they keep and do not keep, who is protected and what it cost."""
        presenter = presenter_of(self.release)
        parts = [[presenter.words(word, language) for word in some] for some in self._words()]
        parts.append(list(presenter.protection(self.release, language)))
        parts[-1].append(presenter.words(Phrase("synthesis.free"), language))
        return "\n\n".join("\n".join(map(harmless_text, part)) for part in parts)

    def _words(self) -> list[list[Word]]:
        quality = self.quality
        children = [name for name in self.tables if name != PERSONS]
        first: dict[str, Word] = {
            "persons": f"{self.tables[PERSONS].num_rows:,}",
            "data": OneLine(self.release.statement.query.dataset.name),
            "person": OneLine(self.person),
        }
        below: list[Word] = [
            Phrase(
                "related.child",
                {
                    "child": OneLine(name),
                    "rows": f"{self.tables[name].num_rows:,}",
                    "most": str(quality.most[name]),
                    "columns": Listed(tuple(map(OneLine, self.tables[name].column_names[2:]))),
                },
            )
            for name in children
        ]
        measured = measured_words(quality.marginals)
        number = "declared" if quality.declared_persons else "noisy"
        codes: list[Word] = []
        if quality.codes:
            codes.append(Phrase("synthesis.codes", {"columns": Listed(tuple(map(OneLine, quality.codes)))}))
        return [
            [Phrase("related.what", first), *below, Phrase(f"related.persons_{number}")],
            [Phrase(f"related.measured_{quality.reason}", measured), Phrase("related.later"), *codes],
            [
                Phrase(f"related.not_kept_{quality.reason}"),
                Phrase("synthesis.intervals"),
                Phrase("synthesis.claim"),
            ],
        ]

    def _files(self, folder: str | Path, ending: str) -> list[tuple[str, Path]]:
        place = Path(folder)
        strange = [name for name in self.tables if Path(name).name != name or name.startswith(".")]
        if strange:
            raise InvalidInput(f"{strange[0]!r} is no name of a file; nothing was written. Name the table otherwise.")
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise InvalidInput(
                f"{place} cannot be written: {wrong.strerror or type(wrong).__name__}. No table was written. Choose "
                "another folder."
            ) from None
        return [(name, place / f"{name}.{ending}") for name in self.tables]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {table.num_rows:,}" for name, table in self.tables.items())
        return f"SyntheticRelations of rows: {sizes}; from {len(self.quality.marginals)} tables"
