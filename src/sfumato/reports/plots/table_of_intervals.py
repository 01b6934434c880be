"""Every number of a release as a mark on its interval: one, a dozen, or hundreds in columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.core.extras import need
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean, distinct, labels_of
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["MOST_NUMBERS", "intervals"]

CONFIDENCE = Fraction(19, 20)
MOST_NUMBERS = 600  # beyond this no picture of every number can be read
ONE_COLUMN, A_COLUMN, MOST_COLUMNS = 40, 60, 3  # three columns are as wide as a page
MOST_PANELS = 12
Row = dict[str, Any]


def intervals(release: Release, language: str = "en", theme: str = "light", *, sort: str = "asked") -> Any:
    """Draw each number as a mark on its 95% interval.

    Up to 40 numbers stand in one column with their figures; more are set smaller, in up to three columns that share one
    scale. Two or more label columns make a panel for each value of the first while that stays readable. ``sort`` is
    ``asked``, the order of the query, or ``value``, the largest first. Of more than 600 numbers the first 600 are
    drawn, and the picture says so. Covers the added noise alone, as :meth:`~sfumato.core.release.Release.interval`.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said = only_release(release).statement
    if sort not in ("asked", "value"):
        raise InvalidInput(f"sort = {sort!r} is neither 'asked' nor 'value'; nothing was drawn.")
    columns = list(said.query.labels())
    rows: list[Row] = [
        {"parts": parts, "value": value, "low": low, "high": high}
        for parts, value, (low, high) in zip(
            labels_of(said, language), release.values, release.interval(CONFIDENCE), strict=True
        )
    ]
    if sort == "value":
        rows.sort(key=lambda row: -row["value"])
    shown = rows[:MOST_NUMBERS]
    look = _Look(altair=altair, language=language, colours=palette(theme), small=len(shown) > A_COLUMN)
    panels = list(dict.fromkeys(row["parts"][0] for row in shown)) if len(columns) > 1 else []
    if sort == "asked" and 1 < len(panels) <= MOST_PANELS and len(shown) <= A_COLUMN:
        drawn = _in_panels(look, shown, panels)
    elif len(shown) <= ONE_COLUMN:
        drawn = look.marks(named=bool(columns)).properties(data=altair.Data(values=_named(shown)))
    else:
        drawn = _in_columns(look, shown)
    facts = {"dataset": clean(said.dataset.name), "columns": clean(" × ".join(columns))}
    return dressed(
        drawn,
        title=message(language, "plot.title_by" if columns else "plot.title", **facts),
        subtitle=_subtitle(release, len(shown), language),
        language=language,
        theme=theme,
        labels=[part for row in shown for part in row["parts"]],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How the marks look; ``small`` for hundreds of them."""

    altair: Any
    language: str
    colours: Palette
    small: bool

    def marks(self, *, named: bool = True) -> Any:
        """Spans, marks and figures over data that the caller gives: value, low, high, group."""
        altair, colours, small = self.altair, self.colours, self.small
        width, step, text = (150, 12, 9) if small else (440, 22, 11)
        names = {"labelLimit": 130 if small else 220, "labelFontSize": text, "labelColor": colours.ink}
        left = altair.Axis(grid=False, title=None, **names) if named else None
        zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
        below = altair.Axis(
            title=message(self.language, "plot.axis"),
            format=",d",
            gridColor=zero,
            labelFontSize=text,
            labelFlush=False,
            labelOverlap=True,
            tickCount=3 if small else 6,
            tickMinStep=1,
        )
        base = (
            altair.Chart()
            .encode(
                y=altair.Y("group:N", sort=None, axis=left),
                tooltip=[
                    altair.Tooltip("group:N", title=" "),
                    *(
                        altair.Tooltip(f"{field}:Q", title=message(self.language, f"column.{name}"), format=",d")
                        for field, name in (("value", "count"), ("low", "low"), ("high", "high"))
                    ),
                ],
            )
            .properties(width=width, height=altair.Step(step))
        )
        x = altair.X("low:Q", axis=below, scale=altair.Scale(zero=False, nice=False, padding=6 if small else 12))
        spans = base.mark_bar(height=5 if small else 8, color=colours.band, cornerRadius=2)
        marks = base.mark_tick(thickness=2 if small else 3, size=9 if small else 14, color=colours.mark, opacity=1)
        layers = [spans.encode(x=x, x2="high:Q"), marks.encode(x="value:Q")]  # a mark that hides no narrow interval
        if not small:
            figures = base.mark_text(align="right", color=colours.ink, fontSize=text)
            layers.append(figures.encode(x=altair.value(width + 56), text=altair.Text("value:Q", format=",d")))
        return altair.layer(*layers)


def _subtitle(release: Release, shown: int, language: str) -> list[str]:
    said, numbers = release.statement, len(release.values)
    margin, joint = said.law.margin(CONFIDENCE), said.law.margin(CONFIDENCE, numbers=numbers)
    facts = {"margin": f"{margin:,}", "joint": f"{joint:,}", "numbers": f"{numbers:,}"}
    facts["amount"] = amount(said.spend, language)
    lines = [message(language, "plot.margin_one" if numbers == 1 else "plot.margin_many", **facts)]
    if shown < numbers:
        lines.append(message(language, "plot.first", shown=f"{shown:,}", numbers=f"{numbers:,}"))
    return lines


def _in_panels(look: _Look, rows: Sequence[Row], panels: list[str]) -> Any:
    """A panel for each value of the first label column."""
    parts = {panel: [row for row in rows if row["parts"][0] == panel] for panel in panels}
    data = [row | {"panel": panel} for panel, some in parts.items() for row in _named(some, first=1)]
    header = look.altair.Header(labelOrient="top", labelAnchor="start", labelPadding=4, title=None)
    row = look.altair.Row("panel:N", sort=panels, header=header)
    return look.marks().facet(row=row, data=look.altair.Data(values=data)).resolve_scale(y="independent")


def _in_columns(look: _Look, rows: Sequence[Row]) -> Any:
    """Columns of equal height that share one scale."""
    count = min(MOST_COLUMNS, -(-len(rows) // A_COLUMN))
    height = -(-len(rows) // count)
    data = [row | {"column": place // height} for place, row in enumerate(_named(rows))]
    column = look.altair.Column("column:O", header=None)
    return look.marks().facet(column=column, data=look.altair.Data(values=data)).resolve_scale(y="independent")


def _named(rows: Sequence[Row], *, first: int = 0) -> list[Row]:
    """The rows with the text of their line, made of the label columns from ``first`` on."""
    texts = distinct([" · ".join(row["parts"][first:]) for row in rows])
    return [
        {"group": text, "value": row["value"], "low": row["low"], "high": row["high"]}
        for row, text in zip(rows, texts, strict=True)
    ]
