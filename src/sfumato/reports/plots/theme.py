"""The one style of all pictures: quiet, told apart by lightness alone, light and dark.

No meaning depends on hue: ``mark``, ``band`` and ``faint`` differ in lightness by so much that they stay apart in grey
and for every kind of colour vision. Within a theme no two roles share a colour, so a page can repaint a drawing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.core.foreign import Chart
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import LANGUAGES
from sfumato.reports.plots.fonts import family

__all__ = ["THEMES", "Palette", "dressed", "palette"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colours of a theme, by what they are for."""

    paper: str
    ink: str
    quiet: str
    line: str
    mark: str
    band: str
    faint: str


THEMES = {
    "light": Palette(
        paper="#ffffff",
        ink="#22262b",
        quiet="#5f6872",
        line="#e6eaef",
        mark="#1f3a5f",
        band="#7896b8",
        faint="#d3dce6",
    ),
    "dark": Palette(
        paper="#16191d",
        ink="#e4e6e8",
        quiet="#a3adb8",
        line="#2b3138",
        mark="#d6e4f5",
        band="#6482a2",
        faint="#333d48",
    ),
}


def palette(theme: str) -> Palette:
    """The colours of a theme by its name.

    >>> palette("dark").paper
    '#16191d'
    """
    if theme not in THEMES:
        raise Unsupported(f"there is no theme {theme!r}; the themes are light and dark. Nothing was drawn.")
    return THEMES[theme]


def dressed(
    chart: Chart, *, title: str, subtitle: Sequence[str], language: str, theme: str, labels: Iterable[str] = ()
) -> Chart:
    """Give a finished chart its title and its style, and tell it its language, which a saved file states.

    ``labels`` are the texts from outside that it shows: where one is Chinese, a Chinese font comes first.
    """
    colours = palette(theme)
    return (
        chart.properties(
            title={"text": title, "subtitle": list(subtitle)},
            padding=16,
            background=colours.paper,
            usermeta={"language": LANGUAGES[language], "theme": theme, "title": title},
        )
        .configure(font=family([title, *subtitle, *labels]), aria=False)
        .configure_view(stroke=None)
        .configure_axis(
            domain=False,
            ticks=False,
            gridColor=colours.line,
            labelColor=colours.quiet,
            labelFontSize=11,
            labelPadding=6,
            titleColor=colours.quiet,
            titleFontSize=11,
            titleFontWeight="normal",
            titlePadding=10,
        )
        .configure_title(
            anchor="start",
            frame="bounds",
            color=colours.ink,
            fontSize=15,
            fontWeight="bold",
            limit=900,
            offset=16,
            subtitleColor=colours.quiet,
            subtitleFontSize=12,
            subtitleLineHeight=17,
            subtitlePadding=7,
        )
        .configure_header(labelColor=colours.ink, labelFontSize=12, labelFontWeight="bold", labelLimit=420)
        .configure_legend(
            orient="bottom",
            direction="horizontal",
            labelColor=colours.ink,
            labelFontSize=12,
            labelLimit=460,
            symbolStrokeWidth=2,
            title=None,
        )
    )
