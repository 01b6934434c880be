"""Pictures of what was worked out of releases: forest plots, and curves with bands."""

import math
from types import ModuleType
from typing import Any  # parts of Altair charts

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.picture import Picture
from sfumato.errors import InvalidInput
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.reports.words.rendering import render

__all__ = ["drawn"]

WIDE, HIGH, ROW = 480, 300, 22


def drawn(picture: Picture, language: str = "en", theme: str = "light") -> Chart:
    """Draw a picture as an Altair chart, in a language and a theme.

    >>> from sfumato.core.picture import PictureRow
    >>> curve = [PictureRow(at=0.0, value=1.0, low=0.9, high=1.0), PictureRow(at=1.0, value=0.8, low=0.7, high=0.9)]
    >>> drawn(Picture(kind="steps", rows=curve, title="Survival", across="weeks")).to_dict()["title"]["text"]
    'Survival'
    """
    if not picture.rows:
        raise InvalidInput("there is nothing to draw; nothing was drawn.")
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    title = render(picture.title, language)
    draw = _forest if picture.kind == "forest" else _curves
    return dressed(
        draw(altair, picture, colours, language),
        title=title,
        subtitle=[render(line, language) for line in picture.lines],
        language=language,
        theme=theme,
        labels=[str(part) for row in picture.rows for part in (row.at, row.group) if isinstance(part, str)],
    )


def _rows(picture: Picture) -> list[ChartRow]:
    """The marks as records; ends that are open are left out."""
    return [
        {
            "at": row.at,
            "value": _finite(row.value),
            "low": _finite(row.low),
            "high": _finite(row.high),
            "group": row.group,
            "order": place,
        }
        for place, row in enumerate(picture.rows)
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _scale(altair: ModuleType, picture: Picture) -> Any:
    if picture.within is not None:
        return altair.Scale(domain=list(picture.within))
    return altair.Scale(type="log" if picture.log else "linear", zero=False)


def _forest(altair: ModuleType, picture: Picture, colours: Palette, language: str) -> Chart:
    data = altair.Data(values=_rows(picture))
    across = altair.X("value:Q", title=render(picture.across, language), scale=_scale(altair, picture))
    down = altair.Y("at:N", title=None, sort=altair.EncodingSortField(field="order"))
    base = altair.Chart(data)
    layers = [
        base.mark_rule(color=colours.band, strokeWidth=3).encode(
            x=altair.X("low:Q", scale=_scale(altair, picture)), x2="high:Q", y=down
        ),
        base.mark_point(color=colours.mark, filled=True, size=60, opacity=1).encode(x=across, y=down),
    ]
    if picture.reference is not None:
        marked = altair.Chart(altair.Data(values=[{"value": picture.reference}]))
        layers.insert(0, marked.mark_rule(color=colours.quiet, strokeDash=[4, 4]).encode(x=across))
    return altair.layer(*layers).properties(width=WIDE, height=max(2, len(picture.rows)) * ROW)


def _curves(altair: ModuleType, picture: Picture, colours: Palette, language: str) -> Chart:
    data = altair.Data(values=_rows(picture))
    how = "step-after" if picture.kind == "steps" else "linear"
    groups = list(dict.fromkeys(row.group for row in picture.rows))
    upward = "" if picture.upward is None else render(picture.upward, language)
    x = altair.X("at:Q", title=render(picture.across, language))
    y = altair.Y("value:Q", title=upward, scale=_scale(altair, picture))
    shades = [colours.mark, colours.band, colours.quiet]
    named = len(groups) > 1
    colour = altair.Color(
        "group:N", title=None, sort=groups, scale=altair.Scale(domain=groups, range=shades[: max(1, len(groups))])
    )
    dash = altair.StrokeDash("group:N", title=None, sort=groups)
    base = altair.Chart(data)
    plain = {} if named else {"color": colours.mark}
    band = base.mark_area(interpolate=how, opacity=0.25, **({} if named else {"color": colours.band})).encode(
        x=x, y=altair.Y("low:Q", scale=_scale(altair, picture)), y2="high:Q"
    )
    line = base.mark_line(interpolate=how, **plain).encode(x=x, y=y)
    if named:
        band, line = band.encode(color=colour), line.encode(color=colour, strokeDash=dash)
    layers = [band, line]
    if picture.reference is not None:
        marked = altair.Chart(altair.Data(values=[{"value": picture.reference}]))
        layers.insert(0, marked.mark_rule(color=colours.quiet, strokeDash=[4, 4]).encode(y=y))
    return altair.layer(*layers).properties(width=WIDE, height=HIGH)
