"""Pictures of what was worked out of releases: forest plots, and curves with bands.

Up to three curves lie over one another, told apart by lightness and by their dashes; more of them have a panel each,
where the others stand behind in a faint line, since bands over bands cannot be read.
"""

import math
import statistics
from collections.abc import Sequence
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.rounding import MISSING, fixed, places_of, short
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.reports.words.rendering import render

__all__ = ["drawn"]

WIDE, HIGH, ROW = 480, 300, 22
PANEL_WIDE, PANEL_HIGH, ACROSS = 210, 140, 3
TOGETHER, MOST_PANELS, MOST_ROWS = 3, 12, 60
DASHES = ([1, 0], [6, 3], [2, 2])
FAR = 2
"""Usual half-widths: an interval that reaches further beyond all estimates runs to the edge, with an arrow."""
STEPS = ((1, 10), (1, 3, 10), (1, 2, 5, 10), (1, 1.5, 2, 3, 5, 7, 10))
LEAST_TICKS = 4


def drawn(picture: Picture, language: str = "en", theme: str = "light") -> Chart:
    """Draw a picture as an Altair chart, in a language and a theme.

    Of a forest plot the first 60 rows are drawn, of curves the first 12 groups, and the picture says so.

    >>> from sfumato.core.picture import PictureRow
    >>> curve = [PictureRow(at=0.0, value=1.0, low=0.9, high=1.0), PictureRow(at=1.0, value=0.8, low=0.7, high=0.9)]
    >>> drawn(Picture(kind="steps", rows=curve, title="Survival", across="weeks")).to_dict()["title"]["text"]
    'Survival'
    """
    if not picture.rows:
        raise InvalidInput("there is nothing to draw; nothing was drawn.")
    altair = need("altair", "pip install 'sfumato[plots]'")
    draw, most, all_of_them = _curves, MOST_PANELS, len({row.group for row in picture.rows})
    if picture.kind == "forest":
        draw, most, all_of_them = _forest, MOST_ROWS, len(picture.rows)
    lines = [clean(render(line, language)) for line in picture.lines]
    if all_of_them > most:
        facts = {"shown": f"{most:,}", "numbers": f"{all_of_them:,}"}
        lines.append(message(language, "plot.first_rows" if picture.kind == "forest" else "plot.first_groups", **facts))
    return dressed(
        draw(altair, picture, palette(theme), language),
        title=clean(render(picture.title, language)),
        subtitle=lines,
        language=language,
        theme=theme,
        labels=[str(part) for row in picture.rows for part in (row.at, row.group) if isinstance(part, str)],
    )


def _forest(altair: ModuleType, picture: Picture, colours: Palette, language: str) -> Chart:
    """Each estimate on its interval, its figures beside it; what is open, or runs off the axis, has an arrow."""
    kept = picture.rows[:MOST_ROWS]
    first, last = _domain(picture, kept)
    rows = _forest_rows(kept, first, last)
    scale = altair.Scale(type="log" if picture.log else "linear", domain=[first, last], nice=False)
    below: ChartRow = {"title": clean(render(picture.across, language)), "labelFlush": False}
    below |= {"values": _ticks(first, last), "format": "~r"} if picture.log else {"tickCount": 6}
    x = altair.X("value:Q", scale=scale, axis=altair.Axis(**below))
    names = altair.Axis(grid=False, labelColor=colours.ink, labelLimit=260, labelFontSize=11)
    y = altair.Y("name:N", title=None, sort=[row["name"] for row in rows], axis=names)
    tips = [altair.Tooltip("name:N", title=" "), altair.Tooltip("figures:N", title=" ")]
    base = altair.Chart(altair.Data(values=rows)).encode(y=y, tooltip=tips)
    ends = altair.X("low:Q", scale=scale)
    layers = [
        base.mark_bar(height=6, color=colours.band, cornerRadius=2).encode(x=ends, x2="high:Q"),
        *(
            base.transform_filter(f"datum.{end}_open")
            .mark_point(shape=f"triangle-{side}", filled=True, size=70, color=colours.band, opacity=1)
            .encode(x=altair.X(f"{end}:Q", scale=scale))
            for end, side in (("low", "left"), ("high", "right"))
        ),
        base.transform_filter("isValid(datum.value)")
        .mark_tick(thickness=3, size=14, color=colours.mark, opacity=1)
        .encode(x=x),
        base.mark_text(align="left", color=colours.ink, fontSize=11).encode(
            x=altair.value(WIDE + 14), text=altair.Text("figures:N")
        ),
    ]
    if picture.reference is not None:
        layers.insert(0, _rule(altair, colours, picture.reference).encode(x=x))
    return altair.layer(*layers).properties(width=WIDE, height=altair.Step(ROW))


