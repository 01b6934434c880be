"""The quality page of synthetic rows: what was measured, how the rows agree with it, and what they do not keep.

Everything on it is a function of the release, and so public and free, but for the part about the data, which shows a
comparison that was asked for and charged by itself. Divergences are from the *noisy* tables, and the page says so.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import OneLine, Phrase, Word
from sfumato.core.document_page import BarPanel, BarRow, DocumentPage, HeatMap, PageFigure, PageGrid, PageSection
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.synthesis.agreement import TableAgreement, agreement_of, associations, cells_of, coded
from sfumato.synthesis.columns import BinnedColumn, SyntheticColumn
from sfumato.synthesis.measured import Codes, Layout, MeasuredTable

if TYPE_CHECKING:
    from sfumato.synthesis.comparison import SyntheticComparison
    from sfumato.synthesis.result import SyntheticTable

__all__ = ["ShownParts", "quality_page"]

MOST_MAPPED = 30
MOST_ALONE = 12
MOST_PAIRS = 6
MOST_CELLS = 10
MOST_LISTED = 60
MOST_NAMED = 12
OF_PERSONS = frozenset(
    {
        *("card_tables", "card_worst", "kept", "lacking", "claim"),
        *("tables_are", "divergence_is", "tables_left", "head_of_rows", "head_rows_share"),
        *("together_is_alone", "map_label_alone", "of_rows"),
        *("alone_title", "pairs_title", "pairs_left", "bars_are", "bars_noise", "bars_label"),
    }
)
"""Messages that say persons, on the page of persons, where the page of one table says rows."""


def quality_page(made: "SyntheticTable", comparison: "SyntheticComparison | None" = None) -> DocumentPage:
    """The page as words, tables and pictures; :meth:`SyntheticTable.report` writes it."""
    if comparison is not None and comparison.release.statement.dataset != made.release.statement.dataset:
        raise InvalidInput("the comparison is about other data than the rows; no page was made.")
    shown = _shown(made)
    what, kept, lacking = made._words()
    found = made.release.statement.dataset
    cards: list[tuple[Word, Word]] = [
        (f"{made.rows.num_rows:,} × {made.rows.num_columns:,}", Phrase("quality.card_rows")),
        (f"{len(made.quality.marginals):,}", Phrase("quality.card_tables")),
    ]
    if made.quality.chi_squared is not None:
        cards.append((f"{made.quality.chi_squared:.2f}", Phrase("quality.card_fit")))
    cards += shown.cards()
    sections = [
        PageSection(name="kept", heading=Phrase("quality.kept"), blocks=tuple(kept)),
        PageSection(name="lacking", heading=Phrase("quality.lacking"), blocks=tuple(lacking)),
    ]
    sections += shown.sections()
    data = (Phrase("quality.no_comparison"),) if comparison is None else comparison.blocks()
    sections.append(PageSection(name="data", heading=Phrase("quality.data"), blocks=tuple(data)))
    return DocumentPage(
        release=made.release,
        kind=Phrase("quality.kind"),
        title=Phrase("quality.title", {"data": OneLine(found.name), "edition": OneLine(found.edition)}),
        asked=Phrase("quality.row", {"row": OneLine(made.row)}),
        lead=(*what, Phrase("quality.claim"), *made._together(), Phrase("quality.source")),
        glance=tuple(cards),
        sections=tuple(sections),
        spend=made.spend,
    )


def _shown(made: "SyntheticTable") -> "ShownParts":
    coded_rows = [coded(each, made.rows[each.name]) for each in made.columns]
    return ShownParts(
        release=made.release,
        columns=made.columns,
        codes=np.stack(coded_rows, axis=1) if coded_rows else np.zeros((0, 0), dtype=np.int32),
        measured=made.measured,
        total=made.quality.estimated_rows,
        fitted=made.fitted_association,
    )


class ShownParts:
    """The parts of a page about rows, worked out once: of rows of one table, or of one wide row a person.

    ``absent`` are columns whose last cell says that a person has no such row. ``persons`` says that a row of the codes
    is a person: then the words are about persons.
    """

    def __init__(
        self,
        *,
        release: Release,
        columns: Sequence[SyntheticColumn],
        codes: Codes,
        measured: Sequence[MeasuredTable],
        total: float,
        fitted: NDArray[np.float64] | None = None,
        absent: frozenset[int] = frozenset(),
        persons: bool = False,
    ) -> None:
        self.columns, self.codes, self.measured = columns, codes, measured
        self.fitted, self.absent, self.persons = fitted, absent, persons
        self.names = [column.name for column in columns]
        self.sizes = tuple(column.size for column in columns)
        self.agreements: tuple[TableAgreement, ...] = ()
        if not columns or not measured:
            return
        self.total = max(total, 1.0)
        random = np.random.default_rng(int(release.statement.identifier[:16], 16))
        self.agreements = agreement_of(measured, self.names, codes, self.sizes, self.total, random)
        law = release.statement.law
        self.reach = float(law.margin(Fraction(19, 20), numbers=1)) / max(float(law.variance) ** 0.5, 1e-9)
        """Standard deviations of noise in a 95% interval."""

    def say(self, name: str, facts: dict[str, Word] | None = None) -> Phrase:
        """A message about rows; about persons, where there is one."""
        return Phrase(f"{'related' if self.persons and name in OF_PERSONS else 'quality'}.{name}", facts or {})

    def cards(self) -> list[tuple[Word, Word]]:
        """The table that the rows are furthest from, where there are tables."""
        if not self.agreements:
            return []
        worst = max(self.agreements, key=lambda each: each.divergence - each.divergence_of_noise)
        facts: dict[str, Word] = {"names": _name(worst.columns), "noise": f"{worst.divergence_of_noise:.4f}"}
        return [(f"{worst.divergence:.4f}", self.say("card_worst", facts))]

    def sections(self, places: Sequence[int] | None = None) -> list[PageSection]:
        """All that is shown of the tables; ``places`` are the columns whose association is, without it all."""
        if not self.agreements:
            return []
        found = [
            PageSection(name="tables", heading=self.say("tables"), blocks=tuple(self.tables())),
            PageSection(name="together", heading=self.say("together"), blocks=tuple(self.together(places))),
            PageSection(name="alone", heading=self.say("alone"), blocks=tuple(self.alone())),
        ]
        if pairs := self.pairs():
            found.append(PageSection(name="pairs", heading=self.say("pairs"), blocks=tuple(pairs)))
        return found

    def tables(self) -> list[Word | PageGrid]:
        """Each measured table with its noise, and how far the rows are from it; the furthest first."""
        ordered = sorted(self.agreements, key=lambda each: each.divergence_of_noise - each.divergence)
        heads = ("table", "cells", "noise", "error", "divergence", "of_noise")
        rows = [
            (
                _name(each.columns),
                f"{each.cells:,}",
                f"{each.noise:,.3g}",
                f"{each.predicted_error:.3g}",
                f"{each.divergence:.4f}",
                f"{each.divergence_of_noise:.4f}",
            )
            for each in ordered[:MOST_LISTED]
        ]
        found: list[Word | PageGrid] = [self.say("tables_are"), self.say("divergence_is")]
        found.append(self._grid(heads, rows))
        if len(ordered) > MOST_LISTED:
            found.append(self._left_out("tables_left", MOST_LISTED, len(ordered)))
        return found

    def together(self, places: Sequence[int] | None = None) -> list[Word | PageGrid | PageFigure]:
        """Cramér's V of each two columns in the rows, beside the fit where there is one."""
        if len(self.columns) < 2:
            return [self.say("one_column")]
        some = list(range(len(self.columns))) if places is None else list(places)
        number = min(len(some), MOST_MAPPED)
        layout, codes = Layout(tuple(self.sizes[place] for place in some)), self.codes[:, some]
        found = associations(layout.pair_counts(np.maximum(codes, 0)) / np.float32(max(len(codes), 1)), layout)
        maps = [("of_rows", found), *([] if self.fitted is None else [("of_fit", self.fitted)])]
        names = tuple(self.names[place] for place in some)
        panels = tuple(
            HeatMap(title=self.say(key), names=names[:number], values=_square(values, number)) for key, values in maps
        )
        words = "" if self.fitted is not None else "_alone"
        blocks: list[Word | PageGrid | PageFigure] = [
            self.say(f"together_is{words}"),
            PageFigure(title=self.say("map"), label=self.say(f"map_label{words}"), panels=panels),
        ]
        if len(some) > number:
            blocks.append(self._left_out("columns_left", number, len(some)))
        blocks.append(self._strongest(found, names))
        return blocks

    def _strongest(self, found: NDArray[np.float64], names: Sequence[str]) -> PageGrid:
        fitted = self.fitted
        one, two = np.triu_indices(len(names), 1)
        order = np.argsort(-found[one, two], kind="stable")[:MOST_LISTED]
        rows = [
            (
                _name((names[one[place]], names[two[place]])),
                f"{found[one[place], two[place]]:.3f}",
                *(() if fitted is None else (f"{fitted[one[place], two[place]]:.3f}",)),
            )
            for place in order
        ]
        heads = ("table", "of_rows", *(() if fitted is None else ("of_fit",)))
        return self._grid(heads, rows, folded="map_numbers")

    def alone(self) -> list[Word | PageGrid | PageFigure]:
        """One-way tables of the rows beside the noisy ones: those furthest apart, in the order of the columns."""
        panels = [(*self._alone(place), place) for place in range(len(self.columns))]
        panels.sort(key=lambda each: -each[1])
        kept = sorted(panels[:MOST_ALONE], key=lambda each: each[2])
        return self._bars("alone", [panel for panel, _, _ in kept], len(panels), MOST_ALONE)

    def pairs(self) -> list[Word | PageGrid | PageFigure]:
        """Measured tables of two columns, if there are any: those furthest apart, in the order of the columns."""
        two = [
            (table, each.divergence - each.divergence_of_noise)
            for table, each in zip(self.measured, self.agreements, strict=True)
            if len(table.columns) == 2
        ]
        two.sort(key=lambda each: -each[1])
        kept = sorted((table for table, _ in two[:MOST_PAIRS]), key=lambda table: table.columns)
        panels = [self._panel(table.columns, table.counts.ravel(), table.sigma)[0] for table in kept]
        return self._bars("pairs", panels, len(two), MOST_PAIRS) if panels else []

    def _bars(
        self, name: str, panels: Sequence[BarPanel], number: int, most: int
    ) -> list[Word | PageGrid | PageFigure]:
        title, label = self.say(f"{name}_title"), self.say("bars_label")
        lines = (self.say("bars_are"), self.say("bars_noise"))
        found: list[Word | PageGrid | PageFigure] = [
            PageFigure(title=title, label=label, panels=tuple(panels), lines=lines)
        ]
        if number > most:
            found.append(self._left_out(f"{name}_left", most, number))
        rows = [
            (
                panel.title,
                row.name,
                _percent(row.value),
                _percent(row.beside),
                f"{_percent(row.low)} – {_percent(row.high)}",
            )
            for panel in panels
            for row in panel.rows
        ]
        found.append(self._grid(("table", "cell", "rows_share", "noisy_share", "interval"), rows, "bars_numbers"))
        return found

    def _alone(self, place: int) -> tuple[BarPanel, float]:
        """A column by itself, from all noisy tables that have it, the better counted more."""
        held = [table for table in self.measured if place in table.columns]
        size = self.sizes[place]
        weights = [size / (table.sigma**2 * table.counts.size) for table in held]
        counts = np.average([_summed(table, place) for table in held], axis=0, weights=weights)
        return self._panel((place,), counts, float(sum(weights)) ** -0.5)

    def _panel(self, places: Sequence[int], counts: NDArray[np.float64], sigma: float) -> tuple[BarPanel, float]:
        """The cells with most rows, and the largest difference in standard deviations of noise."""
        shares = cells_of(self.codes, places, self.sizes) / max(len(self.codes), 1)
        noisy, wide = counts / self.total, self.reach * sigma / self.total
        order = np.argsort(-np.maximum(shares, noisy), kind="stable")[:MOST_CELLS]
        if len(places) == 1:
            order = np.sort(order)
        cells = np.stack(np.unravel_index(order, [self.sizes[place] for place in places]), axis=1)
        rows = tuple(
            BarRow(
                name=_cell_name([self._label(place, int(cell)) for place, cell in zip(places, some, strict=True)]),
                value=float(shares[at]),
                beside=float(noisy[at]),
                low=float(noisy[at] - wide),
                high=float(noisy[at] + wide),
            )
            for at, some in zip(order, cells, strict=True)
        )
        name = _name([self.names[place] for place in places])
        left = counts.size - len(rows)
        title = (
            name
            if not left
            else self.say("largest", {"name": name, "shown": str(len(rows)), "all": f"{counts.size:,}"})
        )
        return BarPanel(title=title, rows=rows), float(np.abs(shares - noisy).max() / max(wide, 1e-12))

    def _label(self, place: int, cell: int) -> Word:
        if place in self.absent and cell == self.sizes[place] - 1:
            return Phrase("quality.no_row")
        return _label(self.columns[place], cell)

    def _left_out(self, key: str, shown: int, number: int) -> Word:
        return self.say(key, {"shown": f"{shown:,}", "all": f"{number:,}", "left": f"{number - shown:,}"})

    def _grid(self, heads: Sequence[str], rows: Sequence[tuple[Word, ...]], folded: str | None = None) -> PageGrid:
        return PageGrid(
            heads=tuple((self.say(f"head_{head}"), head not in ("table", "cell")) for head in heads),
            rows=tuple(rows),
            folded=None if folded is None else self.say(folded),
        )


def _summed(table: MeasuredTable, place: int) -> NDArray[np.float64]:
    return table.summed(place)


def _square(values: NDArray[np.float64], number: int) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(None if one == two else float(values[one, two]) for two in range(number)) for one in range(number)
    )


def _label(column: SyntheticColumn, cell: int) -> Word:
    """The name of a cell: its value, or the ends of its bin."""
    if column.missing and cell == column.size - 1:
        return Phrase("quality.missing")
    if not isinstance(column, BinnedColumn):
        return str(column.values[cell])
    low, high = column.ends(cell)
    if column.days:
        from datetime import date

        return f"{date.fromordinal(int(low))} – {date.fromordinal(int(high))}"
    return f"{low:g}" if low == high else f"{low:g} – {high:g}"


def _cell_name(labels: Sequence[Word]) -> Word:
    if len(labels) == 1:
        return labels[0]
    found = labels[0]
    for each in labels[1:]:
        found = Phrase("quality.and_cell", {"left": found, "right": each})
    return found


def _name(columns: Sequence[str]) -> Word:
    return OneLine(" × ".join(columns))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f}%"
