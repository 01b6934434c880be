"""Small pictures for a page, drawn as SVG by hand: bars with the interval that they are compared with, and heat maps.

They need no extra. Colours are those of the light theme, which the page repaints where it is dark; no meaning depends
on hue. Text is escaped.
"""

from html import escape

from sfumato.core.document_page import BarPanel, HeatMap
from sfumato.core.terminal import text_width
from sfumato.reports.plots.theme import THEMES
from sfumato.reports.rendering import Markup
from sfumato.reports.words.rendering import one_line, render

__all__ = ["NUMBERS_UP_TO", "bars", "heat", "top_of"]

NAME, BAR, FIGURE, ROW = 150, 130, 44, 20
"""The most room for names, that for bars and figures, and the height of a row, in pixels."""
LEAST_NAME = 60
LETTER = 6.3
"""The width of a letter at 11 pixels, as most fonts have it; a Chinese sign is twice as wide."""
LABEL = 132
"""The most room for the names of a heat map."""
NUMBERS_UP_TO = 10
"""Columns of a heat map up to which its figures stand in its cells."""
WIDE = 340
DARK = 0.62
"""From this shade on, figures are written in the colour of the paper."""
COLOURS = THEMES["light"]


def bars(panel: BarPanel, language: str) -> Markup:
    """Bars of one panel, each with a mark and an interval for what it is compared with.

    >>> from sfumato.core.document_page import BarRow
    >>> drawn = bars(BarPanel(title="sex", rows=(BarRow(name="<F>", value=0.4, beside=0.5, low=0.4, high=0.6),)), "en")
    >>> "&lt;F&gt;" in drawn, "40%" in drawn
    (True, True)
    """
    reach = max([end for row in panel.rows for end in (row.value, row.beside, row.high) if end is not None] or [1.0])
    reach = max(reach, 1e-9)
    names = [one_line(render(row.name, language)) for row in panel.rows]
    room = min(NAME, max([LEAST_NAME, *(LETTER * text_width(name) + 8 for name in names)]))
    parts = []
    for place, (name, row) in enumerate(zip(names, panel.rows, strict=True)):
        y = place * ROW
        wide = BAR * min(max(row.value, 0.0), reach) / reach
        parts.append(_text(room - 6, y + 14, _short(name, room - 8), anchor="end", whole=name))
        parts.append(f'<rect x="{room:.1f}" y="{y + 4}" width="{wide:.1f}" height="12" fill="{COLOURS.band}"/>')
        if row.low is not None and row.high is not None:
            low, high = (room + BAR * min(max(end, 0.0), reach) / reach for end in (row.low, row.high))
            parts.append(
                f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 10}" y2="{y + 10}" stroke="{COLOURS.mark}" '
                'stroke-width="2"/>'
            )
        if row.beside is not None:
            at = room + BAR * min(max(row.beside, 0.0), reach) / reach
            parts.append(f'<rect x="{at - 1.5:.1f}" y="{y + 3}" width="3" height="14" fill="{COLOURS.mark}"/>')
        parts.append(_text(room + BAR + 6, y + 14, percent(row.value), colour=COLOURS.quiet))
    return _svg(room + BAR + FIGURE, ROW * len(panel.rows), parts)


def heat(drawn: HeatMap, top: float) -> Markup:
    """A square of shades, from the paper for 0 to the darkest for ``top``; with figures where there are few columns."""
    number = len(drawn.names)
    side = max(12, min(30, WIDE // max(number, 1)))
    names = [one_line(name) for name in drawn.names]
    room = min(LABEL, max([LEAST_NAME, *(LETTER * text_width(name) + 8 for name in names)]))
    parts = []
    for row, clean in enumerate(names):
        short = _short(clean, room - 8)
        parts.append(_text(room - 6, room + row * side + side / 2 + 4, short, "end", clean))
        x, y = room + row * side + side / 2 + 4, room - 6
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="{COLOURS.ink}" '
            f'transform="rotate(-90 {x:.1f} {y:.1f})">'
            f"<title>{escape(clean)}</title>{escape(short)}</text>"
        )
        for column, value in enumerate(drawn.values[row]):
            parts += _cell(room + column * side, room + row * side, side, value, top, figures=number <= NUMBERS_UP_TO)
    return _svg(room + number * side + 4, room + number * side + 4, parts)


def top_of(maps: tuple[HeatMap, ...]) -> float:
    """The value of the darkest shade of maps that are compared: the largest of them, rounded up to a tenth.

    >>> top_of((HeatMap(title="", names=("a", "b"), values=((None, 0.23), (0.23, None))),))
    0.3
    """
    every = [value for each in maps for row in each.values for value in row if value is not None]
    return min(1.0, max(0.1, -(-max(every, default=0.0) * 10 // 1) / 10))


def percent(value: float) -> str:
    """A share in percent, with as many places as can be read.

    >>> percent(0.4), percent(0.0432), percent(0.00012)
    ('40%', '4.3%', '0.012%')
    """
    return f"{100 * value:.2g}%" if value < 0.995 else f"{100 * value:.0f}%"


def _cell(x: float, y: float, side: int, value: float | None, top: float, *, figures: bool) -> list[str]:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{side - 1}" height="{side - 1}"'
    if value is None:
        return [f'<rect {size} fill="{COLOURS.line}"/>']
    shade = min(max(value / top, 0.0), 1.0)
    found = [f'<rect {size} fill="{COLOURS.mark}" fill-opacity="{shade:.3f}"><title>{value:.2f}</title></rect>']
    if figures:
        colour = COLOURS.paper if shade > DARK else COLOURS.ink
        written = f"{value:.2f}".removeprefix("0")
        found.append(_text(x + side / 2, y + side / 2 + 3.5, written, "middle", colour=colour, size=10))
    return found


def _text(
    x: float, y: float, text: str, anchor: str = "start", whole: str = "", *, colour: str = COLOURS.ink, size: int = 11
) -> str:
    titled = f"<title>{escape(whole)}</title>" if whole and whole != text else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
        f"{titled}{escape(text)}</text>"
    )


def _short(text: str, room: float) -> str:
    """A text that fits: its beginning and its end, with an ellipsis between where it was cut."""
    if text_width(text) * LETTER <= room:
        return text
    ends = len(text) // 2, len(text) - len(text) // 2
    while sum(ends) > 2 and (text_width(text[: ends[0]] + text[-ends[1] :]) + 1) * LETTER > room:
        ends = (ends[0] - 1, ends[1]) if ends[0] >= ends[1] else (ends[0], ends[1] - 1)
    return f"{text[: ends[0]]}…{text[-ends[1] :]}"


def _svg(wide: float, high: float, parts: list[str]) -> Markup:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" '
    return Markup(f'{head}height="{high:.0f}" aria-hidden="true">{"".join(parts)}</svg>')
