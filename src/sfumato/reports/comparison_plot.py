"""Units side by side as a picture: ε for the same error on the left, error for the same ε on the right."""

from types import ModuleType

from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.reports.catalogue import message
from sfumato.reports.comparison import Comparison
from sfumato.reports.comparison_words import name, title, within
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["draw"]

WIDTH, STEP = 230, 30


def draw(found: Comparison, language: str = "en", theme: str = "light") -> Chart:
    """Draw one bar for each unit in each panel, with its figure at the end; an Altair chart."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    units = distinct([name(line.case.unit, language) for line in found.lines])
    pairs = list(zip(units, found.lines, strict=True))
    epsilons = [{"unit": unit, "size": float(line.epsilon), "shown": decimal_up(line.epsilon)} for unit, line in pairs]
    margins = [
        {
            "unit": unit,
            "size": line.margin / found.height,
            "shown": message(language, "comparison.within", margin=within(line.margin, found)),
        }
        for unit, line in pairs
    ]
    left = message(language, "comparison.axis_epsilon", margin=within(found.margin, found))
    right = message(language, "comparison.axis_margin", epsilon=decimal_up(found.spend.epsilon))
    panels = altair.hconcat(
        _panel(altair, epsilons, left, units, colours, named=True),
        _panel(altair, margins, right, units, colours, named=False),
        spacing=28,
    )
    return dressed(
        panels,
        title=clean(title(found, language)),
        subtitle=[_shared(found, language)],
        language=language,
        theme=theme,
    )


def _shared(found: Comparison, language: str) -> str:
    return message(
        language,
        "comparison.subtitle_pure" if found.spend.delta == 0 else "comparison.subtitle_delta",
        unit=name(found.lines[0].case.unit, language),
        epsilon=decimal_up(found.spend.epsilon),
        delta=decimal_up(found.spend.delta),
        margin=within(found.margin, found),
        percent=decimal_down(100 * found.confidence),
    )


def _panel(
    altair: ModuleType, rows: list[ChartRow], words: str, units: list[str], colours: Palette, *, named: bool
) -> Chart:
    axis = altair.Axis(title=None, labelLimit=260, labelColor=colours.ink, labelFontSize=12, grid=False)
    most = max(row["size"] for row in rows)
    scale = altair.Scale(domain=[0, most * 1.3 or 1], nice=False)  # room for the figures at the ends
    base = (
        altair.Chart(altair.Data(values=rows))
        .encode(
            y=altair.Y("unit:N", sort=units, axis=axis if named else None),
            x=altair.X("size:Q", scale=scale, axis=altair.Axis(title=words, tickCount=3, titleAnchor="start")),
        )
        .properties(width=WIDTH, height=altair.Step(STEP))
    )
    bars = base.mark_bar(height=12, color=colours.band, cornerRadiusEnd=3)
    figures = base.mark_text(align="left", dx=6, color=colours.ink, fontSize=12).encode(text="shown:N")
    return bars + figures
