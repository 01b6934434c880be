"""Every number of a release as a mark on its interval: one, a dozen, or hundreds in columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import AnswerColumn, drawable, magnitude, plain, shared_margins
from sfumato.reports.limited import covers_lines, truth
from sfumato.reports.plots.labels import clean, distinct, labels_of, listing
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.reports.view_notes import view_notes
from sfumato.reports.words.rendering import render

__all__ = ["MOST_NUMBERS", "intervals"]

MOST_NUMBERS = 600  # beyond this no picture of every number can be read
ONE_COLUMN, A_COLUMN, MOST_COLUMNS = 40, 60, 3  # three columns are as wide as a page
MOST_PANELS = 12


def intervals(
    release: Release, language: str = "en", theme: str = "light", *, sort: str = "asked", column: str | None = None
) -> Chart:
    """Draw each number as a mark on its 95% interval.

    Up to 40 numbers stand in one column with their figures; more are set smaller, in up to three columns that share one
    scale. Two or more label columns make a panel for each value of the first while that stays readable. ``sort`` is
    ``asked``, the order of the query, or ``value``, the largest first. Of more than 600 numbers the first 600 are
    drawn, and the picture says so. Where the answer has several columns, each has a panel with a scale of its own, for
    the first 40 groups; ``column`` picks one. Intervals are those of :meth:`~sfumato.core.release.Release.interval`:
    for the population where a column estimates one, else for the noise alone; the picture says which.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    only_release(release)
    if sort not in ("asked", "value"):
        raise InvalidInput(f"sort = {sort!r} is neither 'asked' nor 'value'; nothing was drawn.")
    chosen, keys = drawable(release, column), list(release.labels)
    parts = labels_of(release, language)
    most = MOST_NUMBERS if len(chosen) == 1 else ONE_COLUMN
    groups = _order(chosen[0], sort)[:most]
    if len(chosen) == 1:
        shown = _rows(chosen[0], [parts[place] for place in groups], groups, language)
        small = len(shown) > A_COLUMN
        look = _Look.of(altair, release, chosen[0], language, theme, small=small)
        drawn = _one(look, shown, keys, sort=sort)
    else:
        looks = [_Look.of(altair, release, each, language, theme, many=True) for each in chosen]
        tables = [_rows(each, [parts[place] for place in groups], groups, language) for each in chosen]
        drawn = _side_by_side(altair, looks, tables, named=bool(keys))
    return dressed(
        drawn,
        title=_title(release, chosen, keys, language),
        subtitle=_subtitle(release, chosen, len(groups), language),
        language=language,
        theme=theme,
        labels=[*(part for place in groups for part in parts[place]), *(clean(each.name) for each in chosen)],
    )


def _order(first: AnswerColumn, sort: str) -> list[int]:
    """The places of the groups, as they were asked for or the largest first; what has no value comes last."""
    places = list(range(len(first.values)))
    if sort == "value":
        places.sort(key=lambda place: -first.values[place] if math.isfinite(first.values[place]) else math.inf)
    return places


def _rows(
    column: AnswerColumn, parts: Sequence[tuple[str, ...]], places: Sequence[int], language: str
) -> list[ChartRow]:
    """What is drawn of each number; counts are handed on as they are, others with their figures written out."""
    rows: list[ChartRow] = []
    for part, place in zip(parts, places, strict=True):
        value, ends = column.values[place], (column.ends or {place: (math.nan, math.nan)})[place]
        if column.whole:
            rows.append({"parts": part, "value": value, "low": ends[0], "high": ends[1]})
            continue
        shown = column.interval(place)
        open_end = message(language, "plot.open")
        low, high = shown or (open_end, open_end)
        row: ChartRow = {"parts": part, "value": plain(value), "low": plain(ends[0]), "high": plain(ends[1])}
        figure = column.text(place) if column.halves and column.halves[place] is not None else open_end
        rows.append(row | {"figure": figure, "shown": column.text(place), "from": low, "to": high})
    return rows