def _forest_rows(rows: Sequence[PictureRow], first: float, last: float) -> list[ChartRow]:
    many = len({row.group for row in rows}) > 1
    names = distinct([clean(f"{row.group} · {row.at}" if many and row.group else row.at) for row in rows])
    found: list[ChartRow] = []
    for name, row in zip(names, rows, strict=True):
        low, high = row.value if row.low is None else row.low, row.value if row.high is None else row.high
        known = math.isfinite(row.value) and first <= row.value <= last
        nothing = math.isnan(row.value) or math.isnan(low) or math.isnan(high)
        found.append(
            {
                "name": name,
                "value": row.value if known else None,
                "low": None if nothing else min(max(low, first), last),
                "high": None if nothing else min(max(high, first), last),
                "low_open": low < first,
                "high_open": high > last,
                "figures": _figures(row, low, high),
            }
        )
    return found


def _figures(row: PictureRow, low: float, high: float) -> str:
    """The estimate and its interval as text."""
    if math.isnan(row.value):
        return MISSING
    if row.low is None or row.high is None:
        return short(row.value)
    margins = [size for size in (abs(row.value - low), abs(high - row.value)) if 0 < size < math.inf]
    if not margins:
        return short(row.value)
    places = places_of(min(margins))
    return f"{fixed(row.value, places)} ({fixed(low, places, -1)}, {fixed(high, places, 1)})"


def _domain(picture: Picture, rows: Sequence[PictureRow]) -> tuple[float, float]:
    """The range of the axis: all estimates, and their intervals as far as they are of a usual width."""
    if picture.within is not None:
        return picture.within
    there = math.log if picture.log else float
    back = math.exp if picture.log else float

    def usable(value: float | None) -> bool:
        return value is not None and math.isfinite(value) and (value > 0 or not picture.log)

    values = [there(row.value) for row in rows if usable(row.value)]
    if picture.reference is not None:
        values.append(there(picture.reference))
    lows = [there(row.low) for row in rows if row.low is not None and usable(row.low)]
    highs = [there(row.high) for row in rows if row.high is not None and usable(row.high)]
    halves = [
        (there(row.high) - there(row.low)) / 2
        for row in rows
        if row.low is not None and row.high is not None and usable(row.low) and usable(row.high)
    ]
    if not values:
        values = [*lows, *highs] or [0.0]
    spread = max(values) - min(values)
    reach = max(FAR * statistics.median_low(halves), spread / 2) if halves else math.inf
    first = min([*values, *(max(low, min(values) - reach) for low in lows)])
    last = max([*values, *(min(high, max(values) + reach) for high in highs)])
    room = 0.04 * (last - first) or abs(first) * 0.1 or 1.0
    return back(first - room), back(last + room)


def _ticks(first: float, last: float) -> list[float]:
    """Round numbers on a logarithmic axis, a few of them; on a short one in equal steps."""
    powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    for steps in STEPS:
        found = sorted({float(f"{step * 10.0**power:.6g}") for power in powers for step in steps})
        found = [tick for tick in found if first <= tick <= last]
        if len(found) >= LEAST_TICKS:
            return found
    wide = 10.0 ** math.floor(math.log10(last - first))
    step = next(each * wide for each in (1, 0.5, 0.2, 0.1) if (last - first) / (each * wide) >= LEAST_TICKS)
    places = range(math.ceil(first / step), math.floor(last / step) + 1)
    return [float(f"{place * step:.6g}") for place in places]


