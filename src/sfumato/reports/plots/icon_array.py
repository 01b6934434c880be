"""A thousand people as a thousand dots: what a chance looks like, before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.core.exact import natural
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import message
from sfumato.reports.frequencies import so_many
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["ALL", "Thousand", "icons", "thousands"]

ALL, ACROSS = 1000, 25
STEP, DOT = 7.5, 5.5
GAP = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Thousand:
    """How many of a thousand dots are dark, and the word above them."""

    word: str
    dark: int


def icons(
    prior: int,
    after_low: int,
    after_high: int,
    language: str = "en",
    theme: str = "light",
    *,
    about: str = "",
    note: str = "",
) -> Chart:
    """Draw a chance out of 1,000 before a release, and the least and the most that it can become after.

    All three are whole numbers out of 1,000, rounded by whoever asks: ``after_low`` down and ``after_high`` up.
    ``about`` says what the chance is of, and ``note`` stands under the title.
    """
    for name, dots in (("prior", prior), ("after_low", after_low), ("after_high", after_high)):
        natural(dots, name, least=0, most=ALL)
    if not after_low <= prior <= after_high:
        raise InvalidInput(
            f"a chance of {prior} in 1,000 must lie within what it can become, and {after_low} to {after_high} does "
            "not hold it. Nothing was drawn."
        )
    panels = [
        Thousand(word=message(language, f"plot.{name}"), dark=dots)
        for name, dots in (("before", prior), ("after_low", after_low), ("after_high", after_high))
    ]
    title = message(language, "plot.icons_about", about=about) if about else message(language, "plot.icons")
    return thousands(panels, title=title, subtitle=[note] if note else [], language=language, theme=theme)


def thousands(panels: Sequence[Thousand], *, title: str, subtitle: Sequence[str], language: str, theme: str) -> Chart:
    """Draw several thousands of dots side by side, each with its number above."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    x = altair.X("x:Q", axis=None, scale=altair.Scale(domain=[0, _width(panels)], nice=False, zero=False))
    y = altair.Y("y:Q", axis=None, scale=altair.Scale(domain=[_height(), 0], nice=False, zero=False))
    dots = (
        altair.Chart(altair.Data(values=list(_runs(panels, colours))))
        .mark_rule(strokeCap="round", strokeWidth=DOT, strokeDash=[0.01, STEP - 0.01])
        .encode(x=x, x2="to:Q", y=y, color=altair.Color("colour:N", scale=None))
    )
    heads = altair.Chart(altair.Data(values=list(_heads(panels, language)))).encode(x=x)
    counts = heads.mark_text(align="left", baseline="alphabetic", fontSize=17, fontWeight="bold", color=colours.ink)
    words = heads.mark_text(align="left", baseline="alphabetic", fontSize=12, color=colours.quiet)
    return dressed(
        altair.layer(
            dots, words.encode(y=altair.value(-34), text="word:N"), counts.encode(y=altair.value(-12), text="count:N")
        ).properties(width=_width(panels), height=_height()),
        title=title,
        subtitle=subtitle,
        language=language,
        theme=theme,
    )


def _runs(panels: Sequence[Thousand], colours: Palette) -> Iterator[ChartRow]:
    """One dashed line for each run of dots of a colour: all but points, the dashes become dots by round ends."""
    for place, panel in enumerate(panels):
        left = place * (ACROSS * STEP + GAP)
        for row in range(ALL // ACROSS):
            dark = min(max(panel.dark - row * ACROSS, 0), ACROSS)
            for first, last, colour in ((0, dark, colours.mark), (dark, ACROSS, colours.faint)):
                if first < last:
                    yield {
                        "x": left + (first + 0.5) * STEP,
                        "to": left + (last - 0.5) * STEP + 0.02,
                        "y": (row + 0.5) * STEP,
                        "colour": colour,
                    }


def _heads(panels: Sequence[Thousand], language: str) -> Iterator[ChartRow]:
    for place, panel in enumerate(panels):
        count = message(language, "plot.of_thousand", dots=so_many(panel.dark, language))
        yield {"x": place * (ACROSS * STEP + GAP), "word": panel.word, "count": count}


def _width(panels: Sequence[Thousand]) -> float:
    return len(panels) * (ACROSS * STEP + GAP) - GAP


def _height() -> float:
    return ALL // ACROSS * STEP