def _one(look: "_Look", shown: list[ChartRow], keys: Sequence[str], *, sort: str) -> Chart:
    panels = list(dict.fromkeys(row["parts"][0] for row in shown)) if len(keys) > 1 else []
    if sort == "asked" and 1 < len(panels) <= MOST_PANELS and len(shown) <= A_COLUMN:
        return _in_panels(look, shown, panels)
    if len(shown) <= ONE_COLUMN:
        return look.marks(named=bool(keys)).properties(data=look.altair.Data(values=_named(shown)))
    return _in_columns(look, shown)


def _side_by_side(
    altair: ModuleType, looks: Sequence["_Look"], tables: Sequence[list[ChartRow]], *, named: bool
) -> Chart:
    """A panel for each column, up to three in a row; the names of the groups stand before the first of each row."""
    across = 2 if len(looks) == 4 else MOST_COLUMNS
    panels = [
        look.marks(named=named and place % across == 0).properties(
            data=altair.Data(values=_named(rows)), title=look.heading
        )
        for place, (look, rows) in enumerate(zip(looks, tables, strict=True))
    ]
    return altair.concat(*panels, columns=across, spacing={"row": 30, "column": 28}, align="each")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How the marks look; ``small`` for hundreds of them, ``many`` for one of several columns side by side."""

    altair: ModuleType
    language: str
    colours: Palette
    small: bool
    many: bool
    name: str
    axis: str
    whole: bool

    @classmethod
    def of(
        cls,
        altair: ModuleType,
        release: Release,
        column: AnswerColumn,
        language: str,
        theme: str,
        *,
        small: bool = False,
        many: bool = False,
    ) -> "_Look":
        """The look of one column."""
        return cls(
            altair=altair,
            language=language,
            colours=palette(theme),
            small=small,
            many=many,
            name=clean(column.name),
            axis=_axis(release, column, language, alone=not many),
            whole=column.whole,
        )

    @property
    def heading(self) -> ChartRow:
        """The name of a panel among others."""
        return {"text": self.name, "fontSize": 12, "anchor": "start", "frame": "group", "offset": 6, "limit": 220}

    def marks(self, *, named: bool = True) -> Chart:
        """Spans, marks and figures over data that the caller gives: value, low, high, group."""
        altair, colours, small = self.altair, self.colours, self.small
        width, step, text = (150, 12, 9) if small else (150, 22, 11) if self.many else (440, 22, 11)
        names = {"labelLimit": 130 if small or self.many else 220, "labelFontSize": text, "labelColor": colours.ink}
        left = altair.Axis(grid=False, title=None, **names) if named else None
        zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
        below = altair.Axis(
            title=self.axis,
            format=",d" if self.whole else ",.8~f",
            gridColor=zero,
            labelFontSize=text,
            labelFlush=False,
            labelOverlap=True,
            labelSeparation=8,
            tickCount=3 if small or self.many else 6,
            **({"tickMinStep": 1} if self.whole else {}),
            **({"titleLimit": width + 60, "titleAnchor": "start", "titleAlign": "left"} if self.many else {}),
        )
        base = (
            altair.Chart()
            .encode(
                y=altair.Y("group:N", sort=None, axis=left),
                tooltip=[altair.Tooltip("group:N", title=" "), *self._tips()],
            )
            .properties(width=width, height=altair.Step(step))
        )
        x = altair.X("low:Q", axis=below, scale=altair.Scale(zero=False, nice=False, padding=6 if small else 12))
        spans = base.mark_bar(height=5 if small else 8, color=colours.band, cornerRadius=2)
        marks = base.mark_tick(thickness=2 if small else 3, size=9 if small else 14, color=colours.mark, opacity=1)
        layers = [spans.encode(x=x, x2="high:Q"), marks.encode(x="value:Q")]  # a mark that hides no narrow interval
        if not small:
            figures = base.mark_text(align="right", color=colours.ink, fontSize=text)
            shown = altair.Text("value:Q", format=",d") if self.whole else altair.Text("figure:N")
            layers.append(figures.encode(x=altair.value(width + 56), text=shown))
        return altair.layer(*layers)

    def _tips(self) -> list[Chart]:
        """What the mouse shows of each number."""
        fields = (("value", "column.count"), ("low", "column.low"), ("high", "column.high"))
        if not self.whole:
            fields = (("shown", "plot.value"), ("from", "column.low"), ("to", "column.high"))
        kind, form = ("Q", {"format": ",d"}) if self.whole else ("N", {})
        return [
            self.altair.Tooltip(f"{field}:{kind}", title=message(self.language, words), **form)
            for field, words in fields
        ]


def _axis(release: Release, column: AnswerColumn, language: str, *, alone: bool) -> str:
    if column.measured is None:
        return message(language, "plot.axis") if not column.computed else clean(column.name)
    measure = clean(render(column.measured.words, language))
    return message(language, "plot.axis_column", measure=measure) if alone else measure


def _title(release: Release, chosen: Sequence[AnswerColumn], keys: Sequence[str], language: str) -> str:
    facts = {"dataset": clean(release.statement.dataset.name), "columns": clean(" × ".join(keys))}
    if release.measure is not None:
        return message(language, "plot.title_by" if keys else "plot.title", **facts)
    facts["names"] = clean(listing([each.name for each in chosen], language))
    return message(language, "plot.title_columns_by" if keys else "plot.title_columns", **facts)


def _subtitle(release: Release, chosen: Sequence[AnswerColumn], shown: int, language: str) -> list[str]:
    said, numbers = release.statement, len(chosen[0].values)
    held = truth(release, language, "count" if said.query.measure is not None else "figure", chosen)
    facts = {"amount": amount(said.spend, language), "numbers": f"{numbers:,}", "truth": held}
    shared = None if any(each.sampled for each in chosen) else shared_margins(release)
    if shared is None:
        lines = [message(language, "plot.figure_apart", **facts)]
    else:
        facts |= {"margin": magnitude(shared[0], 4), "joint": magnitude(shared[1], 4)}
        kind = "margin" if release.measure is not None else "figure"
        lines = [message(language, f"plot.{kind}_{'one' if numbers == 1 else 'many'}", **facts)]
    lines += view_notes(release, language)
    if shown < numbers:
        lines.append(message(language, "plot.first", shown=f"{shown:,}", numbers=f"{numbers:,}"))
    return [*lines, *covers_lines(release, language, chosen)]


def _in_panels(look: _Look, rows: Sequence[ChartRow], panels: list[str]) -> Chart:
    """A panel for each value of the first label column."""
    parts = {panel: [row for row in rows if row["parts"][0] == panel] for panel in panels}
    data = [row | {"panel": panel} for panel, some in parts.items() for row in _named(some, first=1)]
    header = look.altair.Header(labelOrient="top", labelAnchor="start", labelPadding=4, title=None)
    row = look.altair.Row("panel:N", sort=panels, header=header)
    return look.marks().facet(row=row, data=look.altair.Data(values=data)).resolve_scale(y="independent")


def _in_columns(look: _Look, rows: Sequence[ChartRow]) -> Chart:
    """Columns of equal height that share one scale."""
    count = min(MOST_COLUMNS, -(-len(rows) // A_COLUMN))
    height = -(-len(rows) // count)
    data = [row | {"column": place // height} for place, row in enumerate(_named(rows))]
    column = look.altair.Column("column:O", header=None)
    return look.marks().facet(column=column, data=look.altair.Data(values=data)).resolve_scale(y="independent")


def _named(rows: Sequence[ChartRow], *, first: int = 0) -> list[ChartRow]:
    """The rows with the text of their line, made of the label columns from ``first`` on."""
    texts = distinct([" · ".join(row["parts"][first:]) for row in rows])
    return [
        {"group": text, **{name: part for name, part in row.items() if name != "parts"}}
        for row, text in zip(rows, texts, strict=True)
    ]