def _curves(altair: ModuleType, picture: Picture, colours: Palette, language: str) -> Chart:
    groups = list(dict.fromkeys(row.group for row in picture.rows))[:MOST_PANELS]
    shown = dict(zip(groups, distinct([clean(group) for group in groups]), strict=True))
    rows = _curve_rows(picture, shown)
    names = list(shown.values())
    x = altair.X(
        "at:Q",
        title=clean(render(picture.across, language)),
        scale=altair.Scale(nice=False),
        axis=altair.Axis(labelFlush=False, tickCount=8),
    )
    upward = None if picture.upward is None else clean(render(picture.upward, language))
    y = altair.Y("value:Q", title=upward, scale=_scale(altair, picture), axis=altair.Axis(tickCount=5))
    how = "step-after" if picture.kind == "steps" else "linear"
    if len(names) > TOGETHER:
        return _panels(altair, picture, colours, rows, names, x, y, how)
    base = altair.Chart(altair.Data(values=rows))
    band = base.mark_area(interpolate=how, opacity=0.25, color=colours.band).encode(x=x, y=_lower(y), y2="high:Q")
    line = base.mark_line(interpolate=how, strokeWidth=2, color=colours.mark).encode(x=x, y=y)
    if len(names) > 1:
        shades = [colours.mark, colours.band, colours.quiet][: len(names)]
        tones = altair.Scale(domain=names, range=shades)
        drawn_as = altair.Legend(symbolType="stroke", symbolSize=500, symbolOpacity=1, symbolStrokeWidth=2)
        colour = altair.Color("group:N", title=None, sort=names, scale=tones, legend=drawn_as)
        dashes = altair.Scale(domain=names, range=list(DASHES[: len(names)]))
        band = band.encode(color=colour)
        dash = altair.StrokeDash("group:N", title=None, sort=names, scale=dashes, legend=drawn_as)
        line = line.encode(color=colour, strokeDash=dash)
    layers = [band, line]
    if picture.reference is not None:
        layers.insert(0, _rule(altair, colours, picture.reference).encode(y=y))
    return altair.layer(*layers).properties(width=WIDE, height=HIGH)


def _panels(
    altair: ModuleType,
    picture: Picture,
    colours: Palette,
    rows: list[ChartRow],
    names: Sequence[str],
    x: Chart,
    y: Chart,
    how: str,
) -> Chart:
    """A panel for each curve, up to three in a row with the same axes; the other curves stand behind it."""
    data = altair.Data(values=rows)
    panels = []
    for name in names:
        behind = altair.Chart(data).mark_line(interpolate=how, strokeWidth=1, color=colours.faint)
        own = altair.Chart(altair.Data(values=[row for row in rows if row["group"] == name]))
        layers = [
            behind.encode(x=x, y=y, detail="group:N"),
            own.mark_area(interpolate=how, opacity=0.35, color=colours.band).encode(x=x, y=_lower(y), y2="high:Q"),
            own.mark_line(interpolate=how, strokeWidth=2, color=colours.mark).encode(x=x, y=y),
        ]
        if picture.reference is not None:
            layers.insert(0, _rule(altair, colours, picture.reference).encode(y=y))
        heading = {"text": name, "fontSize": 12, "anchor": "start", "frame": "group", "offset": 6, "limit": PANEL_WIDE}
        panels.append(altair.layer(*layers).properties(width=PANEL_WIDE, height=PANEL_HIGH, title=heading))
    across = 2 if len(names) == 4 else ACROSS
    return altair.concat(*panels, columns=across, spacing={"row": 26, "column": 24}).resolve_scale(
        x="shared", y="shared"
    )


def _curve_rows(picture: Picture, shown: dict[str, str]) -> list[ChartRow]:
    """The points of each curve; ends that are open run to the edge of what is drawn."""
    kept = [row for row in picture.rows if row.group in shown]
    ends = [end for row in kept for end in (row.value, row.low, row.high) if end is not None and math.isfinite(end)]
    floor, top = picture.within or (min(ends, default=0.0), max(ends, default=1.0))
    return [
        {
            "at": row.at,
            "value": row.value if math.isfinite(row.value) else None,
            "low": _end(row.low, floor, top),
            "high": _end(row.high, floor, top),
            "group": shown[row.group],
        }
        for row in kept
    ]


def _end(end: float | None, floor: float, top: float) -> float | None:
    return None if end is None or math.isnan(end) else min(max(end, floor), top)


def _lower(y: Chart) -> Chart:
    """The same axis for the lower end of a band."""
    lower = y.copy()
    lower.shorthand = "low:Q"
    return lower


def _scale(altair: ModuleType, picture: Picture) -> Chart:
    if picture.within is not None:
        return altair.Scale(domain=list(picture.within), nice=False)
    return altair.Scale(type="log" if picture.log else "linear", zero=False)


def _rule(altair: ModuleType, colours: Palette, at: float) -> Chart:
    marked = altair.Chart(altair.Data(values=[{"value": at}]))
    return marked.mark_rule(color=colours.quiet, strokeDash=[4, 4])
