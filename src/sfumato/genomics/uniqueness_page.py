"""The page of the uniqueness calculator: levels of typing beside each other, in figures and as curves."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.exact import natural
from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.genomics.uniqueness import HLAUniqueness, hla_uniqueness, uniqueness_curve
from sfumato.reports.catalogue import message
from sfumato.reports.page import language_switch, page_style, write_text, wrong_ending
from sfumato.reports.plots.saving import svg_of
from sfumato.reports.plots.theme import dressed, palette
from sfumato.reports.rendering import Markup, render

__all__ = ["LEVELS", "TypingLevel", "share_text", "typing_levels", "uniqueness_chart", "write_uniqueness_page"]

LANGUAGES = ("en", "zh-Hans")
LEVELS: Mapping[str, tuple[int, ...]] = {"proteins": (150, 200), "first_fields": (21, 36), "supertypes": (6, 6)}
"""Numbers of alleles of HLA-A and HLA-B as they are told apart at three levels; assumptions, from the field."""
CURVE = tuple(round(10 ** (place / 10)) for place in range(10, 51))
SIZE = (520, 240)
PADDING = {"left": 12, "right": 12, "top": 4, "bottom": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingLevel:
    """A level of typing by its numbers of ``alleles``, with what it means for a file of people."""

    name: str
    alleles: tuple[int, ...]
    even: HLAUniqueness
    skewed: HLAUniqueness


@dataclass(frozen=True, slots=True, kw_only=True)
class UniquenessPart:
    """What the page says in one language."""

    language: str
    lead: str
    verdict: str
    picture: Markup | None
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def say(self, identifier: str) -> str:
        """A message in the language of this part that has no facts in it."""
        return message(self.language, identifier)


def typing_levels(*, people: int, alleles: tuple[int, ...] | None = None) -> tuple[TypingLevel, ...]:
    """Three known levels at HLA-A and HLA-B, and one with ``alleles`` of each gene where they are given.

    >>> [f"{level.skewed.unique:.0%}" for level in typing_levels(people=1000)]
    ['99%', '83%', '9%']
    """
    natural(people, "people")
    if alleles is not None and len(alleles) == 0:
        raise InvalidInput("no gene was given; nothing was done. Give the number of alleles of each.")
    asked = dict(LEVELS) if alleles is None else {**LEVELS, "given": alleles}
    return tuple(
        TypingLevel(
            name=name,
            alleles=each,
            even=hla_uniqueness(*each, people=people, evenly=True),
            skewed=hla_uniqueness(*each, people=people),
        )
        for name, each in asked.items()
    )


def write_uniqueness_page(levels: tuple[TypingLevel, ...], path: Path) -> Path:
    """Write the page as ``.html``, in English and Chinese, and return its path. It holds no data."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise wrong_ending(path, path.suffix)
    parts = [_part(levels, language) for language in LANGUAGES]
    page = render("uniqueness.html", parts=parts, style=page_style(), switch=language_switch(LANGUAGES), switched=True)
    return write_text(page, path)


def uniqueness_chart(levels: tuple[TypingLevel, ...], language: str = "en", theme: str = "light") -> Chart:
    """Draw the share of unique people against the number of people, a line for each level; an Altair chart."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    names = [_said(language, level.name) for level in levels]
    rows = [
        {"level": name, "people": people, "share": float(share)}
        for name, level in zip(names, levels, strict=True)
        for people, share in zip(CURVE, uniqueness_curve(*level.alleles, people=CURVE), strict=True)
    ]
    tones = altair.Scale(domain=names, range=[colours.mark, colours.band, colours.quiet, colours.ink][: len(names)])
    dashes = altair.Scale(domain=names, range=[[1, 0], [6, 3], [2, 3], [8, 2, 2, 2]][: len(names)])
    lines = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=altair.X(
                "people:Q",
                title=_said(language, "people_axis"),
                scale=altair.Scale(type="log"),
                axis=altair.Axis(grid=False, format=",d", values=[10, 100, 1_000, 10_000, 100_000]),
            ),
            y=altair.Y("share:Q", title=_said(language, "share_axis"), axis=altair.Axis(format=".0%", tickCount=5)),
            color=altair.Color(
                "level:N", title=None, scale=tones, legend=altair.Legend(orient="top", symbolSize=300, columnPadding=24)
            ),
            strokeDash=altair.StrokeDash("level:N", title=None, scale=dashes),
        )
        .properties(width=SIZE[0], height=SIZE[1])
    )
    return dressed(lines, title=_said(language, "curves"), subtitle=[], language=language, theme=theme)


def _part(levels: tuple[TypingLevel, ...], language: str) -> UniquenessPart:
    last = levels[len(LEVELS) - 1].skewed
    return UniquenessPart(
        language=language,
        lead=_said(language, "lead", people=f"{last.people:,}"),
        verdict=_said(language, "verdict", share=share_text(last.unique)),
        picture=_picture(levels, language),
        heads=tuple(_said(language, name) for name in ("typing", "alleles", "genotypes", "even", "skewed")),
        rows=tuple(
            (
                _said(language, level.name),
                " × ".join(str(each) for each in level.alleles),
                f"{level.even.genotypes:,}",
                share_text(level.even.unique),
                share_text(level.skewed.unique),
            )
            for level in levels
        ),
    )


def _picture(levels: tuple[TypingLevel, ...], language: str) -> Markup | None:
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        spec = uniqueness_chart(levels, language).to_dict()
    except MissingExtra:
        return None
    spec.pop("title")
    spec["padding"] = PADDING
    return Markup(svg_of(spec))


def share_text(unique: float) -> str:
    """A share with one decimal, and with as many as it takes not to say that everybody is.

    >>> share_text(0.0953), share_text(0.999996)
    ('9.5%', '99.9996%')
    """
    digits = next((digits for digits in range(1, 8) if f"{100 * unique:.{digits}f}" != f"{100:.{digits}f}"), 8)
    return f"{100 * unique:.{digits}f}%"


def _said(language: str, name: str, **facts: object) -> str:
    return message(language, f"uniqueness_page.{name}", **facts)
